//! Waking up when another process writes to the record of a tree, or lets go of it.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::StoreError;

/// Wakes a follower of a tree that another process runs. What happened before it was made wakes no follower: make it, then
/// read.
#[derive(Debug)]
pub struct Watch {
    folder: PathBuf,
    changes: OwnedFd,
    /// Ends when no process holds the tree any more.
    held: OwnedFd,
}

impl Watch {
    pub(super) fn new(folder: PathBuf, lock: io::Result<File>) -> Result<Self, StoreError> {
        let trouble = |error: io::Error| StoreError::io("watch", &folder, error);
        let changes = inotify::init(CreateFlags::CLOEXEC).map_err(|error| trouble(error.into()))?;
        inotify::add_watch(&changes, &folder, WatchFlags::MODIFY | WatchFlags::CREATE)
            .map_err(|error| trouble(error.into()))?;
        let (held, holds) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| trouble(error.into()))?;
        // If the file is gone, its holder is gone too, and the pipe ends at once.
        if let Ok(file) = lock {
            std::thread::Builder::new()
                .name("lock".to_owned())
                .spawn(move || until_free(&file, holds))
                .map_err(trouble)?;
        }
        Ok(Self { folder, changes, held })
    }

    /// Waits until something was written since the last time, or no process holds the tree any more.
    ///
    /// # Errors
    ///
    /// Where the system does not say.
    pub fn wait(&mut self) -> Result<(), StoreError> {
        let mut both = [
            PollFd::new(&self.changes, PollFlags::IN),
            PollFd::new(&self.held, PollFlags::IN | PollFlags::HUP),
        ];
        loop {
            match poll(&mut both, None) {
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(StoreError::io("watch", &self.folder, error.into())),
            }
        }
        if both[0].revents().contains(PollFlags::IN) {
            // The content of the notice does not matter: the follower reads the record.
            let mut told = [MaybeUninit::uninit(); 4096];
            rustix::io::read(&self.changes, &mut told)
                .map_err(|error| StoreError::io("watch", &self.folder, error.into()))?;
        }
        Ok(())
    }
}

/// Waits for the lock to be free, and hangs up then. A process that wants it meanwhile sees that this one only looked.
fn until_free(file: &File, holds: OwnedFd) {
    while let Err(Errno::INTR) = flock(file, FlockOperation::LockShared) {}
    let _ = flock(file, FlockOperation::Unlock);
    drop(holds);
}
