//! The trees that supervisors of this user run, whatever their data folder, as they come.

use std::sync::Arc;

use offshoot_model::RootId;
use tokio::sync::mpsc::Sender;

use super::trees::Trees;
use super::{Told, start_thread};
use crate::code::FailureCode;
use crate::door::{LiveTree, LiveTrees, live_trees, registry};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;

/// Trees that were found.
pub(super) struct Found {
    /// Trees that are not shown yet, each with its data folder for people.
    pub(super) new: Vec<(RootId, Record, String)>,
    /// True if a supervisor is there that has no tree yet.
    pub(super) later: bool,
}

/// Tells when a supervisor comes or goes, on a thread that ends with the process.
pub(super) fn follow(cx: &Invocation, tx: Sender<Told>) -> Result<(), Failure> {
    let watch = registry(cx).watch().map_err(|error| {
        let what = "cannot see supervisors come";
        Failure::new(FailureCode::NoThread, Exit::NoRuntime, what)
            .caused_by(Some(&error))
            .hint("the system has too few threads or descriptors left: end other programs, or raise `ulimit -n -u`")
    })?;
    start_thread("arrivals", move || {
        while watch.wait().is_ok() && tx.blocking_send(Told::Arrivals).is_ok() {}
    })
}

/// Finds the trees that are not shown yet.
pub(super) async fn find(trees: Arc<Trees>) -> Result<Found, Failure> {
    let LiveTrees { trees: live, later, .. } = live_trees(&trees.cx).await?;
    let mut new = Vec::new();
    for LiveTree { supervisor, root, folder } in live {
        let root = RootId::new(root.run_id);
        // A supervisor of an earlier version does not say where it keeps its record.
        let folder = folder.unwrap_or_else(|| trees.cx.data_folder());
        if !trees.has(root)
            && let Some(record) = Record::open_in(&folder, &trees.cx)?
            && record.has(root.run())?
        {
            trees.add(root, record.clone(), Some(supervisor));
            new.push((root, record, trees.cx.environment.short_path(&folder)));
        }
    }
    Ok(Found { new, later })
}
