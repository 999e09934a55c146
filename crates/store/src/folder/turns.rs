//! Turns among processes that write.

use std::fs::File;

use rustix::fs::{FlockOperation, flock};

use super::DataFolder;
use crate::StoreError;

/// A turn to write to the database; it is over when dropped.
///
/// Processes that write to one database take turns. SQLite would have them ask again and again, at intervals of up to a
/// tenth of a second; this wakes the next one when the turn is free, also when its holder was killed.
#[derive(Debug)]
pub(crate) struct Turn(File);

/// The name of the lock.
pub(super) const WRITING: &str = "writing";

impl DataFolder {
    /// Waits for the turn.
    pub(crate) fn turn(&self) -> Result<Turn, StoreError> {
        self.lock(WRITING, FlockOperation::LockExclusive).map(Turn)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Closing it would not do: a child on its way to its program has the descriptor too.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}
