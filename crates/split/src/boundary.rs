//! The end of a piece.
//!
//! Each function is given the start of a piece, before the end of the file, and finds its end, behind the start. Those
//! that have to look at every byte hash it while it is in the window.

use crate::SplitError;
use crate::piece_hash::PieceHash;
use crate::record;
use crate::window::Window;

/// The unit that the lines of a file make up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Lines with something in them, up to one without.
    Paragraph,
    /// A line with something in it, which has to be JSON.
    Record,
}

/// The longest character of UTF-8.
const CHARACTER: usize = 4;

/// The number of bytes in which the end of a line is searched backwards at once; most lines are shorter.
const LOOK_BACK: usize = if cfg!(test) { 11 } else { 4096 };

/// The end of the `count`-th line.
pub(crate) fn after_lines(
    window: &mut Window,
    hash: &mut PieceHash,
    start: u64,
    count: u64,
) -> Result<u64, SplitError> {
    let mut missing = count;
    let mut cursor = start;
    while cursor < window.size() {
        let block = window.from(cursor)?;
        for newline in memchr::memchr_iter(b'\n', block) {
            missing -= 1;
            if missing == 0 {
                return Ok(cursor + newline as u64 + 1);
            }
        }
        cursor += block.len() as u64;
        hash.upto(window, cursor)?;
    }
    Ok(cursor)
}

/// The start of the line with which the unit after `count` begins. None where there is no unit at all.
pub(crate) fn after_units(
    window: &mut Window,
    hash: &mut PieceHash,
    start: u64,
    unit: Unit,
    count: u64,
) -> Result<Option<u64>, SplitError> {
    let mut units = 0;
    let mut cursor = start;
    let mut line = start;
    let mut line_is_blank = true;
    let mut after_blank = true;
    while cursor < window.size() {
        let block = window.from(cursor)?;
        let newline = memchr::memchr(b'\n', block);
        let text = &block[..newline.unwrap_or(block.len())];
        cursor += text.len() as u64;
        if line_is_blank && !text.iter().all(u8::is_ascii_whitespace) {
            line_is_blank = false;
            if unit == Unit::Record || after_blank {
                if units == count {
                    return Ok(Some(line));
                }
                units += 1;
            }
        }
        let at_end = cursor == window.size();
        if (newline.is_some() || at_end) && !line_is_blank && unit == Unit::Record {
            record::check(window, line..cursor)?;
        }
        if newline.is_some() {
            cursor += 1;
            after_blank = line_is_blank;
            line_is_blank = true;
            line = cursor;
        } else {
            // The window moves on. A blank start of a line may yet turn out to belong to the next piece.
            hash.upto(window, if line_is_blank { line } else { cursor })?;
        }
    }
    Ok((units > 0).then_some(cursor))
}

/// At most `size` bytes on, and not inside a character; behind the first character where that is longer.
pub(crate) fn after_bytes(window: &Window, start: u64, size: u64) -> Result<u64, SplitError> {
    let target = start.saturating_add(size);
    if target >= window.size() {
        return Ok(window.size());
    }
    // A character that spans the target begins within three bytes before it and ends within three behind it.
    let from = target.saturating_sub(CHARACTER as u64 - 1).max(start);
    let to = (target + CHARACTER as u64 - 1).min(window.size());
    let mut bytes = [0; 2 * CHARACTER];
    let bytes = &mut bytes[..(to - from) as usize];
    window.read(from, bytes)?;
    let target_at = (target - from) as usize;
    Ok(match spanning(bytes, target_at) {
        Some((first, _)) if from + first as u64 > start => from + first as u64,
        Some((_, end)) => from + end as u64,
        None => target,
    })
}

/// The last end of a line within `size` bytes, else the next one after them.
pub(crate) fn after_whole_lines(
    window: &mut Window,
    hash: &mut PieceHash,
    start: u64,
    size: u64,
) -> Result<u64, SplitError> {
    let target = start.saturating_add(size);
    if target >= window.size() {
        return Ok(window.size());
    }
    match last_line_end(window, start, target)? {
        Some(end) => Ok(end),
        None => {
            hash.upto(window, target)?;
            after_lines(window, hash, target, 1)
        }
    }
}

/// The last end of a line up to `target`. Where there is none: of whole lines the next one after it; else, and in a file of one line,
/// the last end of a character, at least a character on.
pub(crate) fn after_share(
    window: &mut Window,
    start: u64,
    target: u64,
    whole_lines: bool,
) -> Result<u64, SplitError> {
    if target >= window.size() {
        return Ok(window.size());
    }
    if let Some(end) = last_line_end(window, start, target)? {
        return Ok(end);
    }
    // What was cut within a line once is a line that has no end.
    let mut before = [b'\n'];
    if whole_lines && start > 0 {
        window.read(start - 1, &mut before)?;
    }
    if whole_lines && before == *b"\n" {
        match next_line_end(window, target.max(start))? {
            Some(end) => return Ok(end),
            // The last line of several needs no end.
            None if start > 0 => return Ok(window.size()),
            None => {}
        }
    }
    after_bytes(window, start, target.saturating_sub(start).max(1))
}

/// Behind the first newline from `start` on.
fn next_line_end(window: &mut Window, start: u64) -> Result<Option<u64>, SplitError> {
    let mut cursor = start;
    while cursor < window.size() {
        let block = window.from(cursor)?;
        if let Some(newline) = memchr::memchr(b'\n', block) {
            return Ok(Some(cursor + newline as u64 + 1));
        }
        cursor += block.len() as u64;
    }
    Ok(None)
}

/// Behind the last newline in `start..end`, looked for from the end.
fn last_line_end(window: &Window, start: u64, end: u64) -> Result<Option<u64>, SplitError> {
    let mut bytes = [0; LOOK_BACK];
    let mut upto = end;
    while upto > start {
        let from = upto.saturating_sub(LOOK_BACK as u64).max(start);
        let bytes = &mut bytes[..(upto - from) as usize];
        window.read(from, bytes)?;
        if let Some(newline) = memchr::memrchr(b'\n', bytes) {
            return Ok(Some(from + newline as u64 + 1));
        }
        upto = from;
    }
    Ok(None)
}

/// The valid character that `at` lies inside of, not at the start of: its first byte and its end.
fn spanning(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    (at.saturating_sub(CHARACTER - 1)..at).rev().find_map(|first| {
        let length = match bytes[first] {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ => return None,
        };
        let end = first + length;
        let valid = end > at && bytes.get(first..end).is_some_and(|c| str::from_utf8(c).is_ok());
        valid.then_some((first, end))
    })
}
