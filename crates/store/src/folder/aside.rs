//! Files that are written aside before they get their name.
//!
//! Whoever writes one holds a lock on it, which the kernel lets go of with the process. So a file without a lock, while
//! nobody holds a tree, is one that nobody will finish: it can go at once, however young it is.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, retry_on_intr};
use tempfile::NamedTempFile;

/// What their names begin with, outside of the folder that holds nothing else.
pub(crate) const PREFIX: &str = ".new-";

/// A new, empty file, mode 0600, which is ours as long as it is open.
pub(crate) fn new_file(folder: &Path, prefix: &str) -> io::Result<NamedTempFile> {
    loop {
        let file = tempfile::Builder::new().prefix(prefix).tempfile_in(folder)?;
        retry_on_intr(|| flock(file.as_file(), FlockOperation::LockExclusive))?;
        // Somebody who clears up may have come between the two.
        if file.as_file().metadata()?.nlink() > 0 {
            return Ok(file);
        }
    }
}

/// Removes a file that nobody writes any more; how many bytes it had, or nothing where it is left alone.
pub(crate) fn remove_left(path: &Path, dry: bool) -> io::Result<Option<u64>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let bytes = file.metadata()?.len();
    if !dry {
        fs::remove_file(path)?;
    }
    Ok(Some(bytes))
}
