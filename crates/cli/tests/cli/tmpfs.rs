//! A small disk to fill.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};

/// A file system in memory, mounted until it is dropped.
pub(crate) struct Tmpfs {
    path: PathBuf,
    /// The folder of its own, where it has one.
    _own: Option<tempfile::TempDir>,
}

impl Tmpfs {
    /// Mounts one of so many bytes. Where we may not mount there is none and the test says so; where `CI` is set, that is
    /// a failure.
    pub(crate) fn mount(size: u64) -> Option<Self> {
        let folder = tempfile::tempdir().expect("the system has room for a folder");
        let mut disk = Self::mount_at(folder.path(), size)?;
        disk._own = Some(folder);
        Some(disk)
    }

    /// Mounts one over a folder that is there.
    pub(crate) fn mount_at(folder: &Path, size: u64) -> Option<Self> {
        match mount("tmpfs", folder, "tmpfs", MountFlags::empty(), Some(&*options(size))) {
            Ok(()) => Some(Self { path: folder.to_owned(), _own: None }),
            Err(error) => {
                assert!(std::env::var_os("CI").is_none(), "cannot mount a disk to fill: {error}");
                writeln!(io::stderr(), "skipped: cannot mount a disk to fill: {error}")
                    .expect("the test's own output is open");
                None
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes until nothing fits any more. Names the file to remove when there is to be space again.
    pub(crate) fn fill(&self) -> PathBuf {
        let path = self.path().join("ballast");
        let mut ballast = File::create(&path).expect("there is room for a name");
        let error = io::copy(&mut io::repeat(1), &mut ballast).expect_err("it is a small disk");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        path
    }

    /// From now on it has room for so many bytes.
    pub(crate) fn grow(&self, size: u64) {
        mount_remount(self.path(), MountFlags::empty(), &*options(size)).expect("it is mounted");
    }

    /// From now on nothing can be written to it.
    pub(crate) fn make_read_only(&self) {
        mount_remount(self.path(), MountFlags::RDONLY, "").expect("it is mounted");
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // Detached, because a command that a failed test left running may still have files open in it.
        unmount(self.path(), UnmountFlags::DETACH).expect("it is mounted");
    }
}

fn options(size: u64) -> CString {
    CString::new(format!("size={size}")).expect("a number has no NUL")
}
