//! A small file system of its own, to fill.

use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};
use tempfile::TempDir;

/// Mounted until dropped.
pub(crate) struct Tmpfs {
    folder: TempDir,
    size: u64,
}

impl Tmpfs {
    /// Mounts one of so many bytes. None, with a word why, where we may not mount; in continuous integration that is a
    /// failure.
    pub(crate) fn mount(size: u64) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let options = std::ffi::CString::new(format!("size={size},mode=0700")).unwrap();
        match mount("tmpfs", folder.path(), "tmpfs", MountFlags::empty(), Some(&*options)) {
            Ok(()) => Some(Self { folder, size }),
            Err(error) => {
                #[expect(
                    clippy::disallowed_methods,
                    reason = "tests are told by their caller whether they may skip"
                )]
                let must_run = std::env::var("CI").is_ok_and(|value| value == "true");
                assert!(!must_run, "cannot mount a file system to fill: {error}");
                println!("SKIPPED: cannot mount a file system to fill: {error}");
                None
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes until nothing fits any more; the file to remove when there is to be space again.
    pub(crate) fn fill(&self) -> PathBuf {
        use std::io::Write;
        let path = self.path().join("ballast");
        let mut ballast = std::fs::File::create(&path).unwrap();
        let block = vec![1; 4096];
        let written = (0..=self.size / 4096).take_while(|_| ballast.write_all(&block).is_ok());
        assert!(written.count() as u64 <= self.size / 4096, "it never became full");
        path
    }

    /// Nothing can be written any more, not even by the superuser.
    pub(crate) fn make_read_only(&self) {
        mount_remount(self.path(), MountFlags::RDONLY, "").unwrap();
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // Detached, because a store of a failed test may still have files open in it.
        unmount(self.path(), UnmountFlags::DETACH).unwrap();
    }
}
