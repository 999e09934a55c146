//! Waking up when a supervisor of this user comes or goes.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;

/// Wakes its holder when an entry of the registry is written or removed.
#[derive(Debug)]
pub struct RegistryWatch {
    changes: OwnedFd,
}

impl RegistryWatch {
    /// A watch of these folders, as far as they can be watched.
    pub(super) fn new<'a>(folders: impl Iterator<Item = &'a PathBuf>) -> io::Result<Self> {
        let changes = inotify::init(CreateFlags::CLOEXEC)?;
        let mut failure = io::Error::from(io::ErrorKind::NotFound);
        let mut is_watched = false;
        for folder in folders {
            // An entry is written aside, and then renamed.
            match inotify::add_watch(&changes, folder, WatchFlags::MOVED_TO | WatchFlags::DELETE) {
                Ok(_) => is_watched = true,
                Err(error) => failure = error.into(),
            }
        }
        if is_watched { Ok(Self { changes }) } else { Err(failure) }
    }

    /// Waits until one has come or gone since the last time. Blocks.
    ///
    /// # Errors
    ///
    /// Fails if the system does not say.
    pub fn wait(&self) -> io::Result<()> {
        // The content of the notice does not matter: the holder looks into the registry.
        let mut told = [MaybeUninit::uninit(); 4096];
        loop {
            match rustix::io::read(&self.changes, &mut told) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
