//! Sealed memory: a file without a name that no process can change, this one included.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

/// The most bytes of a name that the kernel takes.
const LONGEST_NAME: usize = 249;

/// A copy of a library, named after it: debuggers and `/proc/PID/maps` show the name.
#[derive(Debug)]
pub(in super::super) struct Image {
    file: File,
    path: PathBuf,
}

impl Image {
    /// An empty one.
    pub(in super::super) fn new(library: &Path) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let name = library.file_name().unwrap_or_default().as_bytes();
        let file = File::from(memfd_create(&name[..name.len().min(LONGEST_NAME)], flags)?);
        let path = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
        Ok(Self { file, path })
    }

    /// Writes what comes next.
    pub(in super::super) fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Seals it: that was all of it, and it stays as it is.
    pub(in super::super) fn seal(&mut self) -> io::Result<()> {
        let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        Ok(fcntl_add_seals(&self.file, seals)?)
    }

    /// Returns the file, to be read.
    pub(in super::super) fn file(&self) -> &File {
        &self.file
    }

    /// Returns the path at which this process can open it.
    pub(in super::super) fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_sealed_cannot_be_changed() {
        let mut image = Image::new(Path::new("x")).expect("there is memory");
        image.add(b"a ").expect("there is memory");
        image.add(b"library").expect("there is memory");
        image.seal().expect("no process has mapped it");
        let path = image.path();
        assert_eq!(fs::read(path).expect("the file cannot be read"), b"a library");
        for open in [fs::OpenOptions::new().write(true), fs::OpenOptions::new().append(true)] {
            let written = open.open(path).and_then(|mut file| file.write_all(b"another"));
            written.expect_err("it is sealed");
        }
        File::create(path).expect_err("nor can it be cut");
        assert_eq!(fs::read(path).expect("the file cannot be read"), b"a library");
        image.add(b"!").expect_err("nor by us");
    }
}
