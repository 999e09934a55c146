//! Lines out of blocks, for taps that think in lines.

use memchr::memchr;

/// Puts lines together from blocks, in bounded memory.
///
/// ```
/// use offshoot_process::Lines;
///
/// let (mut lines, mut seen) = (Lines::new(5), Vec::new());
/// for block in ["on", "e\ntw", "o\nseventeen\nla", "st"] {
///     lines.feed(block.as_bytes(), |line| seen.push(String::from_utf8_lossy(line).into_owned()));
/// }
/// assert_eq!(seen, ["one", "two", "seven"]);
/// assert_eq!(lines.rest(), b"last");
/// ```
#[derive(Clone, Debug)]
pub struct Lines {
    /// The beginning of a line that has not ended.
    partial: Vec<u8>,
    longest: usize,
}

impl Lines {
    /// Of a line longer than this, in bytes, only the beginning is told.
    pub fn new(longest: usize) -> Self {
        Self { partial: Vec::new(), longest }
    }

    /// Calls for each line that ends in this block, without its newline.
    pub fn feed(&mut self, mut block: &[u8], mut line: impl FnMut(&[u8])) {
        while let Some(end) = memchr(b'\n', block) {
            if self.partial.is_empty() {
                line(&block[..end.min(self.longest)]);
            } else {
                self.hold(&block[..end]);
                line(&self.partial);
                self.partial.clear();
            }
            block = &block[end + 1..];
        }
        self.hold(block);
    }

    /// The last line, where it has no newline.
    pub fn rest(&self) -> &[u8] {
        &self.partial
    }

    fn hold(&mut self, bytes: &[u8]) {
        let room = self.longest.saturating_sub(self.partial.len());
        self.partial.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However a text is cut into blocks, its lines are the same.
        #[test]
        fn blocks_do_not_show(text in "[ab\n]{0,60}", cut in 1usize..10, longest in 1usize..8) {
            let (mut lines, mut seen) = (Lines::new(longest), Vec::new());
            for block in text.as_bytes().chunks(cut) {
                lines.feed(block, |line| seen.push(line.to_vec()));
            }
            seen.push(lines.rest().to_vec());
            let expected: Vec<_> = text
                .as_bytes()
                .split(|byte| *byte == b'\n')
                .map(|line| line[..line.len().min(longest)].to_vec())
                .collect();
            prop_assert_eq!(seen, expected);
        }
    }
}
