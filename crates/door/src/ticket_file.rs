//! A ticket in a file, for programs that clear the environment of their children.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::Ticket;

/// The reason why a file gives no ticket.
#[derive(Debug, thiserror::Error)]
pub enum TicketFileError {
    /// The file cannot be read.
    #[error("cannot read the ticket in `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Others may read it too, so that it is no secret any more.
    #[error("the ticket in `{}` can be read by others", path.display())]
    Open {
        /// The file.
        path: PathBuf,
    },
    /// The file holds something else.
    #[error("there is no ticket in `{}`", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The fault, without the text.
        source: crate::ParseTicketError,
    },
}

/// Reads a ticket from a file that only this user can read.
pub fn read_ticket(path: &Path) -> Result<Ticket, TicketFileError> {
    let failed = |source| TicketFileError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.mode() & 0o077 != 0 {
        return Err(TicketFileError::Open { path: path.to_owned() });
    }
    let mut text = String::new();
    // A ticket and a line break; what is longer is none.
    file.take(64).read_to_string(&mut text).map_err(failed)?;
    text.parse().map_err(|source| TicketFileError::Content { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_a_file_that_no_other_user_reads_is_believed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ticket");
        let ticket = Ticket::mint().unwrap();
        fs::write(&path, ticket.expose()).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read_ticket(&path).unwrap(), ticket);
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(read_ticket(&path), Err(TicketFileError::Open { .. })));
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, format!("{}0", ticket.expose())).unwrap();
        let error = read_ticket(&path).unwrap_err();
        assert!(matches!(error, TicketFileError::Content { .. }));
        assert!(!format!("{error:?}").contains(&ticket.expose()));
        assert!(matches!(
            read_ticket(folder.path()),
            Err(TicketFileError::Read { .. } | TicketFileError::Open { .. })
        ));
        let nowhere = read_ticket(&folder.path().join("none")).unwrap_err();
        assert!(matches!(nowhere, TicketFileError::Read { .. }));
    }
}
