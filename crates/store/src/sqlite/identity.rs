//! Whether the database in a folder is the one that was always there.
//!
//! A database is born with an id of its own, and a small file beside it repeats that. So a folder whose database was removed
//! or exchanged says so, instead of beginning anew in silence. The file is written after the database; one that is missing,
//! or cannot be read, is written again.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::folder::write_whole;
use crate::{DataFolder, StoreError};

/// Beside the first id stands the same once more: a flipped bit must not make it that of another database.
pub(super) const TABLE: &str =
    "CREATE TABLE identity (id BLOB NOT NULL, again BLOB NOT NULL) STRICT;
     INSERT INTO identity VALUES (randomblob(16), x'');
     UPDATE identity SET again = id;";

/// Makes sure that there never was a database here; to be asked where there is none.
pub(super) fn check_missing(folder: &DataFolder) -> Result<(), StoreError> {
    let path = folder.database();
    let Some(witness) = folder.witness() else { return Ok(()) };
    // Whatever shows that there was one was written after it: so it may have come since we looked for it.
    match path.exists() {
        true => Ok(()),
        false => Err(StoreError::Removed { path, witness }),
    }
}

/// Makes sure that this is the database that is named beside it, and names it where nothing does.
pub(super) fn check(connection: &Connection, folder: &DataFolder) -> Result<(), StoreError> {
    // What cannot be read of it is no reason not to read the rest.
    let Some(id) = id(connection) else { return Ok(()) };
    let witness = folder.database_id();
    match named(&witness) {
        Some(named) if named == id => Ok(()),
        Some(_) => Err(StoreError::Replaced { path: folder.database(), witness }),
        None => {
            match write_whole(&folder.spool_folder(), &witness, |file| writeln!(file, "{id}")) {
                // The next one tries again.
                Err(error) if error.is_full() || error.is_read_only() => Ok(()),
                written => written,
            }
        }
    }
}

fn id(connection: &Connection) -> Option<String> {
    let read = connection.query_row("SELECT lower(hex(id)), id = again FROM identity", (), |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?))
    });
    read.ok().and_then(|(id, sound)| sound.then_some(id))
}

fn named(witness: &Path) -> Option<String> {
    let text = fs::read_to_string(witness).ok()?;
    let id = text.trim();
    (id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| id.to_owned())
}

impl DataFolder {
    /// The file that repeats the id of the database.
    fn database_id(&self) -> PathBuf {
        self.path().join("offshoot.id")
    }

    /// Whatever shows that there is, or was, a database here.
    pub(crate) fn witness(&self) -> Option<PathBuf> {
        let id = self.database_id();
        if id.exists() {
            return Some(id);
        }
        // Values come after the database too.
        self.has_values().then(|| self.values_folder())
    }
}
