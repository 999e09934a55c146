//! Bytes as Base64.

use std::io::{self, Write};

use data_encoding::BASE64;

/// Bytes that become four characters.
const GROUP: usize = 3;
/// Bytes that are encoded at once: a whole number of groups.
const BLOCK: usize = 3 * 1024;

/// Encodes what passes through. What remains of the last group is written by [`Base64::finish`].
pub(super) struct Base64<'a> {
    out: &'a mut dyn Write,
    /// The beginning of a group, and its length.
    begun: ([u8; GROUP], usize),
}

impl<'a> Base64<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> Self {
        Self { out, begun: ([0; GROUP], 0) }
    }

    /// Writes the last group, filled up with `=`.
    pub(super) fn finish(self) -> io::Result<()> {
        let (group, length) = self.begun;
        self.out.write_all(BASE64.encode(&group[..length]).as_bytes())
    }
}

impl Write for Base64<'_> {
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        let mut rest = block;
        let (group, length) = &mut self.begun;
        while (1..GROUP).contains(length)
            && let [first, after @ ..] = rest
        {
            group[*length] = *first;
            *length += 1;
            rest = after;
        }
        if *length == GROUP {
            self.out.write_all(BASE64.encode(&*group).as_bytes())?;
            *length = 0;
        }
        let whole = rest.len() / GROUP * GROUP;
        for block in rest[..whole].chunks(BLOCK) {
            self.out.write_all(BASE64.encode(block).as_bytes())?;
        }
        for &byte in &rest[whole..] {
            group[*length] = byte;
            *length += 1;
        }
        Ok(block.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_in_any_blocks() {
        let bytes: Vec<u8> = (0..=255).cycle().take(2 * BLOCK + 7).collect();
        for length in [0, 1, 2, 3, 4, 7, 256, BLOCK, BLOCK + 1, bytes.len()] {
            for size in [1, 2, 3, 4, 5, BLOCK, bytes.len()] {
                let mut out = Vec::new();
                let mut encoder = Base64::new(&mut out);
                let mut blocks = bytes[..length].chunks(size);
                blocks
                    .try_for_each(|block| encoder.write_all(block))
                    .and_then(|()| encoder.finish())
                    .expect("writing to memory failed");
                assert_eq!(out, BASE64.encode(&bytes[..length]).into_bytes(), "{length} {size}");
            }
        }
    }
}
