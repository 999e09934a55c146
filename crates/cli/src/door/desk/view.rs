//! Files as the calling process sees them. One in a container, or behind any other wrapper, may have other files at the
//! same paths; to read ours instead would give it what its wrapper keeps from it.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use offshoot_door::Peer;
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};

/// A file that a caller has named.
#[derive(Debug)]
pub(super) struct Seen {
    /// Where this process finds it, for as long as this value lives.
    pub(super) path: PathBuf,
    /// Held where the path leads to it through this descriptor.
    _file: Option<OwnedFd>,
}

impl Seen {
    /// What the process at the other end calls by this absolute path.
    pub(super) fn by(peer: Peer, path: &Path) -> io::Result<Self> {
        let pid = peer.pid.ok_or_else(|| io::Error::other("the calling process cannot be seen"))?;
        let root = PathBuf::from(format!("/proc/{pid}/root"));
        if is_here(pid, &root)? {
            return Ok(Self { path: path.to_owned(), _file: None });
        }
        // Every link on the way, absolute ones too, leads to where it would lead the caller. Nothing is opened in the
        // sense in which to open a pipe is to wait for its writer.
        let file = openat2(
            File::open(&root)?,
            path.strip_prefix("/").unwrap_or(path),
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS,
        )?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        Ok(Self { path, _file: Some(file) })
    }
}

/// Whether the process has the same files at the same paths as this one.
fn is_here(pid: u32, root: &Path) -> io::Result<bool> {
    let same = |ours: &Path, theirs: &Path| {
        let (ours, theirs) = (fs::metadata(ours)?, fs::metadata(theirs)?);
        io::Result::Ok((ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino()))
    };
    let mounts = PathBuf::from(format!("/proc/{pid}/ns/mnt"));
    Ok(same(Path::new("/proc/self/ns/mnt"), &mounts)? && same(Path::new("/"), root)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_beside_us_sees_what_we_see() {
        let peer = Peer { uid: 0, pid: Some(std::process::id()) };
        let seen = Seen::by(peer, Path::new("/etc/../etc")).expect("it is this very process");
        assert_eq!(seen.path, Path::new("/etc/../etc"));
        assert!(Seen::by(Peer { uid: 0, pid: None }, Path::new("/etc")).is_err());
    }
}
