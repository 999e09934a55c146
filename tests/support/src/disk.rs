//! Disks that are full, or cannot be written.

use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};
use tempfile::TempDir;

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
        let size =
            std::ffi::CString::new(format!("size={bytes},mode=0755")).expect("no zero in it");
        match mount("tmpfs", &path, "tmpfs", MountFlags::empty(), size.as_c_str()) {
            Ok(()) => Some(Self { path, _own: own }),
            Err(error) => {
                skipped(&format!("a disk cannot be mounted here: {error}"));
                None
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// From now on nothing on it can be changed, not even by root.
    ///
    /// # Panics
    ///
    /// Where a file on it is open for writing.
    pub fn make_read_only(&self) {
        mount_remount(self.path(), MountFlags::RDONLY, "").expect("nobody writes on it");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: a process that a failed test has left may still be there.
        if let Err(error) = unmount(self.path(), UnmountFlags::DETACH) {
            skipped(&format!("{} stays mounted: {error}", self.path().display()));
        }
    }
}

#[expect(clippy::print_stderr, reason = "a test that proves nothing must say so")]
fn skipped(why: &str) {
    eprintln!("SKIPPED: {why}");
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
        assert_eq!(fs::read_to_string(disk.path().join("before")).expect("it can be read"), "kept");
    }
}
