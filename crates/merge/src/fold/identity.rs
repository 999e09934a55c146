//! What makes two values equal.
//!
//! Equal by JSON value: a text and a JSON string that says the same, objects whatever the order of their keys, numbers
//! whatever their notation (`1`, `1.0` and `10e-1` are one number, and so are `0` and `-0`). Numbers are compared
//! as decimals, so that 2^53 and 2^53 + 1 stay apart. Of a key that an object repeats the last value counts.
//! Values in the store are equal where kind and content are: they are not read for a vote.

use offshoot_model::{Payload, ValueKind};

use crate::number::Decimal;
use crate::text;

/// Appends bytes that are the same exactly for equal values.
pub(super) fn write(value: &Payload, out: &mut Vec<u8>) {
    match value {
        Payload::Text(text) => {
            out.push(STRING);
            out.extend_from_slice(text.as_bytes());
        }
        Payload::Json(json) => match json.as_str().as_bytes() {
            // As a text, which needs no end: nothing follows it.
            [b'"', ..] => {
                out.push(STRING);
                text::decode_into(json.as_str(), out);
            }
            _ => Cursor { rest: json.as_str() }.value(0, out),
        },
        Payload::Stored(reference) => {
            out.push(match reference.kind {
                ValueKind::Text => STORED_TEXT,
                ValueKind::Json | ValueKind::Result => STORED_JSON,
                ValueKind::Bytes => STORED_BYTES,
            });
            out.extend_from_slice(reference.hash.as_bytes());
        }
    }
}

const STRING: u8 = b's';
const NESTED_STRING: u8 = b't';
const NUMBER: u8 = b'#';
const STORED_TEXT: u8 = b'T';
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
    fn depth_is_bounded() {
        let nest = |inner: &str| format!("{}{inner}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(identity(&json(&nest("1"))), identity(&json(&nest("1"))));
        assert_ne!(identity(&json(&nest("1"))), identity(&json(&nest("2"))));
    }
}
