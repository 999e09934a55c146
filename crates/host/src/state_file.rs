//! Files in the folder for what the user's programs remember: closed to other users, and each whole or not there.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::NamedTempFile;

/// Makes a folder into which other users cannot look, with those above it.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Opens a file that processes lock. It is made where it is not there.
pub(crate) fn lockable(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)
}

/// Writes a file aside and renames it.
pub(crate) fn write(path: &Path, content: &impl Serialize) -> io::Result<()> {
    let mut file = NamedTempFile::new_in(path.parent().unwrap_or(Path::new("/")))?;
    file.write_all(&serde_json::to_vec(content)?)?;
    file.persist(path)?;
    Ok(())
}

/// Returns the content of a file; none where it is not there or damaged.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}
