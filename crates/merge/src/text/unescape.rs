//! The decoding of a JSON string.

use std::io::{self, Write};

/// Undoes the escapes of JSON string content that passes through, up to the closing quote. What passes must be
/// valid JSON. Half a surrogate pair, which text cannot hold, becomes U+FFFD.
pub(super) struct Unescape<'a> {
    out: &'a mut dyn Write,
    pending: Pending,
}

/// Bytes that were read and cannot be written yet, between two blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pending {
    within: Within,
    /// The first half of a surrogate pair.
    high: Option<u16>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Within {
    #[default]
    Text,
    Backslash,
    Hex {
        digits: u8,
        unit: u16,
    },
    Over,
}

impl<'a> Unescape<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> Self {
        Self::resume(out, Pending::default())
    }

    pub(super) fn resume(out: &'a mut dyn Write, pending: Pending) -> Self {
        Self { out, pending }
    }

    pub(super) fn pending(&self) -> Pending {
        self.pending
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.lone_high()
    }

    fn lone_high(&mut self) -> io::Result<()> {
        match self.pending.high.take() {
            Some(_) => self.char(char::REPLACEMENT_CHARACTER),
            None => Ok(()),
        }
    }

    fn escaped(&mut self, byte: u8) -> io::Result<()> {
        if byte == b'u' {
            self.pending.within = Within::Hex { digits: 0, unit: 0 };
            return Ok(());
        }
        self.pending.within = Within::Text;
        self.lone_high()?;
        self.char(match byte {
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            other => char::from(other),
        })
    }

    fn unit(&mut self, unit: u16) -> io::Result<()> {
        self.pending.within = Within::Text;
        if let (Some(high), 0xdc00..=0xdfff) = (self.pending.high, unit) {
            self.pending.high = None;
            let pair = char::decode_utf16([high, unit]).next().and_then(Result::ok);
            return self.char(pair.unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        self.lone_high()?;
        match unit {
            0xd800..=0xdbff => {
                self.pending.high = Some(unit);
                Ok(())
            }
            _ => self.char(char::from_u32(unit.into()).unwrap_or(char::REPLACEMENT_CHARACTER)),
        }
    }

    fn char(&mut self, char: char) -> io::Result<()> {
        self.out.write_all(char.encode_utf8(&mut [0; 4]).as_bytes())
    }
}

impl Write for Unescape<'_> {
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        let mut rest = block;
        while let Some(&first) = rest.first() {
            let mut taken = 1;
            match self.pending.within {
                Within::Over => taken = rest.len(),
                Within::Backslash => self.escaped(first)?,
                Within::Hex { digits, unit } => {
                    let digit = char::from(first).to_digit(16).unwrap_or(0) as u16;
                    let unit = unit << 4 | digit;
                    match digits {
                        3 => self.unit(unit)?,
                        _ => self.pending.within = Within::Hex { digits: digits + 1, unit },
                    }
                }
                Within::Text if first == b'\\' => self.pending.within = Within::Backslash,
                Within::Text if first == b'"' => self.pending.within = Within::Over,
                Within::Text => {
                    self.lone_high()?;
                    let end = rest.iter().position(|&byte| matches!(byte, b'\\' | b'"'));
                    taken = end.unwrap_or(rest.len());
                    self.out.write_all(&rest[..taken])?;
                }
            }
            rest = &rest[taken..];
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

    fn check(inner: &str, expected: &str) {
        for size in 1..=inner.len().max(1) {
            let mut out = Vec::new();
            let mut unescape = Unescape::new(&mut out);
            let mut blocks = inner.as_bytes().chunks(size);
            blocks
                .try_for_each(|block| unescape.write_all(block))
                .expect("writing to memory failed");
            unescape.finish().expect("writing to memory failed");
            assert_eq!(String::from_utf8(out).expect("text"), expected, "{inner} by {size}");
        }
    }

    #[test]
    fn any_escape_in_any_blocks() {
        check("", "");
        check("ä€🦀", "ä€🦀");
        check(r#"\"\\\/\b\f\n\r\t"#, "\"\\/\u{8}\u{c}\n\r\t");
        check(r"\u00e4\u20AC x\ud83e\udd80y", "ä€ x🦀y");
        check(r#"over" no more"#, "over");
    }

    #[test]
    fn half_a_pair_is_replaced() {
        check(r"\ud83e", "\u{fffd}");
        check(r"\udd80", "\u{fffd}");
        check(r"\ud83ex\ud83e\n\ud83e\ud83e\udd80", "\u{fffd}x\u{fffd}\n\u{fffd}🦀");
        check(r"\ud83e\u0041", "\u{fffd}A");
    }
}
