//! Taking away what is old: trees out of the record, and whatever nothing names any more.
//!
//! ```text
//!  remove_tree ── held by us alone ──▶ its events, in one transaction
//!  sweep ──▶ values and folders of runs that no record names, files that will never be finished
//! ```
//!
//! A sweep goes on beside trees that run, and holds none of them up. A value that a tree is about to name was stored or stored
//! again just now, and what is fresh stays: storing a value again touches its file under a lock. The sweep looks at the file
//! and removes it under the same lock.
//!
//! Promise: nothing of a tree that runs is touched, and no value goes that a record names. What is removed from the record
//! is removed first, so that after a crash too much is left and nothing is missing: the next sweep finds it.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::time::Duration;

use offshoot_model::{ContentHash, RootId, RunId, Timestamp};
use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, retry_on_intr};

use crate::below::{Below, PREFIX, There, if_there};
use crate::error::Doing;
use crate::folder::{BLOBS, CONTEXTS, RUNS, SPOOL, run_of_output};
use crate::output::OUTPUT;
use crate::{DataFolder, SqliteStore, StoreError};

/// A file that was made or used within this time is left alone: it may belong to a tree that is just being opened, and
/// is not held yet, or to one that is about to name it.
const FRESH: Duration = Duration::from_secs(3600);

/// The folder of tasks, beside the folders of the runs that share them.
const TASKS: &str = "runs/tasks";

/// The files that a sweep removed, or would remove.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Values that no record names.
    pub values: u64,
    /// Folders of runs that are not on record, and of what the agents of trees said.
    pub folders: u64,
    /// Unfinished files, and tasks.
    pub files: u64,
    /// Bytes of all these.
    pub bytes: u64,
    /// True if a tree runs, so that files stay that it may still use.
    pub busy: bool,
}

/// The treatment of what is found.
pub(crate) struct Sweep<'a> {
    folder: &'a DataFolder,
    now: Timestamp,
    dry: bool,
    pub(crate) swept: Swept,
}

impl SqliteStore {
    /// Removes what no record names, as if the trees in `without` were not on record; or only counts it. Nothing is
    /// touched that was made or used within the last hour.
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
        let named = self.named(without)?;
        let mut sweep = Sweep::new(folder, now, dry);
        // Folders first: what is linked into them counts as the value that it is.
        sweep.folders_of(folder.below.folder(RUNS), &named.runs, &[])?;
        sweep.folders_of(folder.below.folder(CONTEXTS), &named.runs, without)?;
        sweep.folders_of(folder.below.folder(OUTPUT), &named.runs, without)?;
        sweep.values(|value| !value.is_some_and(|hash| named.values.contains(&hash)), false)?;
        // Held no longer than it takes to look into some folders: who opens a tree waits for it.
        if let Some(_alone) = folder.alone()? {
            sweep.tasks()?;
            sweep.unfinished()?;
        } else {
            sweep.swept.busy = true;
            sweep.outputs(self)?;
        }
        Ok(sweep.swept)
    }
}

impl DataFolder {
    /// Removes what was begun and will never be finished, unless a tree runs. The record is not looked at, so that this
    /// takes no time.
    ///
    /// # Errors
    ///
    /// A folder that cannot be read or a file that cannot be removed.
    pub fn sweep_unfinished(&self) -> Result<Swept, StoreError> {
        let Some(_alone) = self.alone()? else {
            return Ok(Swept { busy: true, ..Swept::default() });
        };
        let now = Timestamp::EPOCH;
        let mut sweep = Sweep::new(self, now, false);
        sweep.unfinished()?;
        Ok(sweep.swept)
    }
}

impl<'a> Sweep<'a> {
    pub(crate) fn new(folder: &'a DataFolder, now: Timestamp, dry: bool) -> Self {
        Self { folder, now, dry, swept: Swept::default() }
    }

    /// Removes these values; those that were made or used just now only if they may.
    pub(crate) fn values_of(
        &mut self,
        values: &HashSet<ContentHash>,
        fresh_too: bool,
    ) -> Result<(), StoreError> {
        self.values(|value| value.is_some_and(|hash| values.contains(&hash)), fresh_too)
    }

    /// Removes the folders of these runs.
    pub(crate) fn run_folders(&mut self, runs: &HashSet<RunId>) -> Result<(), StoreError> {
        let Some(folders) = self.open(self.folder.below.folder(RUNS))? else { return Ok(()) };
        let theirs =
            |name: &String| name.parse().ok().is_some_and(|run: RunId| runs.contains(&run));
        for (name, _) in entries(&folders)?.into_iter().filter(|(name, _)| theirs(name)) {
            self.remove_folder(&folders, &name)?;
        }
        Ok(())
    }

    /// Removes what runs of this tree saw from their start: the tree is over, and has no reader any more.
    pub(crate) fn contexts_of(&mut self, root: RootId) -> Result<(), StoreError> {
        let Some(folders) = self.open(self.folder.below.folder(CONTEXTS))? else { return Ok(()) };
        let name = root.to_string();
        let there = if_there(folders.there(&name)).doing("read", &folders.path().join(&name))?;
        there.map_or(Ok(()), |_| self.remove_folder(&folders, &name))
    }

    /// Values, the wrapped forms beside them, and what was to become one.
    fn values(
        &mut self,
        goes: impl Fn(Option<ContentHash>) -> bool,
        fresh_too: bool,
    ) -> Result<(), StoreError> {
        let Some(values) = self.open(self.folder.below.folder(BLOBS))? else { return Ok(()) };
        for (shelf, there) in entries(&values)? {
            if !there.is_folder() {
                continue;
            }
            let Some(folder) = self.open(values.folder(&shelf))? else { continue };
            for (name, _) in entries(&folder)? {
                if !goes(hash_of(&shelf, &name)) {
                    continue;
                }
                if let Some(bytes) = self.remove(&folder, &name, fresh_too)? {
                    self.swept.values += 1;
                    self.swept.bytes += bytes;
                }
            }
        }
        Ok(())
    }

    /// Folders of runs, and what the agents of trees said: old ones of runs that are not on record, and those of trees that go.
    fn folders_of(
        &mut self,
        folder: io::Result<Below>,
        known: &HashSet<RunId>,
        gone: &[RootId],
    ) -> Result<(), StoreError> {
        let Some(runs) = self.open(folder)? else { return Ok(()) };
        for (name, there) in entries(&runs)? {
            let Ok(run) = name.parse::<RunId>() else { continue };
            let goes = gone.iter().any(|root| root.run() == run);
            if !goes && (known.contains(&run) || !self.is_old(&there)) {
                continue;
            }
            self.remove_folder(&runs, &name)?;
        }
        Ok(())
    }

    fn remove_folder(&mut self, from: &Below, name: &str) -> Result<(), StoreError> {
        let size = from.folder(name).and_then(|folder| size_below(&folder));
        self.swept.folders += 1;
        let path = from.path().join(name);
        self.swept.bytes += size.doing("read", &path)?;
        if !self.dry {
            from.remove_all(name).doing("remove", &path)?;
        }
        Ok(())
    }

    /// Removes unused tasks: a tree that needs one writes it again, but a tree that runs may depend on it.
    fn tasks(&mut self) -> Result<(), StoreError> {
        let Some(tasks) = self.open(self.folder.below.folder(TASKS))? else { return Ok(()) };
        for (name, _) in entries(&tasks)? {
            self.remove_file(&tasks, &name, false)?;
        }
        Ok(())
    }

    /// Removes what will never be finished, however young: all that stands in the spool folder, values without a name, and
    /// tasks that have one more. To be called while no tree runs.
    fn unfinished(&mut self) -> Result<(), StoreError> {
        self.left(self.folder.below.folder(SPOOL), |_| true)?;
        self.left(self.folder.below.folder(BLOBS), |name| name.starts_with(PREFIX))?;
        self.left(self.folder.below.folder(TASKS), |name| name.contains('.'))
    }

    fn left(
        &mut self,
        folder: io::Result<Below>,
        is_unfinished: fn(&str) -> bool,
    ) -> Result<(), StoreError> {
        let Some(folder) = self.open(folder)? else { return Ok(()) };
        for (name, _) in entries(&folder)? {
            if is_unfinished(&name) {
                self.remove_file(&folder, &name, true)?;
            }
        }
        Ok(())
    }

    /// Removes old files from the spool folder while trees run: those that none of these trees has printed.
    fn outputs(&mut self, store: &SqliteStore) -> Result<(), StoreError> {
        let Some(spool) = self.open(self.folder.below.folder(SPOOL))? else { return Ok(()) };
        let mut held: HashMap<RunId, bool> = HashMap::new();
        for (name, _) in entries(&spool)? {
            if let Some(run) = run_of_output(&name) {
                let is_held = match held.get(&run) {
                    Some(held) => *held,
                    // One that is on no record may be about to be.
                    None => match store.root_of(run)? {
                        Some(root) => self.folder.is_held(root)?,
                        None => false,
                    },
                };
                held.insert(run, is_held);
                if is_held {
                    continue;
                }
            }
            self.remove_file(&spool, &name, false)?;
        }
        Ok(())
    }

    /// Removes a file and counts it, see [`remove`](Self::remove).
    fn remove_file(
        &mut self,
        folder: &Below,
        name: &str,
        fresh_too: bool,
    ) -> Result<(), StoreError> {
        let removed = self.remove(folder, name, fresh_too)?;
        self.swept.files += u64::from(removed.is_some());
        self.swept.bytes += removed.unwrap_or_default();
        Ok(())
    }

    /// Removes a file that no process has locked, if it is old or may be fresh too; how many bytes it had.
    fn remove(
        &self,
        folder: &Below,
        name: &str,
        fresh_too: bool,
    ) -> Result<Option<u64>, StoreError> {
        let remove = || -> io::Result<Option<u64>> {
            let Some(file) = if_there(folder.read(name))? else { return Ok(None) };
            match retry_on_intr(|| flock(&file, FlockOperation::NonBlockingLockExclusive)) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
            let there = There::of(&file)?;
            // Another file may have got the name meanwhile.
            let is_wanted = fresh_too || self.is_old(&there);
            if !is_wanted || !folder.there(name).is_ok_and(|now| now.is(&there)) {
                return Ok(None);
            }
            if !self.dry {
                folder.remove(name)?;
            }
            Ok(Some(there.length()))
        };
        remove().doing("remove", &folder.path().join(name))
    }

    /// None where there is no such folder.
    fn open(&self, folder: io::Result<Below>) -> Result<Option<Below>, StoreError> {
        if_there(folder).doing("read", self.folder.path())
    }

    /// A file from the future, which a clock that was set back has left, is not old.
    fn is_old(&self, there: &There) -> bool {
        there.modified().is_some_and(|modified| self.now.since(modified) > FRESH)
    }
}

/// The value whose file this is, or beside whose file it stands.
fn hash_of(shelf: &str, name: &str) -> Option<ContentHash> {
    let stem = Path::new(name).file_stem()?.to_str()?;
    format!("{shelf}{stem}").parse().ok()
}

/// Returns the entries of a folder. An entry whose name is not text is not ours, and is left out.
fn entries(folder: &Below) -> Result<Vec<(String, There)>, StoreError> {
    let found = folder.entries().doing("read", folder.path())?;
    let named =
        found.into_iter().filter_map(|(name, there)| Some((name.into_string().ok()?, there)));
    Ok(named.collect())
}

/// Bytes of the files below a folder that have no other name: a link to a value costs nothing.
fn size_below(folder: &Below) -> io::Result<u64> {
    let mut size = 0;
    for (name, there) in folder.entries()? {
        size += match there.is_folder() {
            true => size_below(&folder.folder(name)?)?,
            false if there.is_shared() => 0,
            false => there.length(),
        };
    }
    Ok(size)
}
