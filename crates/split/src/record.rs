//! Check that a line is JSON.

use std::io::{self, BufReader, Read};
use std::ops::Range;

use offshoot_model::json_error;
use serde::de::IgnoredAny;

use crate::SplitError;
use crate::window::{BLOCK, Window};

/// The number of bytes that are read at once of a record that does not fit into a block.
const BUFFER: usize = if cfg!(test) { 7 } else { 1 << 16 };

/// Checks the line at `range` without building anything of it. A line longer than a block is read
/// piecemeal: a record may be larger than memory.
pub(crate) fn check(window: &mut Window, range: Range<u64>) -> Result<(), SplitError> {
    let length = range.end - range.start;
    let problem = if length <= BLOCK as u64 {
        let line = &window.at_least(range.start, length as usize)?[..length as usize];
        match str::from_utf8(line) {
            Ok(text) => serde_json::from_str::<IgnoredAny>(text).err().map(problem_of),
            Err(error) => Some((error.valid_up_to() + 1, NOT_UTF8.to_owned())),
        }
    } else {
        let bytes = RangeReader { window, range: range.clone(), tail: Vec::new(), at: 0 };
        let read =
            serde_json::from_reader::<_, IgnoredAny>(BufReader::with_capacity(BUFFER, bytes));
        match read {
            Ok(_) => None,
            Err(error) => match error.io_error_kind() {
                None => Some(problem_of(error)),
                Some(_) => Some(of_reader(error.into())?),
            },
        }
    };
    match problem {
        None => Ok(()),
        Some((column, problem)) => Err(SplitError::NotJson {
            path: window.path().to_path_buf(),
            line: line_number(window, range.start)?,
            column,
            problem,
        }),
    }
}

const NOT_UTF8: &str = "not UTF-8";

/// A read error beneath the parser.
#[derive(Debug, thiserror::Error)]
enum Beneath {
    /// The file cannot be read.
    #[error(transparent)]
    Read(SplitError),
    /// A piece of a file that is cut as JSON lines is not UTF-8.
    #[error("{NOT_UTF8}")]
    NotUtf8 { column: usize },
}

/// The bytes of a range, refused where they are not UTF-8: the parser looks at the bytes of a string it ignores
/// only for its end.
struct RangeReader<'a> {
    window: &'a Window,
    range: Range<u64>,
    /// The start of a character whose rest is not read yet.
    tail: Vec<u8>,
    at: usize,
}

impl Read for RangeReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = (self.range.end - self.range.start).min(into.len() as u64) as usize;
        let into = &mut into[..length];
        self.window
            .read(self.range.start, into)
            .map_err(|error| io::Error::other(Beneath::Read(error)))?;
        self.range.start += length as u64;
        self.check_utf8(into).map_err(|column| io::Error::other(Beneath::NotUtf8 { column }))?;
        Ok(length)
    }
}

impl RangeReader<'_> {
    /// Fails with the column of the first byte that is not UTF-8.
    fn check_utf8(&mut self, bytes: &[u8]) -> Result<(), usize> {
        let mut rest = bytes;
        // At most three bytes of the next block complete what the last one left.
        while !self.tail.is_empty() {
            let Some((byte, others)) = rest.split_first() else { return Ok(()) };
            self.tail.push(*byte);
            rest = others;
            match str::from_utf8(&self.tail) {
                Ok(_) => {
                    self.at += self.tail.len();
                    self.tail.clear();
                }
                Err(error) if error.error_len().is_some() => return Err(self.at + 1),
                Err(_) => {}
            }
        }
        match str::from_utf8(rest) {
            Ok(_) => self.at += rest.len(),
            Err(error) => {
                self.at += error.valid_up_to();
                if error.error_len().is_some() {
                    return Err(self.at + 1);
                }
                self.tail.extend_from_slice(&rest[error.valid_up_to()..]);
            }
        }
        Ok(())
    }
}

/// The parser names a line and a column of the text it was given, and that is always its first line.
fn problem_of(error: serde_json::Error) -> (usize, String) {
    (error.column().max(1), json_error("", &error))
}

fn of_reader(error: io::Error) -> Result<(usize, String), SplitError> {
    match error.downcast::<Beneath>().expect("only our own reader fails beneath this parser") {
        Beneath::Read(error) => Err(error),
        Beneath::NotUtf8 { column } => Ok((column, NOT_UTF8.to_owned())),
    }
}

/// Counted only when it is needed: a second look at the file instead of a count beside every line.
fn line_number(window: &mut Window, offset: u64) -> Result<u64, SplitError> {
    let (mut newlines, mut cursor) = (0, 0);
    while cursor < offset {
        let block = window.from(cursor)?;
        let length = (offset - cursor).min(block.len() as u64);
        newlines += memchr::memchr_iter(b'\n', &block[..length as usize]).count() as u64;
        cursor += length;
    }
    Ok(newlines + 1)
}
