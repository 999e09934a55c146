//! A system without sealed memory: a library is mapped from its file.

use std::io;
use std::path::{Path, PathBuf};

/// The path from which this library can be opened.
pub(in super::super) fn keep(path: &Path, _bytes: &[u8]) -> io::Result<PathBuf> {
    Ok(path.to_owned())
}
