//! Files of git for a short time, for the index of commits that are made beside the files of the user.
//!
//! Each user of one holds the lock of the shelf together with others, and the kernel lets go of it when the process dies. What is left
//! then is removed by the next command that gets the lock alone.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use crate::error::IsolationError;
use crate::removal::remove_file;
use crate::shelf::Shelf;

/// The part of a name by which such files are known; git adds an ending of its own while it writes.
pub(crate) const MARK: &str = ".scratch";

/// A file that only this process uses.
pub(crate) struct Scratch {
    pub(crate) path: PathBuf,
    /// Held as long as the file may be there.
    _lock: File,
}

impl Scratch {
    /// A file of this name, which is not there yet.
    pub(crate) fn new(shelf: &Shelf, name: &str) -> Result<Self, IsolationError> {
        let lock = shelf.lock_file()?;
        lock.lock_shared().map_err(IsolationError::io("lock", shelf.path()))?;
        let name = name.replace('/', "-");
        let path = shelf.path().join(format!("{name}-{}{MARK}", std::process::id()));
        Ok(Self { path, _lock: lock })
    }

    /// The path of another such file, which goes with it.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.path.with_extension(format!("{name}{MARK}"))
    }

    /// Removes the files.
    pub(crate) fn remove(self) -> Result<(), IsolationError> {
        let own = self.path.file_stem().map(|stem| format!("{}.", stem.to_string_lossy()));
        let folder = self.path.parent().expect("it stands on a shelf");
        remove_all(folder, |name| own.as_ref().is_some_and(|own| name.starts_with(own)))
    }
}

/// Removes what processes have left that were killed; nothing while another one may be at work.
pub(crate) fn sweep(shelf: &Shelf) -> Result<(), IsolationError> {
    let lock = shelf.lock_file()?;
    match lock.try_lock() {
        Ok(()) => remove_all(shelf.path(), |_| true),
        Err(TryLockError::WouldBlock) => Ok(()),
        Err(TryLockError::Error(error)) => Err(IsolationError::io("lock", shelf.path())(error)),
    }
}

fn remove_all(folder: &Path, is_meant: impl Fn(&str) -> bool) -> Result<(), IsolationError> {
    let failed = || IsolationError::io("read", folder);
    for entry in fs::read_dir(folder).map_err(failed())? {
        let name = entry.map_err(failed())?.file_name();
        let is_ours = name.to_str().is_some_and(|name| name.contains(MARK) && is_meant(name));
        if is_ours {
            remove_file(&folder.join(&name))?;
        }
    }
    Ok(())
}
