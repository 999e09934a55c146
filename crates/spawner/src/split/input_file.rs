//! A file as it was when it was first looked at.

use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use offshoot_model::{InputRange, Timestamp};
use serde::{Deserialize, Serialize};

use super::SplitError;
use super::piece_hash::PieceHash;
use super::window::Window;

/// What tells a file from a later version of itself without reading it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputFile {
    /// Absolute.
    pub path: Arc<PathBuf>,
    /// In bytes.
    pub size: u64,
    /// When its content last changed, as the file system tells it.
    pub modified: Timestamp,
}

/// Whether the bytes of a range are still those that were cut: reads and hashes them. A file that is gone or shorter
/// by now has changed; a range without a hash only has to be there.
///
/// # Errors
///
/// Where the file is there and cannot be read.
pub fn verify(range: &InputRange) -> Result<bool, SplitError> {
    let file = match InputFile::open(&range.path) {
        Ok(file) => file,
        Err(SplitError::NotFound { .. }) => return Ok(false),
        Err(error) => return Err(error),
    };
    let end = match range.offset.checked_add(range.length) {
        Some(end) if end <= file.size => end,
        _ => return Ok(false),
    };
    let Some(expected) = range.hash else { return Ok(true) };
    let mut hash = PieceHash::new(range.offset);
    let read = Window::open(&file, file.size).and_then(|mut window| hash.upto(&mut window, end));
    match read {
        Ok(()) => Ok(hash.finish() == expected),
        Err(SplitError::Changed { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The first range whose bytes are not those that were cut. Reads only files that are not as they were when they were looked at,
/// so that it costs nothing where nothing was written. What was appended to a file changes no range.
///
/// # Errors
///
/// As those of [`verify`].
pub fn first_changed<'a>(
    files: &[InputFile],
    ranges: &'a [InputRange],
) -> Result<Option<&'a InputRange>, SplitError> {
    let mut written = HashSet::new();
    for file in files {
        if !file.is_unchanged()? {
            written.insert(file.path.as_path());
        }
    }
    for range in ranges.iter().filter(|range| written.contains(range.path.as_path())) {
        if !verify(range)? {
            return Ok(Some(range));
        }
    }
    Ok(None)
}

impl InputFile {
    /// Looks at a file and makes sure that it can be read.
    ///
    /// # Errors
    ///
    /// Where it is missing, is no regular file or may not be read.
    pub fn open(path: &Path) -> Result<Self, SplitError> {
        let error = |source| SplitError::from_io(path, source);
        // Before opening: to open a pipe that nobody writes to is to wait for ever.
        let metadata = path.metadata().map_err(error)?;
        if metadata.is_dir() {
            return Err(SplitError::Directory { path: path.to_owned() });
        }
        if !metadata.is_file() {
            return Err(SplitError::NotRegular { path: path.to_owned() });
        }
        let metadata = File::open(path).and_then(|file| file.metadata()).map_err(error)?;
        let path = std::path::absolute(path).map_err(error)?;
        Ok(Self::of(Arc::new(path), &metadata))
    }

    /// Whether the file has kept its size and its modification time. Says nothing of a change that restored both:
    /// [`verify`] reads the bytes.
    ///
    /// # Errors
    ///
    /// Where the system cannot say; a file that is gone is no error.
    pub fn is_unchanged(&self) -> Result<bool, SplitError> {
        match self.path.metadata() {
            Ok(metadata) => Ok(*self == Self::of(Arc::clone(&self.path), &metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(SplitError::from_io(&self.path, error)),
        }
    }

    fn of(path: Arc<PathBuf>, metadata: &Metadata) -> Self {
        // A file system without times, or a time before 1970, leaves the size to tell versions apart.
        let since_epoch =
            metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let modified = since_epoch.map_or(Timestamp::EPOCH, |at| Timestamp::EPOCH.plus(at));
        Self { path, size: metadata.len(), modified }
    }
}
