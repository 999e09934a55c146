//! A file system that loses what was not synced when its power is cut.
//!
//! ```text
//!  a program ── write, rename, … ──▶ as all programs see it now
//!            ── fsync ──────────────▶ as it is on the disk        at each: what a power cut just before it would leave
//! ```
//!
//! It is mounted on `/dev/fuse`, lives in memory, and keeps each file and each folder twice: as it is seen, and as it was when
//! it was last synced. A folder is the names in it: a file that was synced is lost all the same where its name was not.
//! At each sync it writes down what would be left, in two ways: nothing that was not synced; or all names as they are seen, with
//! the contents that were synced, as after a journal of names alone.
//!
//! The words that programs write into the folder `told` have left the machine: others were told them by then.

mod disk;
mod mounted;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use fuser::{BackgroundSession, Config, MountOption};
use tempfile::TempDir;

use self::disk::{Disk, lock};
use self::mounted::Mounted;

/// The folder into which programs write what they tell.
pub const TOLD: &str = "told";

/// A mounted file system.
#[derive(Debug)]
pub struct Power {
    session: Option<BackgroundSession>,
    state: Shared,
    folder: TempDir,
}

/// The files that a power cut leaves, and the words that were told by then.
#[derive(Clone, Debug)]
pub struct Cut {
    /// The file that was about to be synced.
    pub before: PathBuf,
    /// The contents that programs had written into the files of the folder `told`.
    pub told: BTreeMap<PathBuf, Bytes>,
    /// The files left where nothing is kept that was not synced.
    pub dropped: Image,
    /// The files left where all names are kept.
    pub renamed: Image,
}

/// Files, folders and links by their paths.
pub type Image = BTreeMap<PathBuf, Left>;

/// One of them.
#[derive(Clone, Debug)]
pub enum Left {
    /// A folder.
    Folder,
    /// A file.
    File(Bytes),
    /// A link.
    Link(PathBuf),
}

type Bytes = Arc<Vec<u8>>;
type Shared = Arc<Mutex<Disk>>;

impl Power {
    /// Mounts an empty one; what stands in the way where that cannot be done.
    pub fn mount() -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let state: Shared = Arc::default();
        let mut config = Config::default();
        config.mount_options.push(MountOption::FSName("power".to_owned()));
        let session = fuser::spawn_mount(Mounted(Arc::clone(&state)), folder.path(), &config)?;
        let power = Self { session: Some(session), state, folder };
        fs::create_dir(power.path().join(TOLD))?;
        Ok(power)
    }

    /// The folder on which it is mounted.
    pub fn path(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Returns what a power cut would have left just before each sync there was, and now.
    pub fn cuts(&self) -> Vec<Cut> {
        let mut state = lock(&self.state);
        state.cut(PathBuf::from("the end"));
        state.cuts.clone()
    }
}

impl Drop for Power {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            // Where a process is still in it, it goes with that.
            let _ = session.umount_and_join();
        }
    }
}

/// Writes what is left into a folder of an ordinary file system.
pub fn restore(image: &Image, into: &Path) -> io::Result<()> {
    for (path, left) in image {
        let path = into.join(path);
        match left {
            Left::Folder => fs::create_dir_all(path)?,
            Left::File(bytes) => fs::write(path, &**bytes)?,
            Left::Link(target) => std::os::unix::fs::symlink(target, path)?,
        }
    }
    Ok(())
}
