//! The files beside the folders of runs, by which they are known after a crash.
//!
//! ```text
//!  {shelf}/.git           stops git: a copy without a repository of its own is in none; and the file that is locked
//!  {shelf}/{run}/         the folder in which the run works
//!  {shelf}/{run}.json     what it is: written first, removed last
//!  {shelf}/{run}.index    the state in which it was handed over; until then no agent has worked in it
//!  {shelf}/{run}.git/     of a copy: the files that were copied, as git knows them
//!  {shelf}/{run}.objects/ objects of what is being brought back
//!  {shelf}/{run}.patch    what was changed in it, once that is safe
//! ```

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use offshoot_model::{Isolation, RootId, RunId, path_text};
use serde::{Deserialize, Serialize};

use crate::error::IsolationError;
use crate::scratch::MARK;

/// A folder of folders.
#[derive(Clone, Debug)]
pub(crate) struct Shelf(Arc<PathBuf>);

/// A folder of a run, as it is known on disk.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct About {
    /// The run.
    pub run: RunId,
    /// The tree of the run.
    pub root: RootId,
    /// The isolation.
    pub isolation: Isolation,
    /// The top of the repository, or the folder that was copied.
    #[serde(with = "path_text")]
    pub of: PathBuf,
    /// The folder that all worktrees of the repository share; none for a copy.
    #[serde(default, with = "path_text")]
    pub common: Option<PathBuf>,
    /// The commit to which a patch applies, where it is known.
    pub base: Option<String>,
    /// The commit or tree with which the files are compared. Empty until a copy is complete.
    #[serde(default)]
    pub begun: String,
    /// The facts that a reader of its patch has to know.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The patch, once it is safe.
    pub kept: Option<Kept>,
}

/// A patch that is safe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The number of files that it changes. There is no file of the patch where it is 0.
    pub files: u32,
}

/// The text by which git knows that there is no repository at or above a folder.
const BARRIER: &str = "gitdir: there is no repository here\n";

impl Shelf {
    /// Opens a shelf, and makes it where it is missing.
    pub(crate) fn open(path: &Path) -> Result<Self, IsolationError> {
        fs::create_dir_all(path).map_err(IsolationError::io("make", path))?;
        let barrier = path.join(".git");
        if !barrier.exists() {
            fs::write(&barrier, BARRIER).map_err(IsolationError::io("write", &barrier))?;
        }
        Ok(Self(Arc::new(path.to_owned())))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Opens the file by which processes lock the shelf: the barrier, which is always there.
    pub(crate) fn lock_file(&self) -> Result<File, IsolationError> {
        let barrier = self.0.join(".git");
        File::open(&barrier).map_err(IsolationError::io("open", &barrier))
    }

    pub(crate) fn folder(&self, run: RunId) -> PathBuf {
        self.0.join(run.to_string())
    }

    pub(crate) fn beside(&self, run: RunId, ending: &str) -> PathBuf {
        self.0.join(format!("{run}.{ending}"))
    }

    /// Reads what is known of the folder of a run; none where there is none.
    pub(crate) fn about(&self, run: RunId) -> Result<Option<About>, IsolationError> {
        let path = self.beside(run, "json");
        match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(IsolationError::io("read", &path)(error)),
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| IsolationError::io("read", &path)(error.into())),
        }
    }

    /// Writes it, so that it survives a crash.
    pub(crate) fn note(&self, about: &About) -> Result<(), IsolationError> {
        let path = self.beside(about.run, "json");
        // What is left of it by a process that is killed is removed as what it leaves for git.
        let lock = self.lock_file()?;
        let write = || -> io::Result<()> {
            lock.lock_shared()?;
            let mut file = tempfile::Builder::new();
            let mut file = file.prefix("unfinished-").suffix(MARK).tempfile_in(&*self.0)?;
            file.write_all(&serde_json::to_vec(about)?)?;
            file.as_file().sync_all()?;
            file.persist(&path).map_err(io::Error::from)?;
            sync_folder(&self.0)
        };
        write().map_err(IsolationError::io("write", &path))
    }

    /// Reads what is known of each folder here.
    pub(crate) fn all(&self) -> Result<Vec<About>, IsolationError> {
        self.runs()?.into_iter().filter_map(|run| self.about(run).transpose()).collect()
    }

    /// Lists the runs that have something here.
    fn runs(&self) -> Result<Vec<RunId>, IsolationError> {
        let read = || -> io::Result<Vec<RunId>> {
            let mut runs = Vec::new();
            for entry in fs::read_dir(&*self.0)? {
                let name = entry?.file_name();
                let run = name.to_str().and_then(|name| name.strip_suffix(".json"));
                runs.extend(run.and_then(|run| run.parse::<RunId>().ok()));
            }
            Ok(runs)
        };
        read().map_err(IsolationError::io("read", &self.0))
    }
}

/// Has the names in a folder survive a crash.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
