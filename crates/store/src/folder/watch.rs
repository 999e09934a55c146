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
    /// The lock of whatever writes.
    writing: Option<File>,
    /// Ends when no process holds the tree any more.
    held: OwnedFd,
}

impl Watch {
    pub(super) fn new(
        folder: PathBuf,
        lock: io::Result<File>,
        writing: io::Result<File>,
    ) -> Result<Self, StoreError> {
        let trouble = |error: io::Error| StoreError::io("watch", &folder, error);
        let changes = inotify::init(CreateFlags::CLOEXEC).map_err(|error| trouble(error.into()))?;
        inotify::add_watch(&changes, &folder, WatchFlags::MODIFY | WatchFlags::CREATE)
            .map_err(|error| trouble(error.into()))?;
        let (held, holds) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| trouble(error.into()))?;
        // If the file is gone, its holder is gone too, and the pipe ends at once.
        if let Ok(file) = lock {
            let hang_up_when_free = move || {
                wait_for(&file);
                drop(holds);
            };
            let thread = std::thread::Builder::new().name("lock".to_owned());
            thread.spawn(hang_up_when_free).map_err(trouble)?;
        }
        // None has written where there is no such file.
        let writing = writing.ok();
        // A write that has begun gives no notice any more, and the first read could come before it is flushed.
        writing.as_ref().inspect(|writing| wait_for(writing));
        Ok(Self { folder, changes, writing, held })
    }

    /// Waits until something was written since the last time, or no process holds the tree any more.
    ///
    /// # Errors
    ///
    /// Fails if the system does not tell.
    pub fn wait(&mut self) -> Result<(), StoreError> {
        let both = [
            PollFd::new(&self.changes, PollFlags::IN),
            PollFd::new(&self.held, PollFlags::IN | PollFlags::HUP),
        ];
        let is_written = self.poll(both)?;
        self.take(is_written)
    }

    /// Waits until something was written since the last time, whether or not a process holds the tree: for the followers of a tree
    /// with which another process may go on.
    ///
    /// # Errors
    ///
    /// Fails if the system does not tell.
    pub fn wait_for_a_write(&mut self) -> Result<(), StoreError> {
        let is_written = self.poll([PollFd::new(&self.changes, PollFlags::IN)])?;
        self.take(is_written)
    }

    /// Waits for one of these. Returns true if it was the first.
    fn poll<const N: usize>(&self, mut any: [PollFd<'_>; N]) -> Result<bool, StoreError> {
        loop {
            match poll(&mut any, None) {
                Ok(_) => return Ok(any[0].revents().contains(PollFlags::IN)),
                Err(Errno::INTR) => {}
                Err(error) => return Err(StoreError::io("watch", &self.folder, error.into())),
            }
        }
    }

    /// Takes the notice of a write.
    fn take(&self, is_written: bool) -> Result<(), StoreError> {
        if is_written {
            // The content of the notice does not matter: the follower reads the record.
            let mut told = [MaybeUninit::uninit(); 4096];
            rustix::io::read(&self.changes, &mut told)
                .map_err(|error| StoreError::io("watch", &self.folder, error.into()))?;
            // The notice comes with the first bytes of a write, and a reader sees the write once it is flushed.
            self.writing.as_ref().inspect(|writing| wait_for(writing));
        }
        Ok(())
    }
}

/// Waits for a lock to be free. A process that wants it meanwhile sees that this one only looked.
fn wait_for(file: &File) {
    while let Err(Errno::INTR) = flock(file, FlockOperation::LockShared) {}
    let _ = flock(file, FlockOperation::Unlock);
}
