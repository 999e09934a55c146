//! Reading values: whole, in parts, or by their lines.

use std::io::{BufReader, Read, Seek, SeekFrom};

use data_encoding::BASE64;
use offshoot_door::{CallError, CallerKind, ContextGet, ContextRead, Value};
use offshoot_model::{JsonText, PathText, RunId, ValueKind, VariableRef};
use offshoot_store::ValueReader;
use regex::bytes::RegexBuilder;

use super::grep::{self, Grep};
use super::searches::Gone;
use super::{TreeService, failed, invalid};

/// A whole value up to this size is read in one answer; a larger one is named by its file. As much of a part, where
/// the request does not say how much.
const INLINE_BYTES: u64 = 64 * 1024;

/// No part has more, whatever is asked for.
const PART_BYTES: u64 = 256 * 1024;

/// A pattern may not need more memory than this once it is compiled.
const PATTERN_BYTES: usize = 1 << 20;

/// More lines around each match are the value itself.
const MOST_AROUND: u32 = 100;

/// The longest character of UTF-8.
const CHARACTER: u64 = 4;

/// Bytes of a value, and whether there are more.
struct Part {
    value: Value,
    next: Option<u64>,
}

impl TreeService {
    /// A value, a part of it, or lines of it.
    pub(super) async fn get(
        &self,
        caller: RunId,
        get: ContextGet,
    ) -> Result<ContextRead, CallError> {
        let ContextGet { name, offset, length, grep, context_lines } = get;
        let value = self.value(caller, "name", &name).await?;
        let at = self.agents.kept(caller, &name).map(|kept| kept.at);
        let variable = self.describe(caller, name, value, at).await?;
        let path = self.agents.store().path(&value).map_err(failed)?;
        let bound = length.unwrap_or(INLINE_BYTES).min(PART_BYTES);
        let whole = offset.is_none() && length.is_none();
        let store = self.agents.store().clone();
        let read = move |gone: &Gone| {
            if let Some(pattern) = grep {
                let around = context_lines.unwrap_or(0).min(MOST_AROUND) as usize;
                let file = store.open(&value).map_err(failed)?;
                return lines(file, &pattern, around, offset.unwrap_or(0), bound, gone);
            }
            if whole && (value.size > INLINE_BYTES || value.kind == ValueKind::Bytes) {
                return Ok(Part { value: Value::Path(PathText(path)), next: None });
            }
            if whole {
                let bytes = store.read(&value).map_err(failed)?;
                return Ok(Part { value: all(bytes, value), next: None });
            }
            let file = store.open(&value).map_err(failed)?;
            part(file, value, offset.unwrap_or(0), bound).map_err(|error| unread(&error))
        };
        let Part { value, next } = self.searches.read(CallerKind::Run(caller), read).await?;
        Ok(ContextRead { variable, value, more: next.is_some(), next })
    }
}

/// All of a small value.
fn all(bytes: Vec<u8>, value: VariableRef) -> Value {
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return Value::Base64(BASE64.encode(error.as_bytes())),
    };
    match value.kind {
        ValueKind::Json | ValueKind::Result => match JsonText::parse(text.clone()) {
            Ok(json) => Value::Json(json),
            Err(_) => Value::Text(text),
        },
        ValueKind::Text | ValueKind::Bytes => Value::Text(text),
    }
}

/// About so many bytes from here. Text is cut between characters, and at least one of these comes.
fn part(
    mut file: ValueReader,
    value: VariableRef,
    offset: u64,
    bound: u64,
) -> std::io::Result<Part> {
    let is_text = value.kind != ValueKind::Bytes;
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    // A request for less than a character gets a whole one, so that the next request gets further.
    file.take(if is_text { bound.max(CHARACTER) } else { bound }).read_to_end(&mut bytes)?;
    let is_last = offset + bytes.len() as u64 >= value.size;
    let (start, end) =
        if is_text { characters(&bytes, bound as usize, is_last) } else { (0, bytes.len()) };
    let next = offset + end as u64;
    let next = (next < value.size && end > 0).then_some(next);
    let bytes = &bytes[start..end];
    let value = match std::str::from_utf8(bytes) {
        Ok(text) if is_text => Value::Text(text.to_owned()),
        _ => Value::Base64(BASE64.encode(bytes)),
    };
    Ok(Part { value, next })
}

/// Returns the range of the whole characters among these bytes: at most `bound` bytes, but at least one character.
fn characters(bytes: &[u8], bound: usize, is_last: bool) -> (usize, usize) {
    let continues = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
    let start =
        bytes.iter().take(CHARACTER as usize - 1).take_while(|byte| continues(byte)).count();
    if start == bytes.len() {
        return (0, bytes.len());
    }
    let mut end = bound.min(bytes.len());
    if end == bytes.len() && is_last {
        return (start, end);
    }
    // A character ends where the next one begins; whether the last one that was read is whole is not known.
    while end > start && (end == bytes.len() || continues(&bytes[end])) {
        if end == bytes.len() && std::str::from_utf8(&bytes[start..end]).is_ok() {
            return (start, end);
        }
        end -= 1;
    }
    if end > start {
        return (start, end);
    }
    let first = bytes[start + 1..].iter().take_while(|byte| continues(byte)).count();
    (start, start + 1 + first)
}

/// The lines in which a pattern is found.
fn lines(
    mut file: ValueReader,
    pattern: &str,
    around: usize,
    offset: u64,
    bound: u64,
    gone: &Gone,
) -> Result<Part, CallError> {
    let pattern = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).build();
    let pattern = pattern.map_err(|error| invalid("grep", error.to_string()))?;
    let before = grep::lines_before(&mut file, offset, || gone.check());
    let number = before.map_err(|error| unread(&error))? + 1;
    let grep = Grep { pattern, around, bound: bound as usize };
    let found = grep.read(BufReader::new(file), number, offset, || gone.check());
    let found = found.map_err(|error| unread(&error))?;
    Ok(Part { value: Value::Text(found.text), next: found.next })
}

fn unread(error: &std::io::Error) -> CallError {
    CallError::failed(format!("the value cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_cut_between_characters() {
        let check = |text: &str, bound, is_last, expected: (usize, usize)| {
            assert_eq!(characters(text.as_bytes(), bound, is_last), expected, "{text:?} {bound}");
        };
        check("count no", 8, false, (0, 8));
        check("count no generated", 8, false, (0, 8));
        check("aé", 2, true, (0, 1));
        check("aé", 3, true, (0, 3));
        check("é€", 1, false, (0, 2));
        check("€é", 4, false, (0, 3));
        check("", 5, true, (0, 0));
        // From within a character: the rest of it is passed over.
        assert_eq!(characters(&"€ab".as_bytes()[1..], 4, true), (2, 4));
        // The beginning of a character at the end of what was read.
        assert_eq!(characters(&"ab€".as_bytes()[..4], 4, false), (0, 2));
    }
}
