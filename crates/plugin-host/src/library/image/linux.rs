//! Sealed memory: a file without a name that no process can change, this one included.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;

/// The most bytes of a name that the kernel takes.
const LONGEST_NAME: usize = 249;

/// A library is sealed at the latest with this try.
const TRIES: u32 = 10;

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
        Ok(unless_busy(|| fcntl_add_seals(&self.file, seals))?)
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

/// Seals again while the kernel itself uses a page for a moment, such as to move it. It waits a tenth of a second for that in each try.
fn unless_busy(mut seal: impl FnMut() -> Result<(), Errno>) -> Result<(), Errno> {
    for _ in 1..TRIES {
        match seal() {
            Err(Errno::BUSY) => {}
            sealed => return sealed,
        }
    }
    seal()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;

    use rustix::pipe::{SpliceFlags, pipe, splice};

    use super::*;

    /// A page that is in a pipe is used until it is read.
    #[test]
    fn a_page_that_is_used_keeps_a_library_from_being_sealed() {
        let mut image = Image::new(Path::new("x")).expect("there is memory");
        image.add(b"a library").expect("there is memory");
        let (out, into) = pipe().expect("there is memory");
        let mut from = 0;
        let moved = splice(&image.file, Some(&mut from), &into, None, 9, SpliceFlags::empty());
        assert_eq!(moved, Ok(9));
        let busy = fcntl_add_seals(&image.file, SealFlags::WRITE);
        assert_eq!(busy, Err(Errno::BUSY), "the page is used");
        File::from(out).read_exact(&mut [0; 9]).expect("nine bytes are in it");
        image.seal().expect("the page was read");
    }

    #[test]
    fn sealing_is_tried_again_while_a_page_is_used() {
        for (busy, then, tries, expected) in [
            (0, Ok(()), 1, Ok(())),
            (3, Ok(()), 4, Ok(())),
            (TRIES - 1, Ok(()), TRIES, Ok(())),
            (TRIES, Ok(()), TRIES, Err(Errno::BUSY)),
            (2, Err(Errno::PERM), 3, Err(Errno::PERM)),
        ] {
            let mut tried = 0;
            let sealed = unless_busy(|| {
                tried += 1;
                if tried <= busy { Err(Errno::BUSY) } else { then }
            });
            assert_eq!((sealed, tried), (expected, tries));
        }
    }

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
