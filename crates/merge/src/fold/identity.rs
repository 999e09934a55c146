//! The identity of a value: two values are equal if their identities are.
//!
//! Equal by JSON value: a text and a JSON string that says the same, objects whatever the order of their keys, numbers
//! whatever their notation (`1`, `1.0` and `10e-1` are one number, and so are `0` and `-0`). Numbers are compared
//! as decimals, so that 2^53 and 2^53 + 1 stay apart. Of a key that an object repeats the last value counts.
//! A long value stands in its identity by its hash, so that a vote holds little of it. JSON in the store has to be read
//! for that ([`unread`] says which value), because equal values are rarely written alike; beyond [`LONGEST_READ`] it counts
//! as it is written.

use offshoot_model::{ContentHash, Payload, ValueKind, VariableRef};

use crate::number::Decimal;
use crate::text;

/// Appends bytes that are the same exactly for equal values.
pub(super) fn write(value: &Payload, out: &mut Vec<u8>) {
    match value {
        Payload::Text(text) => string(text.as_bytes(), out),
        Payload::Json(json) => write_json(json.as_str(), out),
        Payload::Stored(reference) => {
            out.push(match reference.kind {
                ValueKind::Text => LONG_STRING,
                ValueKind::Json | ValueKind::Result => STORED_JSON,
                ValueKind::Bytes => STORED_BYTES,
            });
            out.extend_from_slice(reference.hash.as_bytes());
        }
    }
}

/// The stored value that has to be read before its identity is known, if this is one.
pub(super) fn unread(value: &Payload) -> Option<VariableRef> {
    let Payload::Stored(reference) = value else { return None };
    let has_to_be = match reference.kind {
        ValueKind::Json | ValueKind::Result => reference.size <= LONGEST_READ,
        // A longer one is known by its hash.
        ValueKind::Text => reference.size <= LONG as u64,
        ValueKind::Bytes => false,
    };
    has_to_be.then_some(*reference)
}

/// Returns the identity of a stored value that was read; none where the value is not what its kind says.
pub(super) fn of_read(kind: ValueKind, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    match kind {
        ValueKind::Text => string(bytes, &mut out),
        ValueKind::Json | ValueKind::Result => {
            let json = str::from_utf8(bytes).ok()?;
            serde_json::from_str::<serde::de::IgnoredAny>(json).ok()?;
            write_json(json.trim_ascii(), &mut out);
        }
        ValueKind::Bytes => return None,
    }
    Some(out)
}

fn write_json(json: &str, out: &mut Vec<u8>) {
    if json.starts_with('"') {
        // As a text, which needs no end: nothing follows it.
        return string(&text::decoded(json), out);
    }
    let start = out.len();
    Cursor { rest: json }.value(0, out);
    if out.len() - start > LONG {
        let hash = ContentHash::of(&out[start..]);
        out.truncate(start);
        out.push(LONG_JSON);
        out.extend_from_slice(hash.as_bytes());
    }
}

fn string(content: &[u8], out: &mut Vec<u8>) {
    if content.len() <= LONG {
        out.push(STRING);
        out.extend_from_slice(content);
    } else {
        out.push(LONG_STRING);
        out.extend_from_slice(ContentHash::of(content).as_bytes());
    }
}

/// A value that is longer than this number of bytes stands in its identity by its hash.
const LONG: usize = 1024;

/// Longer JSON is compared as it is written: to read it would take several times as much memory.
const LONGEST_READ: u64 = 16 << 20;

const STRING: u8 = b's';
const NESTED_STRING: u8 = b't';
const NUMBER: u8 = b'#';
const LONG_STRING: u8 = b'T';
const LONG_JSON: u8 = b'L';
const STORED_JSON: u8 = b'J';
const STORED_BYTES: u8 = b'B';
const AS_WRITTEN: u8 = b'w';

/// As deep as `serde_json` itself reads. What is nested deeper is compared as it is written, which bounds the stack.
const DEEPEST: u32 = 128;

/// Walks through JSON that is known to be valid.
struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn value(&mut self, depth: u32, out: &mut Vec<u8>) {
        self.skip_white();
        match self.rest.as_bytes().first() {
            _ if depth == DEEPEST => {
                out.push(AS_WRITTEN);
                let written = self.whole();
                length(written.len(), out);
                out.extend_from_slice(written.as_bytes());
            }
            Some(b'"') => {
                out.push(NESTED_STRING);
                let start = out.len();
                length(0, out);
                text::decode_into(self.string(), out);
                let said = (out.len() - start - size_of::<u64>()) as u64;
                out[start..start + size_of::<u64>()].copy_from_slice(&said.to_le_bytes());
            }
            Some(b'{') => self.object(depth, out),
            Some(b'[') => {
                out.push(b'[');
                self.members(|cursor| cursor.value(depth + 1, out));
                out.push(b']');
            }
            _ => scalar(self.scalar(), out),
        }
    }

    fn object(&mut self, depth: u32, out: &mut Vec<u8>) {
        let mut members: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        self.members(|cursor| {
            let key = text::decoded(cursor.string());
            cursor.skip_white();
            cursor.skip(1);
            let mut value = Vec::new();
            cursor.value(depth + 1, &mut value);
            members.push((key, value));
        });
        // Stable, so that of equal keys the last one written is also the last one here.
        members.sort_by(|(a, _), (b, _)| a.cmp(b));
        out.push(b'{');
        for (at, (key, value)) in members.iter().enumerate() {
            if members.get(at + 1).is_some_and(|(next, _)| next == key) {
                continue;
            }
            length(key.len(), out);
            out.extend_from_slice(key);
            out.extend_from_slice(value);
        }
        out.push(b'}');
    }

    /// From an opening bracket over each member to the closing one.
    fn members(&mut self, mut member: impl FnMut(&mut Self)) {
        self.skip(1);
        loop {
            self.skip_white();
            match self.rest.as_bytes().first() {
                Some(b'}' | b']') | None => return self.skip(1),
                Some(b',') => self.skip(1),
                Some(_) => member(self),
            }
        }
    }

    /// A string with its quotes.
    fn string(&mut self) -> &'a str {
        let bytes = self.rest.as_bytes();
        let mut end = 1;
        while end < bytes.len() && bytes[end] != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        self.take(end + 1)
    }

    /// A number or a literal.
    fn scalar(&mut self) -> &'a str {
        let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t');
        let end = self.rest.as_bytes().iter().position(ends);
        self.take(end.unwrap_or(self.rest.len()))
    }

    /// A value of any depth, without descending.
    fn whole(&mut self) -> &'a str {
        let start = self.rest;
        let mut level = 0_u64;
        loop {
            self.skip_white();
            match self.rest.as_bytes().first() {
                Some(b'"') => {
                    self.string();
                }
                Some(b'{' | b'[') => {
                    level += 1;
                    self.skip(1);
                }
                Some(b'}' | b']') => {
                    level -= 1;
                    self.skip(1);
                }
                Some(b',' | b':') => self.skip(1),
                Some(_) => {
                    self.scalar();
                }
                None => level = 0,
            }
            if level == 0 {
                return &start[..start.len() - self.rest.len()];
            }
        }
    }

    fn skip_white(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    fn skip(&mut self, bytes: usize) {
        self.take(bytes);
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes.min(self.rest.len()));
        self.rest = rest;
        taken
    }
}

fn scalar(text: &str, out: &mut Vec<u8>) {
    let Some(number) = Decimal::parse(text) else {
        // `true`, `false`, `null`, and a number whose exponent is beyond reason.
        out.push(AS_WRITTEN);
        length(text.len(), out);
        return out.extend_from_slice(text.as_bytes());
    };
    let (digits, power) = number.significant();
    out.push(NUMBER);
    let start = out.len();
    out.extend(digits);
    if out.len() > start {
        out.push(if number.negative { b'-' } else { b'+' });
        out.extend_from_slice(&power.to_le_bytes());
    } else {
        // Of zero there are no digits, no sign and no power.
        out.push(b'0');
    }
}

fn length(length: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(length as u64).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(value: &Payload) -> Vec<u8> {
        let mut out = Vec::new();
        write(value, &mut out);
        out
    }

    fn json(text: &str) -> Payload {
        Payload::json(text.to_owned()).expect(text)
    }

    #[test]
    fn equal_values() {
        let check = |a: &str, b: &str| {
            assert_eq!(identity(&json(a)), identity(&json(b)), "{a} and {b}");
        };
        check("1", "1.0");
        check("1", "10e-1");
        check("0", "-0.00");
        check("100", "1E2");
        check(r#""ä""#, r#""\u00e4""#);
        check(r#"{"a":1,"b":[true,null]}"#, r#" { "b" : [ true , null ] , "a" : 1.0 } "#);
        check(r#"{"a":1,"a":2}"#, r#"{"a":2}"#);
        check(r#"{"\"":{"x":"\\"}}"#, r#"{"\u0022":{"x":"\u005c"}}"#);
        check("[]", " [ ] ");
    }

    #[test]
    fn different_values() {
        let samples = [
            "0",
            "1",
            "10",
            "-1",
            "0.1",
            "9007199254740992",
            "9007199254740993",
            "1e400",
            "1e4000000000000",
            "null",
            "true",
            "false",
            r#""""#,
            r#""1""#,
            r#""null""#,
            r##""#1""##,
            "[]",
            "{}",
            "[[]]",
            "[1,2]",
            "[12]",
            "[2,1]",
            r#"["1","2"]"#,
            r#"["1,2"]"#,
            r#"["12"]"#,
            r#"{"a":1}"#,
            r#"{"a":2}"#,
            r#"{"b":1}"#,
            r#"{"a":{"b":1}}"#,
            r#"{"a":1,"b":1}"#,
            r#"[{"a":1},{"b":1}]"#,
        ];
        for (at, a) in samples.iter().enumerate() {
            for b in &samples[at + 1..] {
                assert_ne!(identity(&json(a)), identity(&json(b)), "{a} and {b}");
            }
        }
    }

    #[test]
    fn a_text_is_a_string() {
        assert_eq!(identity(&Payload::text("a\nb")), identity(&json(r#""a\nb""#)));
        assert_ne!(identity(&Payload::text("1")), identity(&json("1")));
    }

    #[test]
    fn what_is_long_is_compared_by_value_too() {
        let words = |count: usize| (0..count).map(|n| format!("\"{n}\"")).collect::<Vec<_>>();
        let (array, text) = (words(2000), "ä".repeat(2000));
        let compact = format!("[{}]", array.join(","));
        let spaced = format!(" [ {} ]\n", array.join(" ,\t"));
        let read = |kind, bytes: &str| of_read(kind, bytes.as_bytes()).expect("what its kind says");
        let (json_kind, text_kind) = (ValueKind::Result, ValueKind::Text);
        assert_eq!(read(json_kind, &spaced), identity(&json(&compact)));
        assert!(identity(&json(&compact)).len() < 64, "it is not held");
        assert_ne!(
            identity(&json(&compact)),
            identity(&json(&format!("[{}]", words(2001).join(","))))
        );
        let escaped = format!("\"{}\"", "\\u00e4".repeat(2000));
        assert_eq!(read(json_kind, &escaped), identity(&Payload::text(text.as_str())));
        let stored = |kind, text: &str| {
            let (hash, size) = (ContentHash::of(text.as_bytes()), text.len() as u64);
            Payload::Stored(VariableRef { hash, size, kind })
        };
        assert_eq!(identity(&stored(text_kind, &text)), identity(&Payload::text(text.as_str())));
        assert_eq!(unread(&stored(text_kind, &text)), None, "its hash says it");
        assert!(unread(&stored(text_kind, "short")).is_some());
        assert!(unread(&stored(json_kind, &compact)).is_some());
        assert_eq!(unread(&Payload::text("here")), None);
        assert_eq!(of_read(json_kind, b"{"), None);
    }

    #[test]
    fn depth_is_bounded() {
        let nest = |inner: &str| format!("{}{inner}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(identity(&json(&nest("1"))), identity(&json(&nest("1"))));
        assert_ne!(identity(&json(&nest("1"))), identity(&json(&nest("2"))));
    }
}
