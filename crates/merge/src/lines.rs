//! Results given as JSON lines, `{"key": …, "value": …}`.

use std::borrow::Cow;
use std::io::{self, BufRead};
use std::sync::Arc;

use offshoot_model::{JsonText, Payload, json_error};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Reads one result per line. Empty lines are passed over; fields of other names are allowed, so that lines may carry
/// more than a merge needs. One line is in memory at a time. After an error there is nothing more.
#[derive(Debug)]
pub struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    number: u64,
    over: bool,
}

/// One result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The name of the result.
    pub key: Arc<str>,
    /// A text where the value is a string, else the JSON it came as.
    pub value: Payload,
}

/// A line that is no result.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// The line is not an object with a key and a value.
    #[error("line {line}: {message}")]
    Invalid {
        /// From 1.
        line: u64,
        /// The reason why the line is invalid.
        message: String,
    },
    /// The line could not be read.
    #[error("line {line} cannot be read")]
    Read {
        /// From 1.
        line: u64,
        /// The error of the system.
        source: io::Error,
    },
}

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    key: Cow<'a, str>,
    #[serde(borrow)]
    value: &'a RawValue,
}

impl<R: BufRead> Lines<R> {
    /// Nothing is read yet.
    pub fn new(input: R) -> Self {
        Self { input, buffer: Vec::new(), number: 0, over: false }
    }

    fn read(&mut self) -> Result<Option<Line>, LineError> {
        loop {
            self.number += 1;
            self.buffer.clear();
            let read = self.input.read_until(b'\n', &mut self.buffer);
            let read = read.map_err(|source| LineError::Read { line: self.number, source })?;
            if read == 0 {
                return Ok(None);
            }
            let bytes = self.buffer.trim_ascii();
            if !bytes.is_empty() {
                let invalid = |message| LineError::Invalid { line: self.number, message };
                return parse(bytes).map(Some).map_err(invalid);
            }
        }
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<Line, LineError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let line = self.read();
        self.over = !matches!(line, Ok(Some(_)));
        line.transpose()
    }
}

fn parse(bytes: &[u8]) -> Result<Line, String> {
    // The reader would take the elements of an array as fields in their order.
    if bytes.starts_with(b"[") {
        return Err("found an array, expected an object".to_owned());
    }
    let record: Record<'_> = serde_json::from_slice(bytes).map_err(|error| {
        let message = json_error(&String::from_utf8_lossy(bytes), &error);
        match (error.is_data(), error.column()) {
            (true, _) | (_, 0) => message,
            (false, column) => format!("{message}, at column {column}"),
        }
    })?;
    let raw = record.value.get();
    let value = if raw.starts_with('"') {
        let text = serde_json::from_str::<String>(raw)
            .map_err(|_| "half a surrogate pair in `value`".to_owned())?;
        Payload::text(text)
    } else {
        Payload::Json(JsonText::of(&record.value).map_err(|error| error.to_string())?)
    };
    Ok(Line { key: record.key.into(), value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Result<Vec<(String, Payload)>, String> {
        Lines::new(text)
            .map(|line| line.map(|line| (line.key.to_string(), line.value)))
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())
    }

    #[test]
    fn values_stay_what_they_were() {
        let text = "{\"key\":\"a\",\"value\":\"x\\ny\"}\r\n\n  \n{\"value\": {\"n\": 1.0}, \"key\":\"\\u00e4\",\"more\":[]}\n\
            {\"key\":\"c\",\"value\":null}";
        let expected = vec![
            ("a".to_owned(), Payload::text("x\ny")),
            ("ä".to_owned(), Payload::json("{\"n\": 1.0}".to_owned()).expect("JSON")),
            ("c".to_owned(), Payload::json("null".to_owned()).expect("JSON")),
        ];
        assert_eq!(read(text.as_bytes()), Ok(expected));
        assert_eq!(read(b""), Ok(Vec::new()));
        assert_eq!(read(b"\n\n"), Ok(Vec::new()));
    }

    #[test]
    fn a_bad_line_is_named() {
        let check = |text: &[u8], expected: &str| {
            let error = read(text).expect_err(expected);
            assert!(error.starts_with(expected), "{error}");
        };
        let good = "{\"key\":\"a\",\"value\":1}\n";
        check(
            format!("{good}\nnope\n{good}").as_bytes(),
            "line 3: a word that is none of true, false and null, at column",
        );
        check(b"{\"key\":\"a\"}", "line 1: the key `value` is missing");
        check(b"{\"value\":1}", "line 1: the key `key` is missing");
        check(b"{\"key\":1,\"value\":1}", "line 1: `key`: found integer `1`, expected a string");
        check(
            b"{\"key\":\"a\",\"value\":1} 2",
            "line 1: something follows the value, at column 23",
        );
        check(b"{\"key\":\"a\",\"value\":", "line 1: it ends where a value must stand, at column ");
        check(b"[\"k\",5]", "line 1: found an array, expected an object");
        check(b"[1", "line 1: found an array, expected an object");
        check(b"5", "line 1: found integer `5`, expected an object");
        check(b"{\"key\":\"a\",\"value\":\"\xff\"}", "line 1: ");
    }

    #[test]
    fn nothing_after_an_error() {
        let mut lines = Lines::new(&b"nope\n{\"key\":\"a\",\"value\":1}\n"[..]);
        assert!(lines.next().is_some_and(|line| line.is_err()));
        assert!(lines.next().is_none());
    }
}
