//! Whose turn it is, among processes.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::StoreError;

/// Processes that write to one database take turns. SQLite would have them ask again and again, at intervals of up to a
/// tenth of a second; this wakes the next one when the turn is free, also when its holder was killed.
#[derive(Debug)]
pub(crate) struct Turns {
    path: PathBuf,
    file: File,
}

/// A turn; it is over when dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a>(&'a File);

impl Turns {
    pub(crate) fn open(path: PathBuf) -> Result<Self, StoreError> {
        let mut options = OpenOptions::new();
        match options.write(true).create(true).truncate(false).mode(0o600).open(&path) {
            Ok(file) => Ok(Self { path, file }),
            Err(error) => Err(StoreError::io("open", &path, error)),
        }
    }

    /// Waits for the turn.
    pub(crate) fn take(&self) -> Result<Turn<'_>, StoreError> {
        loop {
            match flock(&self.file, FlockOperation::LockExclusive) {
                Ok(()) => return Ok(Turn(&self.file)),
                Err(Errno::INTR) => {}
                Err(error) => return Err(StoreError::io("lock", &self.path, error.into())),
            }
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // Unlocking an open file cannot fail; closing it would unlock it too.
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}
