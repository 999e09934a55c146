//! The lock by which one process runs a tree.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::mpsc;
use std::time::Duration;

use offshoot_model::RootId;
use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, test_kill_process};

use super::DataFolder;
use super::lock::Locked;
use crate::StoreError;
use crate::below::{Below, There, if_there};
use crate::error::Doing;

/// The time from a fork to an exec, which is a matter of milliseconds; a hundred times that on a machine that has too much
/// to do. What holds a lock for longer without its holder is no child on its way.
const EXEC: Duration = Duration::from_secs(1);

/// The time for which a process that looks for trees without a supervisor may hold one, with the end of what others have left.
const LOOK: Duration = Duration::from_secs(60);

/// A tree, held by this process until dropped. The descriptor behind it is closed on exec, so that no agent inherits
/// the lock and outlives us with it.
#[derive(Debug)]
pub struct RootLock {
    root: RootId,
    locks: Below,
    _file: Locked,
    /// True if the file stays when the lock is released.
    is_kept: bool,
    /// The part in the common lock. While it is held, no file of a tree is taken for one that will never be finished.
    _user: Locked,
}

impl RootLock {
    /// The tree.
    pub fn root(&self) -> RootId {
        self.root
    }

    /// Releases the tree and leaves the file that shows that it was held: its processes are still to be ended, by the process
    /// that finds that file.
    pub fn abandon(mut self) {
        self.is_kept = true;
    }
}

impl DataFolder {
    /// Holds a tree for this process: a process that runs a tree takes this first. Refused with [`StoreError::Held`] while
    /// another process, or another part of this one, holds it.
    pub fn hold(&self, root: RootId) -> Result<RootLock, StoreError> {
        self.take(root, false)
    }

    /// Holds a tree whose id was minted just now. No other process runs it, but one that looks for trees without a supervisor may find the
    /// file before it is locked, and hold it for that moment: it is waited for.
    pub fn hold_new(&self, root: RootId) -> Result<RootLock, StoreError> {
        self.take(root, true)
    }

    fn take(&self, root: RootId, is_new: bool) -> Result<RootLock, StoreError> {
        let user = self.lock(USERS, FlockOperation::LockShared)?;
        let name = root.to_string();
        let path = self.locks_path().join(&name);
        let trouble = |error| StoreError::io("lock", &path, error);
        let locks = self.locks().map_err(trouble)?;
        loop {
            let mut file = locks.open_or_make(&name).map_err(trouble)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                // Another process only looked, and is done by now.
                Err(Errno::WOULDBLOCK) if is_free(&file).map_err(trouble)? => continue,
                Err(Errno::WOULDBLOCK) => {
                    let pid = written_pid(&mut file);
                    let ours = FlockOperation::LockExclusive;
                    let patience = match is_new {
                        true => Some(LOOK),
                        false => pid.is_some_and(is_gone).then_some(EXEC),
                    };
                    let lets_go = |patience| let_go_soon(&file, ours, patience).map_err(trouble);
                    if !patience.map_or(Ok(false), lets_go)? {
                        return Err(StoreError::Held { root, pid });
                    }
                }
                Err(error) => return Err(trouble(error.into())),
            }
            // The last holder may have removed the file between our opening and our locking it. Then another process
            // can lock a new one of the same name, and what we hold is worth nothing.
            let ours = There::of(&file).map_err(trouble)?;
            if !locks.there(&name).is_ok_and(|there| there.is(&ours)) {
                continue;
            }
            file.set_len(0)
                .and_then(|()| writeln!(file, "{}", std::process::id()))
                .map_err(trouble)?;
            return Ok(RootLock { root, locks, _file: Locked(file), is_kept: false, _user: user });
        }
    }

    /// True if some process holds the tree right now, this one included. A tree on record that is neither over nor held
    /// has lost its supervisor. The lock of a process that is gone is waited for, as [`hold`](Self::hold) does.
    pub fn is_held(&self, root: RootId) -> Result<bool, StoreError> {
        let name = root.to_string();
        let path = self.locks_path().join(&name);
        let file = self.locks().and_then(|locks| locks.read(&name));
        let Some(mut file) = if_there(file).doing("look at", &path)? else { return Ok(false) };
        if is_free(&file).doing("look at", &path)? {
            return Ok(false);
        }
        let shared = FlockOperation::LockShared;
        let let_go = written_pid(&mut file).is_some_and(is_gone)
            && let_go_soon(&file, shared, EXEC).doing("look at", &path)?;
        Ok(!let_go)
    }

    /// The lock that all hold who run a tree, for this process alone; none where some tree is held.
    pub(crate) fn alone(&self) -> Result<Option<Locked>, StoreError> {
        let trouble = |error| StoreError::io("lock", &self.locks_path().join(USERS), error);
        let file = self.locks().and_then(|locks| locks.open_or_make(USERS)).map_err(trouble)?;
        match retry_on_intr(|| flock(&file, FlockOperation::NonBlockingLockExclusive)) {
            Ok(()) => Ok(Some(Locked(file))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(trouble(error.into())),
        }
    }
}

/// The name of the lock that all hold who run a tree.
const USERS: &str = "values";

impl Drop for RootLock {
    fn drop(&mut self) {
        if !self.is_kept {
            // Removed while it is still locked. If that fails an unlocked file stays behind, which holds nothing.
            let _ = self.locks.remove(&self.root.to_string());
        }
    }
}

/// True if no process holds this file. Several may look at once.
fn is_free(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => flock(file, FlockOperation::Unlock).map(|()| true).map_err(io::Error::from),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// True if there is no such process any more. One that has ended and was not waited for is still there.
fn is_gone(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

/// Waits for a lock whose holder is gone or only looks, and answers whether this file has it now. A child that the holder had just forked has
/// every descriptor of its own until it executes its program, and outlives it that long.
fn let_go_soon(file: &File, how: FlockOperation, patience: Duration) -> io::Result<bool> {
    let same = file.try_clone()?;
    let (told, hears) = mpsc::channel();
    // The kernel knows no lock with a limit of time. Left behind, this one ends with the holder, and holds nothing then.
    std::thread::Builder::new().name("offshoot-lock".to_owned()).spawn(move || {
        if retry_on_intr(|| flock(&same, how)).is_ok() {
            // If the wait was dropped, the lock is released with its last descriptor, which is this one.
            let _ = told.send(());
        }
    })?;
    Ok(hears.recv_timeout(patience).is_ok())
}

fn written_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
