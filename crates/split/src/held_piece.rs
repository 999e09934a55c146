//! A piece whose file is open for as long as its run lasts.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use offshoot_model::InputRange;

use crate::SplitError;
use crate::input_file::open;

/// The file of a piece, held open.
///
/// Runtimes, and plugins among them, open what they are given by its path. So they are given one that no agent can replace: that
/// of the descriptor, in the folder of this process below `/proc`. It leads to the file until this is dropped.
#[derive(Debug)]
pub struct HeldPiece {
    file: File,
    range: InputRange,
}

impl HeldPiece {
    /// Opens the file of a piece, which has all of the piece's bytes. Blocks.
    pub fn open(range: InputRange) -> Result<Self, SplitError> {
        let file = open(&range.path)?;
        let metadata = file.metadata().map_err(|error| SplitError::from_io(&range.path, error))?;
        if range.offset.checked_add(range.length).is_none_or(|end| end > metadata.len()) {
            return Err(SplitError::Shorter { path: range.path.to_path_buf() });
        }
        Ok(Self { file, range })
    }

    /// The same bytes, by the path of the descriptor.
    pub fn range(&self) -> InputRange {
        let path = format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd());
        InputRange { path: Arc::new(path.into()), ..self.range.clone() }
    }
}
