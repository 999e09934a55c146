//! The data folder, `.offshoot/`.
//!
//! ```text
//!  .offshoot/               0700; made on first use
//!    .gitignore             all of this, but not a project's configuration and agents beside it
//!    offshoot.db            events of all trees
//!    offshoot.id            which database that is, so that its loss is noticed
//!    blobs/ab/cdef…         values by the hash of their content
//!    runs/{run}/            what a run sees: context/…, and context.json that lists it
//!    spool/                 output that did not fit in memory, until it is a value
//!    locks/{root}           one for each tree that somebody runs right now
//!    locks/values           held by all who run a tree, so that nobody takes values away meanwhile
//!    locks/writing          whose turn it is to write to the database
//! ```
//!
//! Promise: several processes may use one folder at once. A tree is held by one of them, and the kernel lets go of it
//! when that process dies, however it dies.

mod aside;
mod context;
mod hold;
mod turns;
mod watch;

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use offshoot_model::{RootId, RunId};

use crate::StoreError;
use crate::blobs::Blobs;

pub(crate) use aside::{PREFIX, new_file, remove_left};
pub use context::ManifestEntry;
pub use hold::RootLock;
pub(crate) use hold::Users;
pub(crate) use turns::Turns;
pub use watch::Watch;

/// The folder's usual name.
pub const FOLDER_NAME: &str = ".offshoot";

/// The record is nobody else's business; the configuration of a project, which stands in the same folder, is.
const IGNORE: &str = "*\n!config.toml\n!config.json5\n!agents/\n!agents/**\n";

const DATABASE: &str = "offshoot.db";
const BLOBS: &str = "blobs";
const RUNS: &str = "runs";
const SPOOL: &str = "spool";
const LOCKS: &str = "locks";

/// A data folder that exists. Cheap enough to clone.
///
/// ```
/// use offshoot_store::DataFolder;
///
/// let somewhere = tempfile::tempdir()?;
/// let path = somewhere.path().join(".offshoot");
/// assert!(DataFolder::existing(&path)?.is_none());
/// let folder = DataFolder::open(&path)?;
/// assert!(folder.path().is_absolute());
/// assert!(std::fs::read_to_string(path.join(".gitignore"))?.starts_with("*\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct DataFolder {
    path: PathBuf,
    /// Whether files can share their blocks here, as far as has been tried.
    clones: Arc<AtomicBool>,
}

impl DataFolder {
    /// Opens the folder, or makes it, with whatever folders are missing above it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        make_folder(path)?;
        // Paths in prompts and environments have to hold wherever their reader works.
        let path = path.canonicalize().map_err(|error| StoreError::io("open", path, error))?;
        let mut entries =
            fs::read_dir(&path).map_err(|error| StoreError::io("open", &path, error))?;
        if entries.next().is_none() {
            // Only into a folder that was empty: somebody's own project is not to disappear from version control.
            let ignore = path.join(".gitignore");
            fs::write(&ignore, IGNORE).map_err(|error| StoreError::io("write", &ignore, error))?;
        }
        for part in [BLOBS, RUNS, SPOOL, LOCKS] {
            make_folder(&path.join(part))?;
        }
        Ok(Self::at(path))
    }

    /// Opens the folder if there is one and it has a record, or had one: for commands that only look.
    pub fn existing(path: impl AsRef<Path>) -> Result<Option<Self>, StoreError> {
        let path = path.as_ref();
        match fs::metadata(path) {
            Ok(there) if !there.is_dir() => Err(StoreError::NotAFolder { path: path.to_owned() }),
            Ok(_) => {
                let path =
                    path.canonicalize().map_err(|error| StoreError::io("open", path, error))?;
                let folder = Self::at(path);
                // One that had a record once is no folder without one.
                let has_record = folder.database().exists() || folder.witness().is_some();
                Ok(has_record.then_some(folder))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::io("open", path, error)),
        }
    }

    fn at(path: PathBuf) -> Self {
        Self { path, clones: Arc::new(AtomicBool::new(true)) }
    }

    /// The folder itself, absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of one run. Not made here: most runs of a map need none.
    pub fn run_folder(&self, run: RunId) -> PathBuf {
        self.path.join(RUNS).join(run.to_string())
    }

    /// Removes the folder of one run with all that is in it, where there is one. Values that it links to stay.
    pub fn remove_run_folder(&self, run: RunId) -> Result<(), StoreError> {
        let folder = self.run_folder(run);
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::io("remove", &folder, error))
            }
            _ => Ok(()),
        }
    }

    /// Where output goes that does not fit in memory.
    pub fn spool_folder(&self) -> PathBuf {
        self.path.join(SPOOL)
    }

    /// A new, empty file in the spool folder, mode 0600. It stays until somebody removes it or makes it a value with
    /// [`NewValue::adopt`](crate::NewValue::adopt). Whoever does not hold a tree keeps it open until then: what nobody
    /// has open is removed when the next tree is opened here.
    pub fn spool_file(&self) -> Result<(File, PathBuf), StoreError> {
        let folder = self.spool_folder();
        new_file(&folder, "spool-")
            .and_then(|file| file.keep().map_err(|error| error.error))
            .map_err(|error| StoreError::io("write into", &folder, error))
    }

    /// Holds a tree for this process: whoever runs it takes this first. Refused with [`StoreError::Held`] while
    /// somebody else, or another part of this process, holds it.
    pub fn hold(&self, root: RootId) -> Result<RootLock, StoreError> {
        RootLock::take(&self.path.join(LOCKS), root, self.users()?)
    }

    /// Whether some process holds the tree right now, this one included. A tree on record that is neither over nor held
    /// has lost its supervisor.
    pub fn is_held(&self, root: RootId) -> Result<bool, StoreError> {
        RootLock::is_taken(&self.path.join(LOCKS), root)
    }

    /// Takes hold of every tree whose supervisor has died without a word: it has left the file by which it held the
    /// tree. Whoever drops what this answers has seen to them.
    pub fn abandoned(&self) -> Result<Vec<RootLock>, StoreError> {
        let locks = self.path.join(LOCKS);
        let trouble = |error| StoreError::io("look into", &locks, error);
        let mut found = Vec::new();
        for entry in fs::read_dir(&locks).map_err(trouble)? {
            let name = entry.map_err(trouble)?.file_name();
            let Some(run) = name.to_str().and_then(|name| name.parse::<RunId>().ok()) else {
                continue;
            };
            match self.hold(RootId::new(run)) {
                Ok(lock) => found.push(lock),
                Err(StoreError::Held { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Wakes whoever follows a tree that another process runs.
    ///
    /// # Errors
    ///
    /// Where the folder cannot be watched.
    pub fn watch(&self, root: RootId) -> Result<Watch, StoreError> {
        Watch::new(self.path.clone(), self.path.join(LOCKS).join(root.to_string()))
    }

    /// Whether nothing can be written here: by its mode, or because the whole file system is mounted that way.
    pub(crate) fn is_read_only(&self) -> bool {
        use rustix::io::Errno;
        let may = rustix::fs::access(&self.path, rustix::fs::Access::WRITE_OK);
        matches!(may, Err(Errno::ROFS | Errno::ACCESS | Errno::PERM))
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path.join(DATABASE)
    }

    /// Who runs a tree here holds this file together with all others who do; who takes values away, alone.
    pub(crate) fn users(&self) -> Result<Users, StoreError> {
        Users::open(self.path.join(LOCKS).join("values"))
    }

    pub(crate) fn values_folder(&self) -> PathBuf {
        self.path.join(BLOBS)
    }

    pub(crate) fn runs_folder(&self) -> PathBuf {
        self.path.join(RUNS)
    }

    /// The turn to write to the database.
    pub(crate) fn writing_turn(&self) -> Result<Turns, StoreError> {
        Turns::open(self.path.join(LOCKS).join("writing"))
    }

    /// Whether any value was ever stored here.
    pub(crate) fn has_values(&self) -> bool {
        fs::read_dir(self.path.join(BLOBS)).is_ok_and(|mut entries| entries.next().is_some())
    }

    pub(crate) fn blobs(&self) -> Blobs {
        Blobs::new(self.path.join(BLOBS))
    }
}

/// Makes a folder that only its owner may enter, unless it is there.
pub(crate) fn make_folder(path: &Path) -> Result<(), StoreError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| match fs::metadata(path) {
        Ok(there) if !there.is_dir() => StoreError::NotAFolder { path: path.to_owned() },
        _ => StoreError::io("make", path, error),
    })
}

/// Writes a whole file or none, under its name. Until then it stands in the spool folder, where it is found if this
/// process dies.
pub(crate) fn write_whole(
    spool: &Path,
    path: &Path,
    write: impl FnOnce(&mut io::BufWriter<&File>) -> io::Result<()>,
) -> Result<(), StoreError> {
    let whole = || {
        let new = new_file(spool, PREFIX)?;
        let mut buffered = io::BufWriter::new(new.as_file());
        write(&mut buffered)?;
        buffered.flush()?;
        drop(buffered);
        new.persist(path).map_err(|error| error.error)
    };
    whole().map(drop).map_err(|error| StoreError::io("write", path, error))
}
