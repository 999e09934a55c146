//! The start of the programs of a tree, and the notices of what happens beside them.

use std::sync::Arc;

use offshoot_door::Registry;
use offshoot_model::{KeeperFault, ProcessIdentity};
use offshoot_process::{self as process, Identity, KeeperCommand, MARK_VARIABLE, Notice};
use offshoot_process::{Options, Processes};
use offshoot_spawner::Notebook;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::environment::{Environment, KeeperLog};
use crate::error::HostError;
use crate::reporter::Reporter;

/// Starts programs, with a keeper that outlives this process by a moment.
#[derive(Clone)]
pub(crate) struct Children {
    pub(crate) processes: Processes,
    /// The trees whose record says what is noticed.
    pub(crate) trees: TreeList,
}

/// The open trees of this process.
#[derive(Clone, Debug, Default)]
pub(crate) struct TreeList(Arc<Mutex<Vec<Notebook>>>);

impl TreeList {
    /// Adds a tree.
    pub(crate) fn add(&self, tree: Notebook) {
        let mut trees = self.0.lock();
        trees.retain(Notebook::is_open);
        trees.push(tree);
    }
}

impl Children {
    /// Gets ready to hold them.
    pub(crate) fn hold(
        environment: &Environment,
        bounds_memory: bool,
        reporter: &Reporter,
    ) -> Result<Self, HostError> {
        let program = environment.offshoot.clone();
        let mut args = vec!["keeper".into()];
        let log = environment.keeper_log.as_ref().map(|KeeperLog { directives, stream }| {
            args.extend(["--log".into(), (&**directives).into()]);
            Arc::clone(stream)
        });
        let keeper = KeeperCommand { program, args, log };
        let inherited_mark = environment.text(MARK_VARIABLE).map(str::to_owned);
        let trees = TreeList::default();
        // Every process of this program is started by that one crate, as adopting orphans demands.
        let options = Options {
            keeper: Some(keeper),
            subreaper: true,
            bounds_memory,
            inherited_mark,
            notices: Some(notices(trees.clone(), environment, reporter.clone())),
            ..Options::default()
        };
        Ok(Self { processes: Processes::start(options)?, trees })
    }
}

/// Does what is to be done about what is noticed beside the runs. A thread, because a program is started here also before
/// there is a runtime; it ends with what it hears.
fn notices(
    trees: TreeList,
    environment: &Environment,
    reporter: Reporter,
) -> mpsc::UnboundedSender<Notice> {
    let (tx, mut rx) = mpsc::unbounded_channel();
    let registry = Registry::of_user(environment.runtime_folder.as_deref());
    std::thread::spawn(move || {
        while let Some(notice) = rx.blocking_recv() {
            match notice {
                Notice::Stray(Identity { pid, start_time }) => {
                    registry.remember_stray(ProcessIdentity::new(pid, start_time));
                }
                Notice::KeeperFailed { pid, found, error } => {
                    let (found, error) = (fault(found), error.map(|error| error.to_string()));
                    keeper_failed(pid, found, error.as_deref(), &reporter);
                    let error: Option<Arc<str>> = error.map(Into::into);
                    for tree in &*trees.0.lock() {
                        tree.keeper_failed(pid, found, error.clone());
                    }
                }
                other => reporter.warning(format_args!("{other:?}")),
            }
        }
    });
    tx
}

fn keeper_failed(pid: u32, found: KeeperFault, error: Option<&str>, reporter: &Reporter) {
    match error {
        None => reporter.warning(format_args!(
            "the keeper, process {pid}, {found}; another one has taken its place"
        )),
        Some(error) => reporter.warning(format_args!(
            "the keeper, process {pid}, {found}, and there is no other: {error}; agents may outlive this command if it is killed"
        )),
    }
}

const fn fault(found: process::KeeperFault) -> KeeperFault {
    match found {
        process::KeeperFault::Ended => KeeperFault::Ended,
        process::KeeperFault::Stopped => KeeperFault::Stopped,
        process::KeeperFault::Silent => KeeperFault::Silent,
    }
}
