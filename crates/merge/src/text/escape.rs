//! The inside of a JSON string.

use std::io::{self, Write};

/// Escapes what passes through, as a JSON string wants it. Works on bytes: all that needs escaping is ASCII, so
/// a block may end inside a character.
pub(super) struct Escape<'a> {
    out: &'a mut dyn Write,
}

impl<'a> Escape<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> Self {
        Self { out }
    }
}

impl Write for Escape<'_> {
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        let mut rest = block;
        while let Some(at) = rest.iter().position(|&byte| needs_escape(byte)) {
            self.out.write_all(&rest[..at])?;
            match rest[at] {
                b'"' => self.out.write_all(b"\\\"")?,
                b'\\' => self.out.write_all(b"\\\\")?,
                b'\n' => self.out.write_all(b"\\n")?,
                b'\r' => self.out.write_all(b"\\r")?,
                b'\t' => self.out.write_all(b"\\t")?,
                0x08 => self.out.write_all(b"\\b")?,
                0x0c => self.out.write_all(b"\\f")?,
                control => write!(self.out, "\\u{control:04x}")?,
            }
            rest = &rest[at + 1..];
        }
        self.out.write_all(rest)?;
        Ok(block.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

const fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_as_serde_json() {
        let all: String = (0_u8..=127).map(char::from).chain("ä€🦀\u{2028}".chars()).collect();
        let mut out = Vec::new();
        Escape::new(&mut out).write_all(all.as_bytes()).expect("writing to memory failed");
        let expected = serde_json::to_string(&all).expect("a string");
        assert_eq!(format!("\"{}\"", String::from_utf8(out).expect("text")), expected);
    }
}
