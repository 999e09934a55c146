//! The hash of a piece, taken while its end is still being looked for.

use offshoot_model::ContentHash;

use crate::SplitError;
use crate::window::Window;

/// A hash over the header, and the bytes from where the piece starts up to wherever it has got.
pub(crate) struct PieceHash {
    hasher: blake3::Hasher,
    at: u64,
}

impl PieceHash {
    /// The hash over the bytes before `end`, with which each piece of a file begins; over none where there is no header.
    pub(crate) fn header(window: &mut Window, end: u64) -> Result<Self, SplitError> {
        let mut hash = Self { hasher: blake3::Hasher::new(), at: 0 };
        hash.upto(window, end)?;
        Ok(hash)
    }

    /// The hash that goes on with a piece that starts there.
    pub(crate) fn then(&self, start: u64) -> Self {
        Self { hasher: self.hasher.clone(), at: start }
    }

    /// Takes in everything before `end`, block by block. What was taken in is not read again.
    pub(crate) fn upto(&mut self, window: &mut Window, end: u64) -> Result<(), SplitError> {
        while self.at < end {
            let block = window.from(self.at)?;
            let length = (end - self.at).min(block.len() as u64);
            self.hasher.update(&block[..length as usize]);
            self.at += length;
        }
        Ok(())
    }

    pub(crate) fn finish(&self) -> ContentHash {
        ContentHash::from_bytes(*self.hasher.finalize().as_bytes())
    }
}
