//! White space between the tokens of JSON.

use std::io::{self, Write};

/// The layout of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spacing {
    /// None at all.
    Compact,
    /// A line for each member, two spaces for each level.
    Indented,
}

/// Gives JSON that passes through another layout. Tokens stay as they were written: a number keeps its digits, a
/// key its place. What passes must be valid JSON.
pub(super) struct Layout<'a> {
    spacing: Spacing,
    out: &'a mut dyn Write,
    at: Position,
}

/// The position in the JSON at which a block ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Position {
    level: usize,
    in_string: bool,
    after_backslash: bool,
    /// Right behind an opening bracket: an empty pair stays on one line.
    opened: bool,
}

impl<'a> Layout<'a> {
    pub(super) fn new(spacing: Spacing, out: &'a mut dyn Write) -> Self {
        Self::resume(spacing, out, Position::default())
    }

    pub(super) fn resume(spacing: Spacing, out: &'a mut dyn Write, at: Position) -> Self {
        Self { spacing, out, at }
    }

    pub(super) fn position(&self) -> Position {
        self.at
    }

    /// Consumes string content up to its end or the block's; gives the number of bytes.
    fn string(&mut self, block: &[u8]) -> usize {
        for (index, &byte) in block.iter().enumerate() {
            match byte {
                _ if self.at.after_backslash => self.at.after_backslash = false,
                b'\\' => self.at.after_backslash = true,
                b'"' => {
                    self.at.in_string = false;
                    return index + 1;
                }
                _ => {}
            }
        }
        block.len()
    }

    fn token(&mut self, byte: u8) -> io::Result<()> {
        let closes = matches!(byte, b'}' | b']');
        if closes {
            self.at.level = self.at.level.saturating_sub(1);
        }
        // Before a closing bracket a line ends unless the pair is empty; before a first member it always does.
        if self.at.opened != closes {
            self.new_line()?;
        }
        self.at.opened = false;
        self.out.write_all(&[byte])?;
        match byte {
            b'{' | b'[' => {
                self.at.level += 1;
                self.at.opened = true;
                Ok(())
            }
            b',' => self.new_line(),
            b':' if self.spacing == Spacing::Indented => self.out.write_all(b" "),
            b'"' => {
                self.at.in_string = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn new_line(&mut self) -> io::Result<()> {
        if self.spacing == Spacing::Compact {
            return Ok(());
        }
        self.out.write_all(b"\n")?;
        (0..self.at.level).try_for_each(|_| self.out.write_all(b"  "))
    }
}

impl Write for Layout<'_> {
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        let mut rest = block;
        while let Some(&first) = rest.first() {
            let length = if self.at.in_string {
                let length = self.string(rest);
                self.out.write_all(&rest[..length])?;
                length
            } else if matches!(first, b' ' | b'\n' | b'\r' | b'\t') {
                1
            } else if is_structure(first) || self.at.opened {
                self.token(first)?;
                1
            } else {
                // The rest of a number or a literal.
                let end = rest.iter().position(|&byte| is_structure(byte) || byte <= b' ');
                let length = end.unwrap_or(rest.len());
                self.out.write_all(&rest[..length])?;
                length
            };
            rest = &rest[length..];
        }
        Ok(block.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

const fn is_structure(byte: u8) -> bool {
    matches!(byte, b'{' | b'}' | b'[' | b']' | b',' | b':' | b'"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_as_serde_json_in_any_blocks() {
        let samples = [
            "1",
            " -1.50e+3 ",
            "null",
            r#" "a \" , \\" "#,
            "[ ]",
            "{ }",
            r#"{"a":[],"b":{},"c":[[]]}"#,
            r#" { "a" : [ 1 , 2.5 , { "b" : "x , y : z" } ] , "c" : null, "ä" : true } "#,
            "[[[1],[2,[]]],{}]",
        ];
        for text in samples {
            let value: serde_json::Value = serde_json::from_str(text).expect(text);
            for (spacing, expected) in [
                (Spacing::Compact, serde_json::to_string(&value)),
                (Spacing::Indented, serde_json::to_string_pretty(&value)),
            ] {
                // A float keeps its own digits here, which serde_json's value does not.
                let expected = expected.expect("a value").replace("-1500.0", "-1.50e+3");
                for size in 1..=text.len() {
                    let mut out = Vec::new();
                    let mut layout = Layout::new(spacing, &mut out);
                    let mut blocks = text.as_bytes().chunks(size);
                    blocks
                        .try_for_each(|block| layout.write_all(block))
                        .expect("writing to memory failed");
                    assert_eq!(String::from_utf8(out).expect("text"), expected, "{text} by {size}");
                }
            }
        }
    }
}
