//! A piece whose file is open for as long as its run lasts.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
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
    /// Opens the file of a piece, which has all of the piece's bytes. A piece with a header is put together in a file without a
    /// name in the folder `spool`. Blocks.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or is shorter by now, or the other one cannot be written.
    pub fn open(range: InputRange, spool: &Path) -> Result<Self, SplitError> {
        let failed = |error| SplitError::from_io(&range.path, error);
        let file = open(&range.path)?;
        let metadata = file.metadata().map_err(failed)?;
        let end = range.offset.checked_add(range.length);
        if end.is_none_or(|end| end > metadata.len()) || range.header > metadata.len() {
            return Err(SplitError::Shorter { path: range.path.to_path_buf() });
        }
        if range.header == 0 {
            return Ok(Self { file, range });
        }
        let spooled = || {
            let mut whole = tempfile::tempfile_in(spool)?;
            let written = copy(&file, &range, &mut whole)?;
            Ok((whole, written))
        };
        let (whole, written) = spooled().map_err(|error| {
            // The error may be of either file. It is of the input where that cannot be read again.
            match copy(&file, &range, &mut io::sink()) {
                Ok(_) => SplitError::Spool { folder: spool.to_owned(), source: error },
                Err(unreadable) => failed(unreadable),
            }
        })?;
        if written != range.size() {
            return Err(SplitError::Shorter { path: range.path.to_path_buf() });
        }
        let range = InputRange { offset: 0, length: written, header: 0, ..range };
        Ok(Self { file: whole, range })
    }

    /// The same bytes, by the path of the descriptor.
    pub fn range(&self) -> InputRange {
        let path = format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd());
        InputRange { path: Arc::new(path.into()), ..self.range.clone() }
    }
}

/// Copies the header and the piece. Returns the number of bytes.
fn copy(mut from: &File, range: &InputRange, to: &mut impl Write) -> io::Result<u64> {
    from.rewind()?;
    let header = io::copy(&mut from.take(range.header), to)?;
    from.seek(SeekFrom::Start(range.offset))?;
    Ok(header + io::copy(&mut from.take(range.length), to)?)
}
