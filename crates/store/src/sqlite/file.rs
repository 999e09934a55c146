//! The file that readers read.
//!
//! ```text
//!  folder that can be written      offshoot.db, with its log and its index beside it
//!  read-only, no log               offshoot.db alone: no process has it open, and nothing changes
//!  read-only, log and index        offshoot.db, with what stands beside it
//!  read-only, log without index    a copy of both
//!  read-only, an older version     a copy, brought to this version
//! ```
//!
//! A log without its index, in which SQLite looks things up, is what a copied or restored folder has. To pass it over would
//! lose what was committed last; so both are copied to where an index can be written.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tempfile::TempDir;

use super::{identity, schema};
use crate::error::Doing;
use crate::{DataFolder, StoreError};

/// The file of the database, for readers.
#[derive(Debug)]
pub(super) struct DatabaseFile {
    pub(super) path: PathBuf,
    /// True if no process can change it.
    frozen: bool,
    /// The folder of a copy, which goes when this does.
    _copy: Option<TempDir>,
}

impl DatabaseFile {
    /// One that several may write.
    pub(super) fn shared(path: PathBuf) -> Self {
        Self { path, frozen: false, _copy: None }
    }

    /// The database of a folder in which nothing can be written.
    pub(super) fn frozen(folder: &DataFolder) -> Result<Self, StoreError> {
        let path = folder.database();
        let frozen = fs::metadata(log(&path)).map_or(true, |there| there.len() == 0);
        let file = Self { path, frozen, _copy: None };
        match file.is_current(folder) {
            Ok(true) => Ok(file),
            // Without an index, or of an older version.
            Ok(false) => file.copied(),
            Err(error) if error.is_read_only() => file.copied(),
            Err(error) => Err(error),
        }
    }

    /// A connection that only reads.
    pub(super) fn reader(&self) -> Result<Connection, StoreError> {
        if self.frozen { schema::frozen_reader(&self.path) } else { schema::reader(&self.path) }
    }

    fn is_current(&self, folder: &DataFolder) -> Result<bool, StoreError> {
        let connection = self.reader()?;
        let current = schema::is_current(&connection, &self.path)?;
        identity::check(&connection, folder).map(|()| current)
    }

    fn copied(self) -> Result<Self, StoreError> {
        let folder = tempfile::tempdir().doing("copy", &self.path)?;
        let path = folder.path().join("offshoot.db");
        fs::copy(&self.path, &path).doing("copy", &self.path)?;
        if log(&self.path).exists() {
            fs::copy(log(&self.path), log(&path)).doing("copy", &self.path)?;
        }
        schema::create(&path)?;
        Ok(Self { path, frozen: false, _copy: Some(folder) })
    }
}

/// The log of a database.
fn log(database: &Path) -> PathBuf {
    let mut name = OsString::from(database);
    name.push("-wal");
    name.into()
}
