//! The lines of a value in which something stands. One line at a time is in memory, and those around it.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use regex::bytes::Regex;

/// A longer line is taken for several, so that a file without line breaks does not fill the memory.
const LINE_BYTES: u64 = if cfg!(test) { 64 } else { 1 << 20 };

/// As much of a line is shown.
const SHOWN: usize = if cfg!(test) { 32 } else { 2000 };

/// The search that a caller asks for.
pub(super) struct Grep {
    pub(super) pattern: Regex,
    /// So many lines are shown before and behind each in which it is found.
    pub(super) around: usize,
    /// So many bytes are answered, but at least one line.
    pub(super) bound: usize,
}

/// The lines that were found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GrepAnswer {
    /// The lines, numbered.
    pub(super) text: String,
    /// The offset at which to continue, where there was more than could be answered.
    pub(super) next: Option<u64>,
}

/// A line of the value.
struct Line {
    number: u64,
    offset: u64,
    /// The offset of the next line.
    end: u64,
    bytes: Vec<u8>,
}

/// Counts the lines that end before this byte. The file stands there afterwards. `go_on` is asked before each block.
pub(super) fn lines_before(
    file: &mut (impl Read + Seek),
    offset: u64,
    go_on: impl Fn() -> io::Result<()>,
) -> io::Result<u64> {
    let mut before = BufReader::new(Read::by_ref(file).take(offset));
    let mut count = 0;
    loop {
        go_on()?;
        let block = before.fill_buf()?;
        if block.is_empty() {
            break;
        }
        count += block.iter().filter(|byte| **byte == b'\n').count() as u64;
        let length = block.len();
        before.consume(length);
    }
    file.seek(SeekFrom::Start(offset))?;
    Ok(count)
}

impl Grep {
    /// Reads to the end, or until the answer is full. The first line has this number and begins at this byte. `go_on` is asked
    /// before each line.
    pub(super) fn read(
        &self,
        mut input: impl BufRead,
        mut number: u64,
        mut offset: u64,
        go_on: impl Fn() -> io::Result<()>,
    ) -> io::Result<GrepAnswer> {
        let mut answer = Text {
            text: String::new(),
            bound: self.bound,
            gaps: self.around > 0,
            shown_to: offset,
            found: 0,
        };
        let mut before: VecDeque<Line> = VecDeque::new();
        let mut behind = 0;
        loop {
            go_on()?;
            let mut bytes = Vec::new();
            let read = Read::by_ref(&mut input).take(LINE_BYTES).read_until(b'\n', &mut bytes)?;
            if read == 0 {
                return Ok(GrepAnswer { text: answer.text, next: None });
            }
            let ended = bytes.last() == Some(&b'\n');
            if ended {
                bytes.pop();
            }
            let end = offset + read as u64;
            let line = Line { number, offset, end, bytes };
            offset = end;
            number += u64::from(ended);
            if self.pattern.is_match(&line.bytes) {
                let from = before.front().map_or(line.offset, |first| first.offset);
                let mut fits = true;
                for line in before.drain(..) {
                    fits = fits && answer.add(&line, '-');
                }
                if !(fits && answer.add(&line, ':')) {
                    return Ok(GrepAnswer { text: answer.text, next: Some(from) });
                }
                answer.found += 1;
                behind = self.around;
            } else if behind > 0 {
                behind -= 1;
                if !answer.add(&line, '-') {
                    // Nothing but surroundings is missing here, and whatever follows.
                    return Ok(GrepAnswer { text: answer.text, next: Some(line.offset) });
                }
            } else if self.around > 0 {
                if before.len() == self.around {
                    before.pop_front();
                }
                before.push_back(line);
            }
        }
    }
}

/// The answer so far.
struct Text {
    text: String,
    bound: usize,
    /// True if lines that do not follow each other are kept apart.
    gaps: bool,
    /// The offset after the last line that was added.
    shown_to: u64,
    /// In how many of them it was found.
    found: usize,
}

impl Text {
    /// Adds a line, unless it does not fit any more. All lines up to the first hit fit: a reader that goes on from here must
    /// get further.
    fn add(&mut self, line: &Line, mark: char) -> bool {
        let shown = &line.bytes[..line.bytes.len().min(SHOWN)];
        let cut = if shown.len() < line.bytes.len() { " …" } else { "" };
        let apart = self.gaps && !self.text.is_empty() && line.offset > self.shown_to;
        let gap = if apart { "--\n" } else { "" };
        let text = String::from_utf8_lossy(shown);
        let row = format!("{gap}{}{mark}{text}{cut}\n", line.number);
        if self.found > 0 && self.text.len() + row.len() > self.bound {
            return false;
        }
        self.text.push_str(&row);
        self.shown_to = line.end;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grep(text: &str, pattern: &str, around: usize, bound: usize) -> GrepAnswer {
        let pattern = Regex::new(pattern).expect("a pattern");
        Grep { pattern, around, bound }
            .read(text.as_bytes(), 1, 0, || Ok(()))
            .expect("memory can be read")
    }

    #[track_caller]
    fn check(text: &str, pattern: &str, around: usize, expected: &str) {
        let found = grep(text, pattern, around, 1000);
        assert_eq!(found, GrepAnswer { text: expected.to_owned(), next: None });
    }

    #[test]
    fn lines_are_numbered_as_by_grep() {
        let text = "one\ntwo\nthree\nfour\nfive\nsix\nseven";
        check(text, "e$", 0, "1:one\n3:three\n5:five\n");
        check(text, "four", 1, "3-three\n4:four\n5-five\n");
        check(text, "one|seven", 1, "1:one\n2-two\n--\n6-six\n7:seven\n");
        check(text, "two|four", 1, "1-one\n2:two\n3-three\n4:four\n5-five\n");
        check(text, "one|four", 1, "1:one\n2-two\n3-three\n4:four\n5-five\n");
        check(text, "nowhere", 3, "");
        check("", "^", 0, "");
        check("a\n\nb\n", "^$", 0, "2:\n");
    }

    #[test]
    fn what_does_not_fit_comes_next() {
        let text = "x1\nx2\ny\nx3\n";
        let found = grep(text, "x", 0, 10);
        assert_eq!(found, GrepAnswer { text: "1:x1\n2:x2\n".to_owned(), next: Some(8) });
        let rest = Grep { pattern: Regex::new("x").expect("a pattern"), around: 0, bound: 10 };
        let rest = rest.read(&text.as_bytes()[8..], 4, 8, || Ok(())).expect("memory can be read");
        assert_eq!(rest, GrepAnswer { text: "4:x3\n".to_owned(), next: None });
        // At least one line, however little was asked for.
        assert_eq!(grep("long line\nlong\n", "long", 0, 1).next, Some(10));
        let found = grep("a\nlong\nb\n", "long", 1, 1);
        assert_eq!(found, GrepAnswer { text: "1-a\n2:long\n".to_owned(), next: Some(7) });
    }

    #[test]
    fn a_search_ends_when_it_is_told_to() {
        let asked = std::cell::Cell::new(0);
        let go_on = || {
            asked.set(asked.get() + 1);
            if asked.get() > 3 { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
        };
        let pattern = Regex::new("x").expect("a pattern");
        let endless = BufReader::new(io::repeat(b'\n'));
        let error = Grep { pattern, around: 0, bound: 10 }.read(endless, 1, 0, go_on);
        assert_eq!(error.expect_err("it was told").kind(), io::ErrorKind::ConnectionAborted);
    }

    #[test]
    fn a_file_without_lines_does_not_fill_the_memory() {
        let text = format!("{}needle{}", "x".repeat(100), "y".repeat(100));
        let found = grep(&text, "needle", 0, 1000);
        assert_eq!(found.text, format!("1:{} …\n", "x".repeat(32)));
        assert_eq!(grep("caf\u{e9}\n", "caf", 0, 1000).text, "1:café\n");
    }
}
