//! Text out of bytes that may not be text.

use std::io::{self, Write};

use super::Escape;

/// Passes UTF-8 on and puts U+FFFD where a sequence cannot be read, exactly as `String::from_utf8_lossy` would
/// for the whole.
pub(super) struct Lossy<'a> {
    out: Escape<'a>,
    /// The beginning of a character whose end is in the next block.
    begun: Vec<u8>,
}

const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

impl<'a> Lossy<'a> {
    pub(super) fn new(out: Escape<'a>) -> Self {
        Self { out, begun: Vec::with_capacity(4) }
    }

    /// A character that was begun and never ended is unreadable too.
    pub(super) fn finish(mut self) -> io::Result<()> {
        if self.begun.is_empty() { Ok(()) } else { self.out.write_all(REPLACEMENT) }
    }

    /// Passes on what can be decided, and keeps an unfinished character.
    fn pass(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => return self.out.write_all(text.as_bytes()),
                Err(error) => {
                    let (good, bad) = rest.split_at(error.valid_up_to());
                    self.out.write_all(good)?;
                    let Some(length) = error.error_len() else {
                        self.begun.extend_from_slice(bad);
                        return Ok(());
                    };
                    self.out.write_all(REPLACEMENT)?;
                    rest = &bad[length..];
                }
            }
        }
    }
}

impl Write for Lossy<'_> {
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        let mut taken = 0;
        // At most three bytes are needed before a begun character is complete or known to be broken.
        while !self.begun.is_empty() && taken < block.len() {
            let mut begun = std::mem::take(&mut self.begun);
            begun.push(block[taken]);
            taken += 1;
            self.pass(&begun)?;
        }
        self.pass(&block[taken..])?;
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
    fn same_as_the_whole_in_any_blocks() {
        let samples: [&[u8]; 7] = [
            b"plain",
            "ä€🦀".as_bytes(),
            b"\xff\xfe",
            b"a\xe2\x82",
            b"\xf0\x9f\xa6b\xf0\x9f",
            b"\xe2\x28\xa1\x80\x80",
            b"\xed\xa0\x80x\xf4\x90\x80\x80",
        ];
        for bytes in samples {
            let expected = String::from_utf8_lossy(bytes).into_owned();
            for size in 1..=bytes.len() {
                let mut out = Vec::new();
                let mut lossy = Lossy::new(Escape::new(&mut out));
                bytes
                    .chunks(size)
                    .try_for_each(|block| lossy.write_all(block))
                    .expect("writing to memory failed");
                lossy.finish().expect("writing to memory failed");
                assert_eq!(String::from_utf8(out).expect("text"), expected, "{bytes:?} by {size}");
            }
        }
    }
}
