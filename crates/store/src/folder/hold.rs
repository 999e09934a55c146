//! Who runs a tree.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use offshoot_model::RootId;
use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, test_kill_process};

use crate::StoreError;

/// The time from a fork to an exec, which is a matter of milliseconds; a hundred times that on a machine that has too much
/// to do. Whoever holds a lock for longer without its holder is no child on its way.
const EXEC: Duration = Duration::from_secs(1);

/// A tree, held by this process until dropped. The descriptor behind it is closed on exec, so that no agent inherits
/// the lock and outlives us with it.
#[derive(Debug)]
pub struct RootLock {
    root: RootId,
    path: PathBuf,
    file: File,
    /// As long as this is held, no value is taken away.
    _users: Users,
}

/// The file that everybody holds who runs a tree.
#[derive(Debug)]
pub(crate) struct Users {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
}

impl Users {
    pub(crate) fn open(path: PathBuf) -> Result<Self, StoreError> {
        match open(&path) {
            Ok(file) => Ok(Self { path, file }),
            Err(error) => Err(StoreError::io("lock", &path, error)),
        }
    }

    /// Waits for whoever takes values away, which is a matter of moments.
    fn join(self) -> Result<Self, StoreError> {
        loop {
            match flock(&self.file, FlockOperation::LockShared) {
                Ok(()) => return Ok(self),
                Err(Errno::INTR) => {}
                Err(error) => return Err(StoreError::io("lock", &self.path, error.into())),
            }
        }
    }
}

impl RootLock {
    /// The tree.
    pub fn root(&self) -> RootId {
        self.root
    }

    /// Whether somebody holds the tree. Looks, and holds nothing itself.
    pub(crate) fn is_taken(folder: &Path, root: RootId) -> Result<bool, StoreError> {
        let path = folder.join(root.to_string());
        let trouble = |error| StoreError::io("look at", &path, error);
        match File::open(&path) {
            Ok(file) => is_free(&file).map(|free| !free).map_err(trouble),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(trouble(error)),
        }
    }

    pub(crate) fn take(folder: &Path, root: RootId, users: Users) -> Result<Self, StoreError> {
        let users = users.join()?;
        let path = folder.join(root.to_string());
        let trouble = |error| StoreError::io("lock", &path, error);
        loop {
            let mut file = open(&path).map_err(trouble)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                // Somebody only looked, and is done by now.
                Err(Errno::WOULDBLOCK) if is_free(&file).map_err(trouble)? => continue,
                Err(Errno::WOULDBLOCK) => {
                    let pid = written_pid(&mut file);
                    if !pid.is_some_and(is_gone) || !let_go_soon(&file).map_err(trouble)? {
                        return Err(StoreError::Held { root, pid });
                    }
                }
                Err(error) => return Err(trouble(error.into())),
            }
            // The last holder may have removed the file between our opening and our locking it. Then somebody else
            // can lock a new one of the same name, and what we hold is worth nothing.
            if !is_same_file(&file, &path) {
                continue;
            }
            file.set_len(0)
                .and_then(|()| writeln!(file, "{}", std::process::id()))
                .map_err(trouble)?;
            return Ok(Self { root, path, file, _users: users });
        }
    }
}

impl Drop for RootLock {
    fn drop(&mut self) {
        // Removed while it is still locked. If that fails an unlocked file stays behind, which holds nothing.
        let _ = fs::remove_file(&self.path);
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Whether nobody holds this file. Several may look at once.
fn is_free(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => flock(file, FlockOperation::Unlock).map(|()| true).map_err(io::Error::from),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Whether there is no such process any more. One that has ended and was not waited for is still there.
fn is_gone(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

/// Waits for a lock whose holder is gone, and answers whether it is ours now. A child that the holder had just forked has
/// every descriptor of its own until it executes its program, and outlives it that long.
fn let_go_soon(file: &File) -> io::Result<bool> {
    let same = file.try_clone()?;
    let (told, hears) = mpsc::channel();
    // The kernel knows no lock with a limit of time. Left behind, this one ends with the holder, and holds nothing then.
    std::thread::Builder::new().name("offshoot-lock".to_owned()).spawn(move || {
        if retry_on_intr(|| flock(&same, FlockOperation::LockExclusive)).is_ok() {
            // Where nobody waits any more the lock goes with its last descriptor, which is this one.
            let _ = told.send(());
        }
    })?;
    Ok(hears.recv_timeout(EXEC).is_ok())
}

fn written_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn is_same_file(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}
