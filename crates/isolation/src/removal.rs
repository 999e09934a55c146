//! Removal of folders in which an agent has worked.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::error::IsolationError;

/// Removes a folder with all that is in it, where there is one. A link in its place is removed and not followed.
pub(crate) fn remove_folder(path: &Path) -> Result<(), IsolationError> {
    let removed = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => Err(error),
        Ok(there) if there.is_dir() => match fs::remove_dir_all(path) {
            // A folder that its owner may not write keeps what is in it.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                open_up(path).and_then(|()| fs::remove_dir_all(path))
            }
            removed => removed,
        },
        Ok(_) => fs::remove_file(path),
    };
    not_missing(removed).map_err(IsolationError::io("remove", path))
}

/// Removes a file, where there is one.
pub(crate) fn remove_file(path: &Path) -> Result<(), IsolationError> {
    not_missing(fs::remove_file(path)).map_err(IsolationError::io("remove", path))
}

fn not_missing(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Lets the owner of folders write in them. Links are not followed.
fn open_up(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}
