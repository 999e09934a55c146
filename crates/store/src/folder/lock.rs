//! Waiting for a lock on a file, and saying so where its holder does not move.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock, fstat, major, minor};
use rustix::io::{Errno, retry_on_intr};

use super::DataFolder;
use crate::StoreError;

/// The time for which a lock of the folder is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// Until it is told. A lock is held for a flush of the disk, or for a look into a folder.
    pub(super) soon: Duration,
    /// From then until it is an error.
    pub(super) after: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { soon: Duration::from_secs(1), after: Duration::from_secs(59) }
    }
}

/// A file that is locked. The lock is released when this is dropped.
#[derive(Debug)]
pub(crate) struct Locked(pub(super) File);

impl Drop for Locked {
    fn drop(&mut self) {
        // Closing it would not do: a child on its way to its program has the descriptor too.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// A lock of the data folder that has been waited for longer than it is ever held.
#[derive(Clone, Debug)]
pub struct Stalled {
    /// The file of the lock.
    pub path: PathBuf,
    /// The process that holds it, where the system tells.
    pub pid: Option<u32>,
}

impl fmt::Display for Stalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, pid } = self;
        match pid {
            Some(pid) => write!(
                f,
                "waiting for process {pid}, which holds `{}`: if it is stopped, `kill -CONT {pid}` lets it go on",
                path.display()
            ),
            None => write!(f, "waiting for another process, which holds `{}`", path.display()),
        }
    }
}

impl DataFolder {
    /// Locks one of the files in the folder of locks. Who holds it is told after a second, and is an error after a minute.
    pub(crate) fn lock(&self, name: &str, how: FlockOperation) -> Result<Locked, StoreError> {
        let path = self.locks_path().join(name);
        let trouble = |error: io::Error| StoreError::io("lock", &path, error);
        let file = self.locks().and_then(|locks| locks.open_or_make(name)).map_err(trouble)?;
        let at_once = match how {
            FlockOperation::LockShared => FlockOperation::NonBlockingLockShared,
            _ => FlockOperation::NonBlockingLockExclusive,
        };
        match retry_on_intr(|| flock(&file, at_once)) {
            Ok(()) => return Ok(Locked(file)),
            Err(Errno::WOULDBLOCK) => {}
            Err(error) => return Err(trouble(error.into())),
        }
        let same = file.try_clone().map_err(trouble)?;
        // The kernel knows no lock with a limit of time. Left behind, this thread ends with the holder, and closes a file that
        // is not taken over.
        let (locked, answer) = mpsc::sync_channel(0);
        let wait = move || {
            let done = retry_on_intr(|| flock(&file, how)).map(|()| Locked(file));
            let _ = locked.send(done.map_err(io::Error::from));
        };
        let thread = std::thread::Builder::new().name("offshoot-lock".to_owned());
        thread.spawn(wait).map_err(trouble)?;
        let stalled = || Stalled { path: path.clone(), pid: holder(&same) };
        match answer.recv_timeout(self.patience.soon) {
            Err(RecvTimeoutError::Timeout) => {
                self.on_stall.iter().for_each(|tell| tell(&stalled()));
            }
            locked => return taken(locked).map_err(trouble),
        }
        match answer.recv_timeout(self.patience.after) {
            Err(RecvTimeoutError::Timeout) => {
                let Stalled { path, pid } = stalled();
                Err(StoreError::Stalled { path, pid })
            }
            locked => taken(locked).map_err(trouble),
        }
    }
}

fn taken(locked: Result<io::Result<Locked>, RecvTimeoutError>) -> io::Result<Locked> {
    locked.unwrap_or_else(|_| Err(io::Error::other("the thread that waited for the lock is gone")))
}

/// The process that holds a lock on this file, as the system lists it.
fn holder(file: &File) -> Option<u32> {
    let there = fstat(file).ok()?;
    let (major, minor, inode) = (major(there.st_dev), minor(there.st_dev), there.st_ino);
    let file = format!("{major:02x}:{minor:02x}:{inode}");
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| holder_in(line, &file))
}

/// The process in a line like `1: FLOCK  ADVISORY  WRITE 2031 fe:00:393239 0 EOF`. Those that wait have an arrow.
fn holder_in(line: &str, file: &str) -> Option<u32> {
    let mut words = line.split_whitespace().skip(1);
    let [kind, _, _, pid, at] = [(); 5].map(|()| words.next());
    (kind? == "FLOCK" && at? == file).then(|| pid?.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_found_in_the_list_of_locks() {
        let check = |line, expected| assert_eq!(holder_in(line, "fe:00:39"), expected, "{line}");
        check("1: FLOCK  ADVISORY  WRITE 2031 fe:00:39 0 EOF", Some(2031));
        check("1: -> FLOCK  ADVISORY  WRITE 2032 fe:00:39 0 EOF", None);
        check("2: POSIX  ADVISORY  WRITE 2031 fe:00:39 0 EOF", None);
        check("1: FLOCK  ADVISORY  WRITE 2031 fe:00:40 0 EOF", None);
        check("1: FLOCK  ADVISORY  WRITE -1 fe:00:39 0 EOF", None);
        check("", None);
    }
}
