//! The folder in which the processes of a program work: a copy of its files, as they were read, that no other user can enter.
//!
//! The folder is held by a lock, which the kernel lets go of however this process ends. A folder of ours that is not held was left by
//! a process that was killed, and is removed when the next program is made ready.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, openat};
use rustix::io::Errno;
use tempfile::{Builder, TempDir};

use super::Program;

/// The beginning of the names of such folders.
const PREFIX: &str = "offshoot-plugin-";

/// The private copy of a program's files. Removed when dropped.
pub(super) struct PrivateCopy {
    folder: TempDir,
    /// Released after the folder was removed.
    _lock: File,
}

impl PrivateCopy {
    /// Writes a copy below the folder for temporary files that this environment names.
    pub(super) fn new(program: &Program, environment: &[(OsString, OsString)]) -> io::Result<Self> {
        let place = place(environment);
        remove_abandoned(&place);
        let copy = loop {
            let folder = Builder::new()
                .prefix(PREFIX)
                .permissions(Permissions::from_mode(0o700))
                .tempdir_in(&place)?;
            // Another process that removes abandoned folders may have seen this one before it was held.
            if let Some(lock) = hold(folder.path())?.filter(|lock| leads_to(folder.path(), lock)) {
                break Self { folder, _lock: lock };
            }
        };
        program.write_into(copy.path())?;
        Ok(copy)
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// The folder for temporary files.
fn place(environment: &[(OsString, OsString)]) -> PathBuf {
    let named = environment.iter().find(|(name, _)| name == "TMPDIR").map(|(_, path)| path.into());
    let usable = |path: &PathBuf| path.is_absolute() && path.is_dir();
    named.filter(usable).unwrap_or_else(|| "/tmp".into())
}

/// Removes what killed processes of this user have left. What cannot be removed stays, and is tried again by the next program.
fn remove_abandoned(place: &Path) {
    let Ok(entries) = fs::read_dir(place) else { return };
    let names = entries.flatten().map(|entry| entry.file_name());
    for name in names.filter(|name| name.as_encoded_bytes().starts_with(PREFIX.as_bytes())) {
        let folder = place.join(name);
        if let Ok(Some(lock)) = hold(&folder)
            && leads_to(&folder, &lock)
        {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// Locks a folder of this user. None where another process holds it, where it is another user's, and where it is gone.
fn hold(folder: &Path) -> io::Result<Option<File>> {
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let lock = match openat(CWD, folder, how, Mode::empty()) {
        Ok(lock) => File::from(lock),
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if lock.metadata()?.uid() != rustix::process::geteuid().as_raw() {
        return Ok(None);
    }
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(lock)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// True if a path leads to the folder that is open.
fn leads_to(path: &Path, opened: &File) -> bool {
    let identity = |status: fs::Metadata| (status.dev(), status.ino());
    let there = fs::symlink_metadata(path).map(identity);
    there.is_ok_and(|there| opened.metadata().is_ok_and(|opened| identity(opened) == there))
}
