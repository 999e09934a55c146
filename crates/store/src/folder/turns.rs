//! Turns among processes that write.

use rustix::fs::FlockOperation;

use super::DataFolder;
use super::lock::Locked;
use crate::StoreError;

/// The name of the lock.
pub(super) const WRITING: &str = "writing";

impl DataFolder {
    /// Waits for the turn to write to the database; it is over when the lock is dropped.
    ///
    /// Processes that write to one database take turns. SQLite would have them ask again and again, at intervals of up to a
    /// tenth of a second; this wakes the next one when the turn is free, also when its holder was killed.
    pub(crate) fn turn(&self) -> Result<Locked, StoreError> {
        self.lock(WRITING, FlockOperation::LockExclusive)
    }
}
