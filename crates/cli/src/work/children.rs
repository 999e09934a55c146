//! The start of the programs of a tree, and the notices of what happens beside them.

use std::sync::{Arc, OnceLock};

use offshoot_door::Registry;
use offshoot_model::{KeeperFault, ProcessIdentity};
use offshoot_process::{self as process, Identity, KeeperCommand, MARK_VARIABLE, Notice};
use offshoot_process::{Options, Processes};
use offshoot_spawner::Notebook;
use tokio::sync::mpsc;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::output::Output;

/// Starts programs, with a keeper that outlives us by a moment.
#[derive(Clone)]
pub(crate) struct Children {
    pub(crate) processes: Processes,
    /// The tree that is told.
    pub(crate) tree: TreeSlot,
}

/// A place for the tree of this command, which is opened after its processes can be held.
#[derive(Clone, Default)]
pub(crate) struct TreeSlot(Arc<OnceLock<Notebook>>);

impl TreeSlot {
    /// From now on this tree is told.
    pub(crate) fn put(&self, tree: Notebook) {
        // A command opens one tree.
        let _ = self.0.set(tree);
    }
}

impl Children {
    /// Gets ready to hold them.
    pub(crate) fn hold(cx: &Invocation) -> Result<Self, Failure> {
        let program = cx.environment.executable.clone();
        let keeper = KeeperCommand { program, args: vec!["keeper".into()] };
        let inherited_mark = cx.environment.text(MARK_VARIABLE).map(str::to_owned);
        let tree = TreeSlot::default();
        // Every process of this program is started by that one crate, as adopting orphans demands.
        let options = Options {
            keeper: Some(keeper),
            subreaper: true,
            inherited_mark,
            notices: Some(notices(tree.clone(), cx)),
            ..Options::default()
        };
        let processes =
            Processes::start(options).map_err(|error| Failure::of(Exit::NoRuntime, &error))?;
        Ok(Self { processes, tree })
    }
}

/// Does what is to be done about what is noticed beside the runs. A thread, because a program is started here also before
/// there is a runtime; it ends with what it hears.
fn notices(tree: TreeSlot, cx: &Invocation) -> mpsc::UnboundedSender<Notice> {
    let (tx, mut rx) = mpsc::unbounded_channel();
    let registry = Registry::of_user(cx.environment.runtime_folder.as_deref());
    let output = cx.output;
    std::thread::spawn(move || {
        while let Some(notice) = rx.blocking_recv() {
            match notice {
                Notice::Stray(Identity { pid, start_time }) => {
                    registry.remember_stray(ProcessIdentity::new(pid, start_time));
                }
                Notice::KeeperFailed { pid, found, error } => {
                    let (found, error) = (fault(found), error.map(|error| error.to_string()));
                    keeper_failed(pid, found, error.as_deref(), output);
                    if let Some(tree) = tree.0.get() {
                        tree.keeper_failed(pid, found, error.map(Into::into));
                    }
                }
                other => output.warning(format_args!("{other:?}")),
            }
        }
    });
    tx
}

fn keeper_failed(pid: u32, found: KeeperFault, error: Option<&str>, output: Output) {
    let found = found.words();
    match error {
        None => output.warning(format_args!(
            "the keeper, process {pid}, {found}; another one has taken its place"
        )),
        Some(error) => output.warning(format_args!(
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
