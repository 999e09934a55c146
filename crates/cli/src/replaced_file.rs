//! A file that is written aside first and then put in its place, so that it is whole or as before.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use tempfile::NamedTempFile;

/// Writes the file, with the folders above it.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    // Or a power failure could leave the name with nothing behind it.
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}
