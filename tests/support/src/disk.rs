//! Disks that are full, or cannot be written.

use std::path::{Path, PathBuf};

use std::ffi::CString;
use std::fs::File;
use std::io;

use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};
use tempfile::TempDir;

use crate::skip::{lacking, skip};

/// A small disk in memory, mounted on a folder for as long as this value lives. Only root may mount.
#[derive(Debug)]
pub struct Disk {
    path: PathBuf,
    /// The folder below the mount, where it is the disk's own.
    _own: Option<TempDir>,
}

impl Disk {
    /// An empty disk of so many bytes, rounded up to pages. None, with a line that says so, where mounting is not permitted.
    pub fn of(bytes: u64) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder to mount on");
        let path = folder.path().to_owned();
        Self::mounted(path, Some(folder), bytes)
    }

    /// The same on a folder of the caller's, which is empty while the disk is there.
    pub fn over(folder: &Path, bytes: u64) -> Option<Self> {
        Self::mounted(folder.to_owned(), None, bytes)
    }

    fn mounted(path: PathBuf, own: Option<TempDir>, bytes: u64) -> Option<Self> {
        match mount("tmpfs", &path, "tmpfs", MountFlags::empty(), Some(&*options(bytes))) {
            Ok(()) => Some(Self { path, _own: own }),
            Err(error) => {
                skip("a small disk", &format!("it cannot be mounted: {error}"));
                None
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes until it is full. Returns the file to remove when there is to be space again.
    ///
    /// # Panics
    ///
    /// Where it cannot be filled.
    pub fn fill(&self) -> PathBuf {
        let path = self.path().join("ballast");
        let mut ballast = File::create(&path).expect("there is room for a name");
        let error = io::copy(&mut io::repeat(1), &mut ballast).expect_err("it is a small disk");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        path
    }

    /// Gives it room for so many bytes.
    ///
    /// # Panics
    ///
    /// Where it is no longer mounted.
    pub fn grow(&self, bytes: u64) {
        mount_remount(self.path(), MountFlags::empty(), &*options(bytes)).expect("it is mounted");
    }

    /// From now on nothing on it can be changed, not even by root.
    ///
    /// # Panics
    ///
    /// Where a file on it is open for writing.
    pub fn make_read_only(&self) {
        mount_remount(self.path(), MountFlags::RDONLY, "")
            .expect("no file on it is open for writing");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: a process that a failed test has left may still be there.
        if let Err(error) = unmount(self.path(), UnmountFlags::DETACH) {
            lacking("unmounting", &format!("{} stays: {error}", self.path().display()));
        }
    }
}

fn options(bytes: u64) -> CString {
    CString::new(format!("size={bytes},mode=0755")).expect("a number has no NUL")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn a_full_disk_is_full_and_goes_away() {
        let Some(disk) = Disk::of(64 * 1024) else { return };
        let folder = disk.path().to_owned();
        let error = fs::write(folder.join("large"), vec![0; 128 * 1024]).expect_err("it is small");
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        drop(disk);
        assert!(!folder.exists());
    }

    #[test]
    fn a_read_only_disk_cannot_be_written() {
        let Some(disk) = Disk::of(64 * 1024) else { return };
        fs::write(disk.path().join("before"), "kept").expect("it can still be written");
        disk.make_read_only();
        let error = fs::write(disk.path().join("after"), "").expect_err("it is read-only");
        assert_eq!(error.kind(), ErrorKind::ReadOnlyFilesystem);
        assert_eq!(
            fs::read_to_string(disk.path().join("before")).expect("the file cannot be read"),
            "kept"
        );
    }
}
