//! The tables, and how connections to them are opened.
//!
//! `roots` has one line for each tree: where its record ends, and the hash the next link of its chain starts from. An
//! event stands under the small number of its tree and its own number, so that a tree's events lie together and are
//! written in the order of the file. Its body is JSON: what the tables do not know they need not learn.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::identity;
use crate::error::Doing;
use crate::folder::DATABASE;
use crate::{DataFolder, StoreError};

/// The version of these tables, in `user_version`. 0 is a file without tables.
const VERSION: u32 = MIGRATIONS.len() as u32 + 1;

/// The steps from each version to the next, the first from version 1. A step that was released is never changed; the database of
/// each earlier version is kept beside the tests, and is brought here by one of them.
const MIGRATIONS: [&str; 3] = [
    // 2: when the last event of a tree was recorded, so that old trees are found without reading them.
    "ALTER TABLE roots ADD COLUMN last_at INTEGER NOT NULL DEFAULT 0;
     UPDATE roots SET last_at =
        coalesce((SELECT at FROM events WHERE events.root = number AND seq = last_seq), 0);",
    // 3: which database it is, so that its folder can tell it from another one.
    identity::TABLE,
    // 4: how often it was written, so that an older copy of it is told from it.
    identity::SEQUENCE,
];

/// The tables of version 1; a new database goes the same way as an old one.
///
/// The index keeps two places for each run, that of its creation and that of its end. A query uses it if it repeats the
/// condition literally.
const TABLES: &str = "
CREATE TABLE roots (
    number INTEGER PRIMARY KEY,
    root BLOB NOT NULL UNIQUE,
    key TEXT,
    opened_at INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    chain BLOB NOT NULL,
    ended INTEGER NOT NULL
) STRICT;
CREATE TABLE events (
    root INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    run BLOB NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    key TEXT,
    body TEXT NOT NULL,
    chain BLOB NOT NULL,
    PRIMARY KEY (root, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX milestones ON events (run, kind) WHERE kind IN ('admitted', 'ended');
CREATE INDEX sessions ON events (key) WHERE key IS NOT NULL;
";

/// The time for which a lock of the database itself is waited for. Writers of ours take turns before they come to it, so this is
/// for the moments of opening and recovery, and for other programs.
const BUSY: Duration = Duration::from_secs(30);

/// Pages in the log before they are carried over into the database, 16 MiB: four times the usual, because carrying over
/// costs two flushes to the disk.
const LOG_PAGES: u32 = 4096;

/// The most that is kept of the log's file after a checkpoint: a reader that held one up does not leave the file large
/// for ever.
const LOG_BYTES: u32 = 4 * LOG_PAGES * 1024;

/// Makes the database unless it is there or once was, brings an older one to this version, and refuses one that a newer program
/// made.
pub(super) fn prepare(folder: &DataFolder) -> Result<(), StoreError> {
    let path = folder.database();
    if !path.exists() {
        identity::check_missing(folder)?;
    } else {
        folder.close_database()?;
        let connection = reader(&path)?;
        if is_current(&connection, &path)? {
            return identity::check(&connection, folder);
        }
    }
    // Two processes that meet in an empty folder: changing to a log is the one step in which SQLite does not let them
    // wait for each other.
    let _turn = folder.turn()?;
    // The file beside a database is written once that has its tables, so an empty database beside it was emptied.
    if is_empty(&path) && folder.witness().is_some() {
        return Err(StoreError::Emptied { path });
    }
    // SQLite would make it with the usual mode. What it makes beside it gets the mode of this. One that is there is not opened
    // here: closing it would let go of the locks of other connections of this process.
    if !path.exists() {
        let made = folder.below.open_or_make(DATABASE);
        made.doing("make", &path)?;
    }
    create(&path)?;
    identity::check(&reader(&path)?, folder)
}

/// The connection that writes. A commit is durable when it returns.
pub(super) fn writer(path: &Path) -> Result<Connection, StoreError> {
    connect(path, |connection| {
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
        connection.pragma_update(None, "journal_size_limit", LOG_BYTES)
    })
}

/// A connection that only reads, and sees what was committed when a query began.
pub(super) fn reader(path: &Path) -> Result<Connection, StoreError> {
    connect(path, |connection| connection.pragma_update(None, "query_only", true))
}

/// A connection to a database that does not change as long as it is open, and that needs no file beside it.
pub(super) fn frozen_reader(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(address(path), flags).doing("open", path)
}

fn connect(
    path: &Path,
    configure: impl FnOnce(&Connection) -> rusqlite::Result<()>,
) -> Result<Connection, StoreError> {
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY)?;
        configure(&connection)?;
        Ok(connection)
    };
    open().doing("open", path)
}

/// True if this program reads a database as it is: it does not where an older one wrote it.
pub(super) fn is_current(connection: &Connection, path: &Path) -> Result<bool, StoreError> {
    version(connection, path).map(|found| found == VERSION)
}

fn version(connection: &Connection, path: &Path) -> Result<u32, StoreError> {
    let found = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .doing("open", path)?;
    match found {
        0..=VERSION => Ok(found),
        _ => Err(StoreError::NewerVersion { path: path.to_owned(), found, known: VERSION }),
    }
}

/// Takes a database from wherever it is to this version: all steps or none.
pub(super) fn create(path: &Path) -> Result<(), StoreError> {
    let mut connection = writer(path)?;
    version(&connection, path)?;
    let mut create = || {
        connection.pragma_update(None, "journal_mode", "WAL")?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Asked again: another process may have done it meanwhile.
        let found: u32 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if found == 0 {
            transaction.execute_batch(TABLES)?;
        }
        for step in MIGRATIONS.iter().skip(found.saturating_sub(1) as usize) {
            transaction.execute_batch(step)?;
        }
        if found < VERSION {
            transaction.pragma_update(None, "user_version", VERSION)?;
        }
        transaction.commit()
    };
    create().doing("make", path)
}

/// A path as an address by which SQLite is told that the file does not change.
fn address(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    let written = |byte: &u8| match plain(*byte) {
        true => char::from(*byte).to_string(),
        false => format!("%{byte:02x}"),
    };
    let path: String = path.as_os_str().as_bytes().iter().map(written).collect();
    format!("file:{path}?immutable=1")
}

fn is_empty(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|there| there.len() == 0)
}
