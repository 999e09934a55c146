//! A file as it was when it was first looked at.

use std::collections::HashSet;
use std::fs::{self, File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use offshoot_model::{InputRange, Timestamp, path_text};
use offshoot_store::open_without_links;
use serde::{Deserialize, Serialize};

use crate::SplitError;
use crate::piece_hash::PieceHash;
use crate::window::Window;

/// Size and times of a file, which tell it from a later version of itself without reading it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputFile {
    /// The path that was asked for, absolute.
    #[serde(with = "path_text")]
    pub path: Arc<PathBuf>,
    /// The path by which it is opened: the same without symbolic links, as they were when it was first looked at. None in
    /// records of earlier versions, and for a file that was handed over open.
    #[serde(default, with = "path_text", skip_serializing_if = "Option::is_none")]
    pub resolved: Option<Arc<PathBuf>>,
    /// In bytes.
    pub size: u64,
    /// The moment of the last change of the content, by the file system.
    pub modified: Timestamp,
    /// The moment of the last change of any kind, of the times as well: programs cannot set this one. Not recorded, because
    /// the files of a copied project have other ones.
    #[serde(skip)]
    pub(crate) changed: Option<(i64, i64)>,
}

/// Reads and hashes the bytes of a range, and returns true if they are those that were cut. A file that is gone or shorter
/// by now has changed; a range without a hash only has to be there.
///
/// # Errors
///
/// Fails if the file is there and cannot be read.
pub fn verify(range: &InputRange) -> Result<bool, SplitError> {
    let file = match open(&range.path) {
        Ok(file) => file,
        Err(SplitError::NotFound { .. }) => return Ok(false),
        Err(error) => return Err(error),
    };
    let size = file.metadata().map_err(|error| SplitError::from_io(&range.path, error))?.len();
    let end = match range.offset.checked_add(range.length) {
        Some(end) if end <= size => end,
        _ => return Ok(false),
    };
    let Some(expected) = range.hash else { return Ok(true) };
    let mut window = Window::new(Arc::new(file), Arc::clone(&range.path), size);
    let hash = PieceHash::header(&mut window, range.header.min(size)).and_then(|header| {
        let mut hash = header.then(range.offset);
        hash.upto(&mut window, end)?;
        Ok(hash.finish())
    });
    match hash {
        Ok(hash) => Ok(hash == expected),
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
            written.insert(file.resolved().as_path());
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
    /// Looks at a file that the user has named, and makes sure that it can be read. Links on the path are followed.
    ///
    /// # Errors
    ///
    /// Fails if it is missing, is no regular file or may not be read.
    pub fn open(path: &Path) -> Result<Self, SplitError> {
        let error = |source| SplitError::from_io(path, source);
        let metadata = path.metadata().map_err(error)?;
        if metadata.is_dir() {
            return Err(SplitError::Directory { path: path.to_owned() });
        }
        if !metadata.is_file() {
            return Err(SplitError::NotRegular { path: path.to_owned() });
        }
        let resolved = fs::canonicalize(path).map_err(error)?;
        let path = std::path::absolute(path).map_err(error)?;
        Self::resolved_to(Arc::new(path), Arc::new(resolved))
    }

    /// Looks at a file that is open, and was so by this path.
    pub(crate) fn of_open(file: &File, path: PathBuf) -> Result<Self, SplitError> {
        let metadata = file.metadata().map_err(|error| SplitError::from_io(&path, error))?;
        Ok(Self::of(Arc::new(path), None, &metadata))
    }

    /// Looks at the file again by the path by which it is opened. What an earlier version has looked at has only the path
    /// that was asked for.
    pub(crate) fn look_again(&self) -> Result<Self, SplitError> {
        match &self.resolved {
            Some(resolved) => Self::resolved_to(Arc::clone(&self.path), Arc::clone(resolved)),
            None => Self::open(&self.path),
        }
    }

    /// Notes that the same file has this name by now, which is canonical.
    pub fn rename(&mut self, to: Arc<PathBuf>) {
        self.path = Arc::clone(&to);
        self.resolved = Some(to);
        // Giving it a name has changed it.
        self.changed = None;
    }

    /// Opens the file to be read. A link on the way is an error.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be opened, or if a link stands in its path.
    pub fn reopen(&self) -> Result<File, SplitError> {
        open(self.resolved())
    }

    /// The path by which it is opened.
    pub fn resolved(&self) -> &Arc<PathBuf> {
        self.resolved.as_ref().unwrap_or(&self.path)
    }

    /// Returns true if the file has kept its size and its times. [`verify`] reads the bytes.
    ///
    /// # Errors
    ///
    /// Fails if the system cannot say, or the path leads over a symbolic link by now; a file that is gone is no error.
    pub fn is_unchanged(&self) -> Result<bool, SplitError> {
        match self.reopen() {
            Ok(file) => self.is(&file),
            Err(SplitError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns true if this open file has the same size and the same times.
    pub(crate) fn is(&self, file: &File) -> Result<bool, SplitError> {
        let metadata = file.metadata().map_err(|error| SplitError::from_io(&self.path, error))?;
        let now = Self::of(Arc::clone(&self.path), self.resolved.clone(), &metadata);
        // A record has no time of the last change in any way.
        Ok(*self == Self { changed: self.changed.and(now.changed), ..now })
    }

    fn resolved_to(path: Arc<PathBuf>, resolved: Arc<PathBuf>) -> Result<Self, SplitError> {
        let file = open(&resolved)?;
        let metadata = file.metadata().map_err(|error| SplitError::from_io(&path, error))?;
        Ok(Self::of(path, Some(resolved), &metadata))
    }

    fn of(path: Arc<PathBuf>, resolved: Option<Arc<PathBuf>>, metadata: &Metadata) -> Self {
        // A file system without times, or a time before 1970, leaves the size to tell versions apart.
        let since_epoch =
            metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let modified = since_epoch.map_or(Timestamp::EPOCH, |at| Timestamp::EPOCH.plus(at));
        let changed = Some((metadata.ctime(), metadata.ctime_nsec()));
        Self { path, resolved, size: metadata.len(), modified, changed }
    }
}

/// Opens a regular file by a path without symbolic links. The one place where the path of an input is opened.
pub(crate) fn open(path: &Path) -> Result<File, SplitError> {
    open_without_links(path).map_err(|error| match first_link(path) {
        Some(link) => SplitError::Link { path: path.to_owned(), link: link.to_owned() },
        None => SplitError::from_io(path, error),
    })
}

/// The link that is nearest to the root, for a message.
fn first_link(path: &Path) -> Option<&Path> {
    path.ancestors().filter(|step| step.is_symlink()).last()
}
