//! Sealed memory: a file without a name that neither we nor anybody else can change.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::IntoRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

/// A path from which these bytes can be opened, for the rest of the process.
pub(in super::super) fn keep(_path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(memfd_create("plugin", flags)?);
    file.write_all(bytes)?;
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    fcntl_add_seals(&file, seals)?;
    // It is never closed: the loader knows libraries by their paths, and would take another plugin under the same number
    // for this one.
    Ok(format!("/proc/self/fd/{}", file.into_raw_fd()).into())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_kept_cannot_be_changed() {
        let path = keep(Path::new("x"), b"a library").expect("there is memory");
        assert_eq!(fs::read(&path).expect("it is there"), b"a library");
        for open in [fs::OpenOptions::new().write(true), fs::OpenOptions::new().append(true)] {
            let written = open.open(&path).and_then(|mut file| file.write_all(b"another"));
            written.expect_err("it is sealed");
        }
        File::create(&path).expect_err("nor can it be cut");
        assert_eq!(fs::read(&path).expect("it is there"), b"a library");
        assert_ne!(
            keep(Path::new("x"), b"a library").expect("there is memory"),
            path,
            "each has its own"
        );
    }
}
