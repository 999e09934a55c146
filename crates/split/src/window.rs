//! One block of a file in memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::SplitError;

/// The number of bytes that are read at once. Enough that the system call does not count, little enough to stay in the
/// cache between the search for a line's end and the hash over the same bytes. Tests take a small one, so that short texts
/// have seams in every place.
pub(crate) const BLOCK: usize = if cfg!(test) { 29 } else { 1 << 20 };

/// A file, and the block of it that was read last. Never reads past the size that was recorded.
pub(crate) struct Window {
    file: Arc<File>,
    path: Arc<PathBuf>,
    size: u64,
    base: u64,
    held: usize,
    buffer: Box<[u8]>,
}

impl Window {
    /// The first `size` bytes of an open file, which is found again by this path.
    pub(crate) fn new(file: Arc<File>, path: Arc<PathBuf>, size: u64) -> Self {
        let room = usize::try_from(size).map_or(BLOCK, |size| size.min(BLOCK));
        Self { file, path, size, base: 0, held: 0, buffer: vec![0; room].into_boxed_slice() }
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn path(&self) -> &Arc<PathBuf> {
        &self.path
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Returns the bytes from `offset` on: at least a byte, except at the end of the file, and at most a block.
    pub(crate) fn from(&mut self, offset: u64) -> Result<&[u8], SplitError> {
        self.at_least(offset, 1)
    }

    /// Returns the bytes from `offset` on, and no less than `length` (at most a block) unless the file ends before.
    pub(crate) fn at_least(&mut self, offset: u64, length: usize) -> Result<&[u8], SplitError> {
        debug_assert!(length <= BLOCK, "a window holds no more than a block");
        let wanted = (length as u64).min(self.size.saturating_sub(offset));
        let end = self.base + self.held as u64;
        if offset < self.base || offset + wanted > end {
            // Nothing is held until all of it is there: a failed read leaves bytes of two places behind.
            self.held = 0;
            let room = (self.size - offset).min(self.buffer.len() as u64) as usize;
            let mut block = std::mem::take(&mut self.buffer);
            let read = self.read(offset, &mut block[..room]);
            self.buffer = block;
            read?;
            (self.base, self.held) = (offset, room);
        }
        let start = (offset - self.base) as usize;
        Ok(&self.buffer[start.min(self.held)..self.held])
    }

    /// Fills `into` from `offset` and leaves the block alone: for a look at a few bytes elsewhere.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), SplitError> {
        let end = self.base + self.held as u64;
        if offset >= self.base && offset + into.len() as u64 <= end {
            let start = (offset - self.base) as usize;
            into.copy_from_slice(&self.buffer[start..start + into.len()]);
            return Ok(());
        }
        self.file.read_exact_at(into, offset).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => SplitError::Changed { path: self.path.to_path_buf() },
            _ => SplitError::from_io(&self.path, error),
        })
    }
}
