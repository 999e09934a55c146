//! The data folder, `.offshoot/`.
//!
//! ```text
//!  .offshoot/               0700; made on first use
//!    .gitignore             all of this, but not a project's configuration and agents beside it
//!    offshoot.db            events of all trees
//!    offshoot.id            which database that is, so that its loss is noticed
//!    blobs/ab/cdef…         values by the hash of their content
//!    contexts/{root}/…/     what runs of a tree see from their start: context/…, and context.json that lists it
//!    runs/{run}/            what is of one run: prompts, and in context/ what it has asked for later
//!    spool/                 output that did not fit in memory, until it is a value
//!    output/{root}/         what the agents of a tree said, see `output.rs`
//!    listings/{terminal}   the runs that the last listing in a terminal printed
//!    locks/{root}           one for each tree that is running
//!    locks/values           held by all who run a tree, so that what they write is not taken for a remnant
//!    locks/writing          whose turn it is to write to the database
//! ```
//!
//! Promises: several processes may use one folder at once. A tree is held by one of them, and the kernel lets go of it
//! when that process dies, however it dies. Nothing below the folder is read or written through a link.

mod context;
mod hold;
mod listings;
mod lock;
mod shared_contexts;
mod turns;
mod watch;

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use offshoot_model::{RootId, RunId};
use tempfile::TempDir;

use self::lock::Patience;
use self::turns::WRITING;
use crate::StoreError;
use crate::below::{Below, if_there};
use crate::blobs::Blobs;
use crate::error::Doing;
use crate::output::OUTPUT;

pub use hold::RootLock;
pub use lock::Stalled;
pub use shared_contexts::{SharedContext, SharedContexts};
pub use watch::Watch;

/// The folder's usual name.
pub const FOLDER_NAME: &str = ".offshoot";

/// The record is private to its user; the configuration of a project, which stands in the same folder, is.
const IGNORE: &str = "*\n!config.toml\n!config.json5\n!agents/\n!agents/**\n";

pub(crate) const DATABASE: &str = "offshoot.db";
pub(crate) const BLOBS: &str = "blobs";
pub(crate) const RUNS: &str = "runs";
pub(crate) const CONTEXTS: &str = "contexts";
pub(crate) const SPOOL: &str = "spool";
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
#[derive(Clone, derive_more::Debug)]
#[debug("DataFolder({:?})", self.path())]
pub struct DataFolder {
    /// The open folder, for what stands below it.
    pub(crate) below: Below,
    /// True if files can share their blocks here, as far as has been tried.
    clones: Arc<AtomicBool>,
    /// True if other users can read what is recorded here.
    is_exposed: Arc<AtomicBool>,
    patience: Patience,
    /// The callback that is told of a lock that is waited for.
    on_stall: Option<Arc<Tell>>,
    /// The folder itself, where it is removed with the last clone of this.
    _temporary: Option<Arc<TempDir>>,
}

type Tell = dyn Fn(&Stalled) + Send + Sync;

impl DataFolder {
    /// Opens the folder, or makes it, with whatever folders are missing above it. What is recorded in it is closed to other
    /// users; the folder itself too, where it was made here or has the [usual name](FOLDER_NAME).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        make_folder(path)?;
        // Paths in prompts and environments have to hold wherever their reader works.
        let path = path.canonicalize().doing("open", path)?;
        let folder = Self::at(Below::open(&path).doing("open", &path)?);
        if folder.below.entries().doing("open", &path)?.is_empty() {
            // Only into a folder that was empty: a project is not to disappear from version control.
            let ignore = path.join(".gitignore");
            fs::write(&ignore, IGNORE).doing("write", &ignore)?;
        }
        let is_ours = path.file_name().is_some_and(|name| name == FOLDER_NAME);
        if is_ours {
            folder.below.close_to_others(None).doing("open", &path)?;
        }
        for part in [BLOBS, RUNS, CONTEXTS, SPOOL, OUTPUT, LOCKS] {
            let made = folder.below.make_folder(part).and_then(|part| part.close_to_others(None));
            let exposed = made.doing("make", &path.join(part))?;
            folder.is_exposed.fetch_or(exposed, Ordering::Relaxed);
        }
        Ok(folder)
    }

    /// Makes a folder below that of the system for temporary files. It is removed with the last clone.
    pub fn temporary() -> Result<Self, StoreError> {
        let path = std::env::temp_dir();
        let made = tempfile::tempdir().doing("make a folder in", &path)?;
        let folder = Self::open(made.path())?;
        Ok(Self { _temporary: Some(Arc::new(made)), ..folder })
    }

    /// Opens the folder if there is one and it has a record, or had one: for commands that only look.
    pub fn existing(path: impl AsRef<Path>) -> Result<Option<Self>, StoreError> {
        let path = path.as_ref();
        let there = if_there(fs::metadata(path)).doing("open", path)?;
        let Some(there) = there else { return Ok(None) };
        if !there.is_dir() {
            return Err(StoreError::NotAFolder { path: path.to_owned() });
        }
        let opened = path.canonicalize().and_then(|path| Below::open(&path));
        let folder = Self::at(opened.doing("open", path)?);
        // One that had a record once is no folder without one.
        let has_record = folder.database().exists() || folder.witness().is_some();
        Ok(has_record.then_some(folder))
    }

    fn at(below: Below) -> Self {
        Self {
            below,
            clones: Arc::new(AtomicBool::new(true)),
            is_exposed: Arc::default(),
            patience: Patience::default(),
            on_stall: None,
            _temporary: None,
        }
    }

    /// Tells of a lock that another process has held for longer than it takes to do anything: that process is stopped, or
    /// the disk does not answer.
    pub fn on_stall(self, tell: impl Fn(&Stalled) + Send + Sync + 'static) -> Self {
        Self { on_stall: Some(Arc::new(tell)), ..self }
    }

    /// Waits for locks so long until it is told, and so much longer until that is an error, instead of a second and a
    /// minute.
    pub fn with_patience(self, soon: Duration, after: Duration) -> Self {
        Self { patience: Patience { soon, after }, ..self }
    }

    /// True if other users can read what is recorded here, and we may not change that.
    pub fn is_exposed(&self) -> bool {
        self.is_exposed.load(Ordering::Relaxed)
    }

    /// The folder itself, absolute.
    pub fn path(&self) -> &Path {
        self.below.path()
    }

    /// The folder of one run. Not made here: most runs of a map need none.
    pub fn run_folder(&self, run: RunId) -> PathBuf {
        let mut id = [0; RunId::TEXT_BYTES];
        let id = run.encode(&mut id);
        // Asked of every run that starts, so allocated once.
        let mut path =
            PathBuf::with_capacity(self.path().as_os_str().len() + RUNS.len() + id.len() + 2);
        path.push(self.path());
        path.push(RUNS);
        path.push(id);
        path
    }

    /// Removes the folder of one run with all that is in it, where there is one. Values that it links to stay.
    pub fn remove_run_folder(&self, run: RunId) -> Result<(), StoreError> {
        let name = run.to_string();
        // Something that is not a folder was not put there by us, and stays visible.
        let removed = self.below.folder(RUNS).and_then(|runs| runs.folder(&name).map(|_| runs));
        let removed = if_there(removed.and_then(|runs| runs.remove_all(&name)));
        removed.doing("remove", &self.run_folder(run)).map(drop)
    }

    /// Returns the folder for output that does not fit in memory.
    pub fn spool_folder(&self) -> PathBuf {
        self.path().join(SPOOL)
    }

    /// Removes output that earlier attempts of these runs have left in the spool folder, in files named `output-{run}` with or
    /// without something behind it. The caller holds the tree of these runs, and none of them is alive.
    ///
    /// # Errors
    /// Fails if the folder cannot be read, or a file cannot be removed.
    pub fn remove_output_of(&self, is_theirs: impl Fn(RunId) -> bool) -> Result<(), StoreError> {
        let spool = if_there(self.below.folder(SPOOL)).doing("read", &self.spool_folder())?;
        let Some(spool) = spool else { return Ok(()) };
        for (name, _) in spool.entries().doing("read", spool.path())? {
            let Some(name) = name.to_str() else { continue };
            if run_of_output(name).is_some_and(&is_theirs) {
                if_there(spool.remove(name)).doing("remove", &spool.path().join(name))?;
            }
        }
        Ok(())
    }

    /// A new, empty file in the spool folder, mode 0600. It stays until it is removed or made a value with
    /// [`NewValue::adopt`](crate::NewValue::adopt). A process that does not hold a tree keeps it open until then: what no process
    /// has open is removed when the next tree is opened here.
    pub fn spool_file(&self) -> Result<(File, PathBuf), StoreError> {
        let made = self.below.folder(SPOOL).and_then(|spool| spool.new_file("spool-")?.keep());
        made.doing("write into", &self.spool_folder())
    }

    /// Takes hold of every tree whose supervisor has died without a word: it has left the file by which it held the
    /// tree. Dropping the returned value confirms that they were ended.
    pub fn abandoned(&self) -> Result<Vec<RootLock>, StoreError> {
        let trouble = |error| StoreError::io("look into", &self.locks_path(), error);
        let mut found = Vec::new();
        for (name, _) in self.locks().and_then(|locks| locks.entries()).map_err(trouble)? {
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

    /// Wakes the followers of a tree that another process runs.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be watched.
    pub fn watch(&self, root: RootId) -> Result<Watch, StoreError> {
        let lock = |name: &str| self.locks().and_then(|locks| locks.read(name));
        Watch::new(self.path().to_owned(), lock(&root.to_string()), lock(WRITING))
    }

    /// True if nothing can be written here: by its mode, or because the whole file system is mounted that way.
    pub(crate) fn is_read_only(&self) -> bool {
        use rustix::io::Errno;
        let may = rustix::fs::access(self.path(), rustix::fs::Access::WRITE_OK);
        matches!(may, Err(Errno::ROFS | Errno::ACCESS | Errno::PERM))
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path().join(DATABASE)
    }

    fn locks_path(&self) -> PathBuf {
        self.path().join(LOCKS)
    }

    fn locks(&self) -> io::Result<Below> {
        self.below.folder(LOCKS)
    }

    /// Returns the path of the values, if any was ever stored here.
    pub(crate) fn stored_values(&self) -> Option<PathBuf> {
        let entries = self.below.folder(BLOBS).and_then(|values| values.entries()).ok()?;
        (!entries.is_empty()).then(|| self.path().join(BLOBS))
    }

    pub(crate) fn blobs(&self) -> Blobs {
        Blobs::new(self.below.clone(), BLOBS)
    }

    /// Closes the files of the database to other users.
    pub(crate) fn close_database(&self) -> Result<(), StoreError> {
        for file in [DATABASE, "offshoot.db-wal", "offshoot.db-shm"] {
            let exposed = self.below.close_to_others(Some(file));
            let exposed = exposed.doing("close", &self.database())?;
            self.is_exposed.fetch_or(exposed, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Returns the run of whose output a file of this name in the spool folder has a part.
pub(crate) fn run_of_output(name: &str) -> Option<RunId> {
    name.strip_prefix("output-")?.get(..RunId::TEXT_BYTES)?.parse().ok()
}

/// Makes a folder that only its owner may enter, unless it is there. That it is there is durable.
fn make_folder(path: &Path) -> Result<(), StoreError> {
    let trouble = |error| match fs::metadata(path) {
        Ok(there) if !there.is_dir() => StoreError::NotAFolder { path: path.to_owned() },
        _ => StoreError::io("make", path, error),
    };
    // The first that is there already: what is made below it is a new name in it.
    let is_new = |above: &&Path| !above.as_os_str().is_empty() && !above.exists();
    let missing: Vec<&Path> = path.ancestors().take_while(is_new).collect();
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(trouble)?;
    for made in missing {
        let above = made.parent().filter(|above| !above.as_os_str().is_empty());
        let synced = File::open(above.unwrap_or(Path::new("."))).and_then(|above| above.sync_all());
        synced.doing("make", made)?;
    }
    Ok(())
}
