//! Observations of tasks with a type: those on record when one is first asked for, and those of the tree itself since.
//!
//! The record of other trees is read once. What their agents observe afterwards is for the next supervisor.

use std::sync::{Arc, OnceLock};

use offshoot_delegation::{Experience, TreeObservations, TypeSummary};
use offshoot_model::{RootId, TaskType};
use offshoot_store::{Store, StoreError};
use parking_lot::Mutex;

/// Observations, as far as they have been read.
#[derive(Debug, Default)]
pub(crate) struct PastTasks {
    others: OnceLock<Experience>,
    own: Mutex<Own>,
}

/// The tree itself, up to an event.
#[derive(Debug, Default)]
struct Own {
    tree: TreeObservations,
    seen: u64,
}

impl PastTasks {
    /// Returns the numbers of a type over all trees of the store, `root` as it is now. Waits for the disk.
    pub(crate) fn of_type(
        &self,
        store: &Arc<dyn Store>,
        root: RootId,
        task_type: &TaskType,
    ) -> TypeSummary {
        let others = self.others.get_or_init(|| read(&**store, Some(root)));
        // A reader that panicked has not counted twice: each event is counted with its number.
        let Own { tree, seen } = &mut *self.own.lock();
        if let Err(error) = follow(&**store, root, seen, tree) {
            tracing::warn!(%root, %error, "observations of this tree are read in part");
        }
        others.with(task_type, tree.clone().into_observations())
    }
}

/// Reads the observations of all trees of a store. What cannot be read is logged and is no observation.
pub fn read_past_tasks(store: &dyn Store) -> Experience {
    read(store, None)
}

fn read(store: &dyn Store, but: Option<RootId>) -> Experience {
    let mut experience = Experience::default();
    let roots = store.roots().unwrap_or_else(|error| {
        tracing::warn!(%error, "observations of other trees are not read");
        Vec::new()
    });
    for root in roots.into_iter().map(|summary| summary.root).filter(|root| Some(*root) != but) {
        let mut tree = TreeObservations::default();
        if let Err(error) = follow(store, root, &mut 0, &mut tree) {
            tracing::warn!(%root, %error, "observations of a tree are read in part");
        }
        experience.extend(tree.into_observations());
    }
    experience
}

/// Takes in the events of a tree after the number `seen`.
fn follow(
    store: &dyn Store,
    root: RootId,
    seen: &mut u64,
    tree: &mut TreeObservations,
) -> Result<(), StoreError> {
    for event in store.events(root, *seen) {
        let event = event?;
        tree.apply(&event);
        *seen = event.seq;
    }
    Ok(())
}
