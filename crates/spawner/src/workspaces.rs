//! Folders of their own for runs, and the runs that work in each.
//!
//! A run in a folder of its own may have children that work there too. The owner brings the changes back when it ends. Where
//! others still work in the folder then, the last of them brings back what has come since, and only then the folder goes.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use offshoot_model::{Changes, Isolation, RootId, RunId};
use parking_lot::Mutex;

/// Makes folders of their own for runs, and brings back what was changed in them. The engine touches no file itself: what does is
/// handed in.
pub trait Workspaces: Send + Sync + 'static {
    /// Makes the folder of a run, and answers where the run works.
    ///
    /// # Errors
    ///
    /// Fails with a text that says why, and what can be done about it.
    fn make(&self, order: WorkspaceOrder) -> BoxFuture<'static, Result<PathBuf, String>>;

    /// Brings back what was changed in the folder of a run; none where it has none. With `again`, something may have changed
    /// since it was asked before. What is answered is safe, and the folder stays.
    ///
    /// # Errors
    ///
    /// Fails with a text that says why, and where the folder is.
    fn gather(
        &self,
        run: RunId,
        again: bool,
    ) -> BoxFuture<'static, Result<Option<Box<Changes>>, String>>;

    /// Removes the folder of a run, whose changes are on record.
    fn discard(&self, run: RunId) -> BoxFuture<'static, ()>;

    /// Brings back what was changed in the folders of a tree that an earlier supervisor has left.
    ///
    /// # Errors
    ///
    /// As [`gather`](Self::gather).
    fn left(&self, root: RootId) -> BoxFuture<'static, Result<LeftChanges, String>>;
}

/// Changes that an earlier supervisor has left, by run.
pub type LeftChanges = HashMap<RunId, LeftChange>;

/// Changes that an attempt has left in a folder of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftChange {
    /// The changes.
    pub changes: Box<Changes>,
    /// True if they were brought back just now: an attempt has worked in the folder since they were brought back last.
    pub is_new: bool,
}

/// A folder that is asked for.
#[derive(Clone, Debug)]
pub struct WorkspaceOrder {
    /// The run that is to work in it.
    pub run: RunId,
    /// The tree of the run.
    pub root: RootId,
    /// The kind of isolation; never none.
    pub isolation: Isolation,
    /// The folder in which the run would work otherwise.
    pub folder: Arc<PathBuf>,
    /// True if the run goes on where an earlier attempt was.
    pub continues: bool,
}

/// The folders in which the runs of a tree work, where that is not the one of the tree.
#[derive(Debug, Default)]
pub(crate) struct Workplaces(Mutex<Places>);

#[derive(Debug, Default)]
struct Places {
    /// The folder of each run that lives.
    of: HashMap<RunId, Arc<PathBuf>>,
    /// The folders that were made for a run, by that run.
    made: HashMap<RunId, Made>,
    /// The folder that goes once the end of a run is on record.
    due: HashMap<RunId, RunId>,
}

#[derive(Debug)]
struct Made {
    folder: Arc<PathBuf>,
    /// The runs that work in it, its owner among them until it has brought the changes back.
    users: Vec<RunId>,
    /// The number of runs that have worked in it and are over.
    over: u32,
}

impl Workplaces {
    /// Returns the folder in which a run works, where it is known to be another one than that of the tree.
    pub(crate) fn of(&self, run: RunId) -> Option<Arc<PathBuf>> {
        self.0.lock().of.get(&run).cloned()
    }

    /// True if a run works in a folder that was made for it, or for one above it.
    pub(crate) fn is_apart(&self, run: RunId) -> bool {
        self.0.lock().made.values().any(|made| made.users.contains(&run))
    }

    /// A run begins to work in the folder that was made for it.
    pub(crate) fn own(&self, run: RunId, folder: Arc<PathBuf>) {
        let mut places = self.0.lock();
        places.of.insert(run, Arc::clone(&folder));
        places.made.insert(run, Made { folder, users: vec![run], over: 0 });
    }

    /// A run begins to work in this folder, which is not that of the tree.
    pub(crate) fn enter(&self, run: RunId, folder: &Arc<PathBuf>) {
        let mut places = self.0.lock();
        places.of.insert(run, Arc::clone(folder));
        let mut made = places.made.values_mut();
        if let Some(made) = made.find(|made| folder.starts_with(&*made.folder)) {
            made.users.push(run);
        }
    }

    /// Returns the number of other runs that are over in the folder that a run owns; none for a run that owns none.
    pub(crate) fn over_in(&self, owner: RunId) -> Option<u32> {
        self.0.lock().made.get(&owner).map(|made| made.over)
    }

    /// An attempt of a run is over: nothing of it works any more. An owner has brought the changes back before. Returns the owner of the
    /// folder where that is another run, which has ended, and this one was the last that worked there.
    pub(crate) fn leave(&self, run: RunId) -> Option<RunId> {
        let mut places = self.0.lock();
        places.of.remove(&run);
        let (&owner, _) = places.made.iter().find(|(_, made)| made.users.contains(&run))?;
        let made = places.made.get_mut(&owner).expect("it was found");
        made.users.retain(|user| *user != run);
        made.over += 1;
        let is_empty = made.users.is_empty();
        if is_empty {
            places.made.remove(&owner);
            places.due.insert(run, owner);
        }
        (is_empty && owner != run).then_some(owner)
    }

    /// An earlier supervisor has left the folder of a run, whose changes will be recorded with its end.
    pub(crate) fn left(&self, run: RunId) {
        self.0.lock().due.insert(run, run);
    }

    /// The changes of a run could not be brought back: its folder stays.
    pub(crate) fn keep(&self, run: RunId) {
        self.0.lock().due.remove(&run);
    }

    /// The end of a run is on record. Returns the owner of the folder that goes with it.
    pub(crate) fn recorded(&self, run: RunId) -> Option<RunId> {
        self.0.lock().due.remove(&run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_that_works_in_a_folder_brings_the_changes_back() {
        let run = |byte: u8| RunId::from_bytes([byte; 16]);
        let [owner, child, grandchild] = [1, 2, 3].map(run);
        let folder = |path: &str| Arc::new(PathBuf::from(path));
        let places = Workplaces::default();
        places.own(owner, folder("/data/1"));
        places.enter(child, &folder("/data/1/below"));
        places.enter(grandchild, &folder("/data/1"));
        assert_eq!(places.of(child), Some(folder("/data/1/below")));
        assert_eq!(places.leave(child), None);
        assert_eq!(places.leave(owner), None, "it has brought its own back");
        assert_eq!(places.recorded(owner), None, "another works in it");
        assert_eq!(places.leave(grandchild), Some(owner));
        assert_eq!(places.recorded(grandchild), Some(owner));
        assert_eq!(places.recorded(grandchild), None);
        places.own(owner, folder("/data/1"));
        assert_eq!(places.leave(owner), None, "it has brought its own back");
        places.keep(owner);
        assert_eq!(places.recorded(owner), None, "its changes are not safe");
        places.enter(child, &folder("/elsewhere"));
        assert_eq!(places.leave(child), None);
    }
}
