//! The check that the database in a folder is the one that was always there.
//!
//! A database is born with an id of its own and counts its writes, and a small file beside it repeats both. So a folder whose
//! database was removed, exchanged or put back to an older state says so, instead of going on in silence. The file is written
//! after the database; one that is missing, or cannot be read, is written again.

use std::io::Write;
use std::path::PathBuf;

use rusqlite::Connection;

use crate::error::Doing;
use crate::folder::SPOOL;
use crate::{DataFolder, StoreError};

/// Beside the first id stands the same once more: a flipped bit must not make it that of another database.
pub(super) const TABLE: &str =
    "CREATE TABLE identity (id BLOB NOT NULL, again BLOB NOT NULL) STRICT;
     INSERT INTO identity VALUES (randomblob(16), x'');
     UPDATE identity SET again = id;";

/// Adds the number of writes. Each write raises it, as a part of that write.
pub(super) const SEQUENCE: &str =
    "ALTER TABLE identity ADD COLUMN sequence INTEGER NOT NULL DEFAULT 0;";

/// Counts a write, as a part of it.
pub(super) const COUNT: &str = "UPDATE identity SET sequence = sequence + 1";

const NAME: &str = "offshoot.id";

/// The id of a database, and the number of its writes so far.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    id: String,
    sequence: u64,
}

/// Makes sure that there never was a database here; to be asked where there is none.
pub(super) fn check_missing(folder: &DataFolder) -> Result<(), StoreError> {
    let path = folder.database();
    let Some(witness) = folder.witness() else { return Ok(()) };
    // The file beside a database is written after the database, which may have been made since we looked for it.
    if path.exists() { Ok(()) } else { Err(StoreError::Removed { path, witness }) }
}

/// Makes sure that this is the database that is named beside it, and not an older copy of it; names it where nothing does.
pub(super) fn check(connection: &Connection, folder: &DataFolder) -> Result<(), StoreError> {
    // Read first: the database may come further meanwhile, and never goes back.
    let witness = witness(folder);
    // A database whose id cannot be read is read all the same.
    let Some(found) = identity(connection) else { return Ok(()) };
    let path = || folder.database_id();
    match witness {
        Some(named) if named.id != found.id => {
            Err(StoreError::Replaced { path: folder.database(), witness: path() })
        }
        Some(Identity { sequence: known, .. }) if known > found.sequence => {
            let found = found.sequence;
            Err(StoreError::Older { path: folder.database(), witness: path(), found, known })
        }
        Some(named) if named == found => Ok(()),
        _ => match write(folder, &found) {
            // The next one tries again.
            Err(error) if error.is_full() || error.is_read_only() => Ok(()),
            written => written,
        },
    }
}

fn identity(connection: &Connection) -> Option<Identity> {
    let sql = "SELECT lower(hex(id)), id = again, sequence FROM identity";
    let read = connection.query_row(sql, (), |row| {
        Ok((Identity { id: row.get(0)?, sequence: row.get(2)? }, row.get::<_, bool>(1)?))
    });
    read.ok().and_then(|(identity, sound)| sound.then_some(identity))
}

/// Reads the identity that the file says; a version before the count wrote the id alone.
fn witness(folder: &DataFolder) -> Option<Identity> {
    let text = folder.below.read_text(NAME).ok()?;
    let mut lines = text.lines();
    let id = lines.next()?.trim();
    let sequence = lines.next().map_or(Ok(0), |line| line.trim().parse()).ok()?;
    let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| Identity { id: id.to_owned(), sequence })
}

fn write(folder: &DataFolder, Identity { id, sequence }: &Identity) -> Result<(), StoreError> {
    let written = folder.below.folder(SPOOL).and_then(|spool| {
        spool.write_whole(&folder.below, NAME, |file| writeln!(file, "{id}\n{sequence}"))
    });
    written.doing("write", &folder.database_id())
}

impl DataFolder {
    /// The file that repeats the id of the database.
    fn database_id(&self) -> PathBuf {
        self.path().join(NAME)
    }

    /// Returns a file that shows that there is, or was, a database here.
    pub(crate) fn witness(&self) -> Option<PathBuf> {
        match self.below.there(NAME) {
            Ok(_) => Some(self.database_id()),
            // Values come after the database too.
            Err(_) => self.stored_values(),
        }
    }
}
