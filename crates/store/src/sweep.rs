//! Taking away what is old: trees out of the record, and whatever nothing names any more.
//!
//! ```text
//!  remove_tree ── held by us alone ──▶ its events, in one transaction
//!  sweep ──────── nobody holds a tree ─▶ values, folders of runs, tasks, unfinished files
//! ```
//!
//! Promise: a tree that somebody runs is not touched, and no value goes while any tree runs or while a record names it.
//! What is removed from the record is removed first, so that after a crash too much is left and nothing is missing: the
//! next sweep finds it.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use offshoot_model::{ContentHash, RootId, RunId, Timestamp};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::folder::{PREFIX, Users, remove_left};
use crate::{DataFolder, SqliteStore, StoreError};

/// A file that was made or used within this time is left alone: it may belong to a tree that is just being opened, and
/// is not held yet.
const FRESH: Duration = Duration::from_secs(3600);

/// Where tasks stand, beside the folders of the runs that share them.
const TASKS: &str = "tasks";

/// What a sweep took away, or would.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Values that no record names.
    pub values: u64,
    /// Folders of runs that are not on record.
    pub folders: u64,
    /// Files that somebody has left unfinished, and tasks.
    pub files: u64,
    /// Bytes of all these.
    pub bytes: u64,
    /// Whether somebody runs a tree, so that nothing was looked at.
    pub busy: bool,
}

/// What is done with what is found.
struct Sweep<'a> {
    folder: &'a DataFolder,
    now: Timestamp,
    dry: bool,
    swept: Swept,
}

impl SqliteStore {
    /// Removes what no record names, as if the trees in `without` were not on record; or only counts it. Nothing is
    /// touched that was made or used within the last hour, and nothing at all while somebody runs a tree.
    ///
    /// # Errors
    ///
    /// A folder that cannot be read or a file that cannot be removed; what went before is gone.
    pub fn sweep(
        &self,
        without: &[RootId],
        now: Timestamp,
        dry: bool,
    ) -> Result<Swept, StoreError> {
        let folder = self.folder();
        let Some(_alone) = alone(folder)? else {
            return Ok(Swept { busy: true, ..Swept::default() });
        };
        let named = self.named(without)?;
        let mut sweep = Sweep { folder, now, dry, swept: Swept::default() };
        // Folders first: what is linked into them counts as the value that it is.
        sweep.runs(&named.runs)?;
        sweep.values(&named.values)?;
        sweep.unfinished()?;
        Ok(sweep.swept)
    }
}

impl DataFolder {
    /// Removes what somebody has begun to write and will never finish, unless somebody runs a tree. The record is not
    /// looked at, so that this takes no time.
    ///
    /// # Errors
    ///
    /// A folder that cannot be read or a file that cannot be removed.
    pub fn sweep_unfinished(&self) -> Result<Swept, StoreError> {
        let Some(_alone) = alone(self)? else {
            return Ok(Swept { busy: true, ..Swept::default() });
        };
        let now = Timestamp::EPOCH;
        let mut sweep = Sweep { folder: self, now, dry: false, swept: Swept::default() };
        sweep.unfinished()?;
        Ok(sweep.swept)
    }
}

/// Nobody runs a tree for as long as this is held. None where somebody does.
fn alone(folder: &DataFolder) -> Result<Option<Users>, StoreError> {
    let users = folder.users()?;
    match flock(&users.file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(users)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(StoreError::io("lock", &users.path, error.into())),
    }
}

impl Sweep<'_> {
    /// Values, the wrapped forms beside them, and what was to become one.
    fn values(&mut self, named: &HashSet<ContentHash>) -> Result<(), StoreError> {
        let values = self.folder.values_folder();
        for (path, there) in entries(&values)? {
            if !there.is_dir() {
                continue;
            }
            for (path, there) in entries(&path)? {
                if !hash_of(&path).is_some_and(|hash| named.contains(&hash)) {
                    self.remove_file(&path, &there, |swept| &mut swept.values)?;
                }
            }
        }
        Ok(())
    }

    /// Folders of runs, and the tasks that stand beside them: whoever needs a task writes it again.
    fn runs(&mut self, known: &HashSet<RunId>) -> Result<(), StoreError> {
        let runs = self.folder.runs_folder();
        for (path, there) in entries(&runs)? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name == TASKS {
                for (path, there) in entries(&path)? {
                    self.remove_file(&path, &there, |swept| &mut swept.files)?;
                }
            } else if let Ok(run) = name.parse::<RunId>()
                && !known.contains(&run)
                && self.is_old(&there)
            {
                self.swept.folders += 1;
                self.swept.bytes += size_below(&path)?;
                if !self.dry {
                    let removed = fs::remove_dir_all(&path);
                    removed.map_err(|error| StoreError::io("remove", &path, error))?;
                }
            }
        }
        Ok(())
    }

    /// What nobody will finish, however young: all that stands in the spool folder, values without a name, and tasks
    /// that have one more.
    fn unfinished(&mut self) -> Result<(), StoreError> {
        let everything = |_: &str| true;
        let new = |name: &str| name.starts_with(PREFIX);
        let with_one_more = |name: &str| name.contains('.');
        let tasks = self.folder.runs_folder().join(TASKS);
        self.left(&self.folder.spool_folder(), everything)?;
        self.left(&self.folder.values_folder(), new)?;
        self.left(&tasks, with_one_more)
    }

    fn left(&mut self, folder: &Path, is_unfinished: fn(&str) -> bool) -> Result<(), StoreError> {
        for path in names(folder)? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if !is_unfinished(name) {
                continue;
            }
            let removed = remove_left(&path, self.dry);
            let removed = removed.map_err(|error| StoreError::io("remove", &path, error))?;
            self.swept.files += u64::from(removed.is_some());
            self.swept.bytes += removed.unwrap_or_default();
        }
        Ok(())
    }

    fn remove_file(
        &mut self,
        path: &Path,
        there: &Metadata,
        count: impl Fn(&mut Swept) -> &mut u64,
    ) -> Result<(), StoreError> {
        if !self.is_old(there) {
            return Ok(());
        }
        *count(&mut self.swept) += 1;
        self.swept.bytes += there.len();
        if self.dry {
            return Ok(());
        }
        fs::remove_file(path).map_err(|error| StoreError::io("remove", path, error))
    }

    /// A file from the future, which a clock that was set back has left, is not old.
    fn is_old(&self, there: &Metadata) -> bool {
        let modified = there.modified().ok();
        let since = modified.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        let micros = since.and_then(|since| u64::try_from(since.as_micros()).ok());
        micros.is_some_and(|micros| self.now.since(Timestamp::from_micros(micros)) > FRESH)
    }
}

/// The value whose file this is, or beside whose file it stands.
fn hash_of(path: &Path) -> Option<ContentHash> {
    let first = path.parent()?.file_name()?.to_str()?;
    format!("{first}{}", path.file_stem()?.to_str()?).parse().ok()
}

/// What is in a folder, by name alone; nothing where there is no such folder.
fn names(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let trouble = |error| StoreError::io("read", folder, error);
    match fs::read_dir(folder) {
        Ok(entries) => {
            entries.map(|entry| entry.map(|entry| entry.path()).map_err(trouble)).collect()
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(trouble(error)),
    }
}

/// What is in a folder, without following links; nothing where there is no such folder.
fn entries(folder: &Path) -> Result<Vec<(PathBuf, Metadata)>, StoreError> {
    let read = || -> io::Result<Vec<(PathBuf, Metadata)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            match entry.metadata() {
                Ok(there) => found.push((entry.path(), there)),
                // Somebody else was faster.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    };
    match read() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        found => found.map_err(|error| StoreError::io("read", folder, error)),
    }
}

/// Bytes of the files below a folder that are nobody else's too: a link to a value costs nothing.
fn size_below(folder: &Path) -> Result<u64, StoreError> {
    use std::os::unix::fs::MetadataExt;
    let mut size = 0;
    for (path, there) in entries(folder)? {
        size += match there.is_dir() {
            true => size_below(&path)?,
            false if there.nlink() > 1 => 0,
            false => there.len(),
        };
    }
    Ok(size)
}
