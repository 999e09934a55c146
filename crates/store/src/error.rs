//! The errors of a record, with advice on what to do next.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use offshoot_model::{ContentHash, RootId};
use rusqlite::ErrorCode;

/// A store that could not do what it was asked. Cheap to clone: one failed transaction is the answer to every call that
/// was in it.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The path of the data folder names a file.
    #[error("`{}` is not a folder", path.display())]
    NotAFolder {
        /// The path.
        path: PathBuf,
    },
    /// A file or folder could not be read, written or made.
    #[error("cannot {doing} `{}`", path.display())]
    Io {
        /// The verb of what was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// The error of the system.
        source: Arc<io::Error>,
    },
    /// The database answered with an error; what was to be written was rolled back.
    #[error("cannot {doing} the record `{}`", path.display())]
    Database {
        /// The verb of what was tried.
        doing: &'static str,
        /// The database file.
        path: PathBuf,
        /// The error of SQLite.
        source: Arc<rusqlite::Error>,
    },
    /// Another version of offshoot wrote this record.
    #[error("the record `{}` has version {found}, and this program knows versions up to {known}", path.display())]
    NewerVersion {
        /// The database file.
        path: PathBuf,
        /// The version that was found.
        found: u32,
        /// The newest version that this program knows.
        known: u32,
    },
    /// The file of the record is empty, and what stands beside it shows that it was not: it was cut off.
    #[error("the record `{}` is empty, and it was not always", path.display())]
    Emptied {
        /// The database file.
        path: PathBuf,
    },
    /// There is no database, although there was one.
    #[error("the record `{}` is gone, and `{}` shows that there was one", path.display(), witness.display())]
    Removed {
        /// The database file.
        path: PathBuf,
        /// The file that was written after it.
        witness: PathBuf,
    },
    /// The database is not the one that was here.
    #[error("the record `{}` is not the one that `{}` names", path.display(), witness.display())]
    Replaced {
        /// The database file.
        path: PathBuf,
        /// The file that names another one.
        witness: PathBuf,
    },
    /// The database is a copy of an earlier state of itself.
    #[error("the record `{}` is older than it was: it was written {found} times, and `{}` knows of {known}", path.display(), witness.display())]
    Older {
        /// The database file.
        path: PathBuf,
        /// The file that knows of more.
        witness: PathBuf,
        /// The number of writes of this database.
        found: u64,
        /// The number of its writes when it was last opened.
        known: u64,
    },
    /// Events that do not follow what is recorded of their tree: an earlier write was lost, or another process writes
    /// the same tree. Nothing of the call was recorded.
    #[error("the record of tree {root} ends at event {last}, and event {seq} cannot follow it")]
    Broken {
        /// The tree of the record.
        root: RootId,
        /// The last recorded event; 0 where there is none.
        last: u64,
        /// The first one that cannot follow.
        seq: u64,
    },
    /// An event has no JSON form.
    #[error("event {seq} of tree {root} cannot be written down")]
    Unrecordable {
        /// The tree of the record.
        root: RootId,
        /// The number of the event.
        seq: u64,
        /// The cause.
        source: Arc<serde_json::Error>,
    },
    /// The recorded event is none that this program knows.
    #[error("event {seq} of tree {root} cannot be read")]
    Unreadable {
        /// The tree of the record.
        root: RootId,
        /// The number of the event.
        seq: u64,
        /// The cause.
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// The hash chain of a tree's record does not hold.
    #[error("event {seq} of tree {root} is not what was recorded")]
    Tampered {
        /// The tree of the record.
        root: RootId,
        /// The first event that does not fit.
        seq: u64,
    },
    /// More events wait for the disk than memory should hold.
    #[error("{waiting} events wait to be written, and no more are taken")]
    Overloaded {
        /// The number of requests that wait.
        waiting: usize,
    },
    /// The store is being closed, or its writer has died.
    #[error("the record is closed")]
    Closed,
    /// Another process holds this tree.
    #[error("tree {root} is held by {}", holder(*pid))]
    Held {
        /// The tree that is held.
        root: RootId,
        /// By which process, where it has said so already.
        pid: Option<u32>,
    },
    /// A process holds a lock of the folder for much longer than it takes to do anything.
    #[error("`{}` is held by {}, which does not let go of it", path.display(), holder(*pid))]
    Stalled {
        /// The file of the lock.
        path: PathBuf,
        /// The process, where the system tells.
        pid: Option<u32>,
    },
    /// No value has this hash.
    #[error("value {hash} is not in the store")]
    Missing {
        /// The hash.
        hash: ContentHash,
    },
    /// A value's file is not what was stored under its hash.
    #[error("value {hash} has been changed")]
    Corrupt {
        /// The hash it should have.
        hash: ContentHash,
    },
    /// A name of a context variable that is longer than a name may be.
    #[error("a variable's name of {length} characters is too long")]
    NameTooLong {
        /// The length in characters.
        length: usize,
    },
}

impl StoreError {
    /// Returns advice on what to do next.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            _ if self.is_full() => "free space there, or keep the data elsewhere with --data-dir",
            _ if self.is_read_only() => {
                "check who may write there, or keep the data elsewhere with --data-dir"
            }
            Self::Replaced { .. } => {
                "bring the right file back from a copy, or remove the file that names it to use this one"
            }
            Self::Older { .. } => {
                "bring the newest copy back, or remove the file that knows of more to go on with this one"
            }
            Self::Emptied { .. } | Self::Removed { .. } => {
                "bring the file back from a copy, or move the folder away to begin anew"
            }
            _ if self.is_damaged() => {
                "other trees may still be whole: `offshoot list` names them, and `offshoot audit` proves them"
            }
            Self::NotAFolder { .. } => "name a folder with --data-dir",
            Self::NewerVersion { .. } => "use the newer offshoot, or another --data-dir",
            Self::Broken { .. } => "an earlier write of this tree failed; its record ends there",
            Self::Held { .. } => "wait for it, or cancel it from there",
            Self::Stalled { .. } => {
                "if that process is stopped, `fg` in its shell or `kill -CONT` lets it go on; ending it lets go of the lock too"
            }
            Self::Missing { .. } | Self::Corrupt { .. } => "store the value again",
            Self::NameTooLong { .. } => "use at most 200 characters",
            Self::Overloaded { .. } => "the disk does not keep up; run fewer agents at once",
            Self::Io { .. } | Self::Database { .. } => {
                "look at the disk and at who may use the folder: `df -h`, `ls -ld`"
            }
            Self::Closed => "the command is ending: type the same again",
            _ => return None,
        })
    }

    /// True if the disk, or a quota on it, is full.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Io { source, .. } => {
                matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            Self::Database { source, .. } => {
                // The second: the shared index of the log could not grow, which only a full disk explains.
                matches!(source.sqlite_error_code(), Some(ErrorCode::DiskFull))
                    || source.sqlite_extended_error_code()
                        == Some(rusqlite::ffi::SQLITE_IOERR_SHMSIZE)
            }
            _ => false,
        }
    }

    /// True if this process may not write there.
    pub fn is_read_only(&self) -> bool {
        match self {
            Self::Io { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
            ),
            Self::Database { source, .. } => matches!(
                source.sqlite_error_code(),
                Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen)
            ),
            _ => false,
        }
    }

    /// True if the same write may succeed later, as on a disk that is full now.
    pub fn may_pass(&self) -> bool {
        let of_the_disk =
            matches!(self, Self::Io { .. } | Self::Database { .. } | Self::Overloaded { .. });
        of_the_disk && !self.is_damaged()
    }

    /// True if the stored bytes are not those that were written.
    pub fn is_damaged(&self) -> bool {
        match self {
            Self::Database { source, .. } => matches!(
                source.sqlite_error_code(),
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
            ),
            Self::Unreadable { .. }
            | Self::Tampered { .. }
            | Self::Emptied { .. }
            | Self::Removed { .. }
            | Self::Replaced { .. }
            | Self::Older { .. } => true,
            _ => false,
        }
    }

    pub(crate) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { doing, path: path.to_owned(), source: Arc::new(source) }
    }
}

/// An answer of the system or of the database, whose failure is told with what was tried, and on what.
pub(crate) trait Doing<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, StoreError>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, StoreError> {
        self.map_err(|error| StoreError::io(doing, path, error))
    }
}

impl<T> Doing<T> for rusqlite::Result<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, StoreError> {
        let failed = |source| StoreError::Database {
            doing,
            path: path.to_owned(),
            source: Arc::new(source),
        };
        self.map_err(failed)
    }
}

fn holder(pid: Option<u32>) -> String {
    match pid {
        Some(pid) => format!("process {pid}"),
        None => "another process".to_owned(),
    }
}
