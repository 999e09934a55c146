//! The place to measure in, and the number of rounds.

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::{Result, programs};

/// The setting that every row is given.
pub(crate) struct Setting {
    quick: bool,
    target: PathBuf,
    /// On the disk that is measured. Removed at the end.
    folder: TempDir,
}

impl Setting {
    pub(crate) fn new(quick: bool, folder: Option<&Path>) -> Result<Self> {
        let target = programs::profile_folder()?.parent().ok_or("no target folder")?.to_owned();
        // Beside the build: a temporary folder is often memory, and then no disk would be measured.
        let folder = tempfile::Builder::new()
            .prefix("offshoot-bench-")
            .tempdir_in(folder.unwrap_or(&target))?;
        Ok(Self { quick, target, folder })
    }

    /// The number for a real run, or for a quick one.
    pub(crate) fn pick<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// The number of turns that the sides take, besides a first time that does not count.
    pub(crate) fn rounds(&self) -> usize {
        self.pick(7, 1)
    }

    /// The same, where one turn takes seconds.
    pub(crate) fn few_rounds(&self) -> usize {
        self.pick(5, 1)
    }

    /// Cargo's target folder.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// A new folder, which is removed when it is dropped.
    pub(crate) fn scratch(&self) -> Result<TempDir> {
        Ok(TempDir::new_in(self.folder.path())?)
    }

    /// As the command runs its engine: as many threads as there are cores.
    pub(crate) fn runtime(&self) -> Result<Runtime> {
        Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
    }
}
