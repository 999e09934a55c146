//! JSON5 into the tree: the `json5` crate decides what is JSON5 and what it means, a scan of the accepted text finds
//! the places, which that crate does not tell.

use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor,
};

use super::{Key, Node, NodeValue, SyntaxError};

/// Deeper nesting is no configuration; the parser recurses, and a stack has an end.
const DEEPEST: usize = 64;

/// Parses a whole file: nothing but white space and comments is an empty table, as in TOML.
pub(crate) fn parse_file(text: &str) -> Result<Node, SyntaxError> {
    if starts(text).next().is_none() {
        let with_a_value = format!("{text}\n{{}}");
        return parse(&with_a_value)
            .map_err(|error| SyntaxError { offset: error.offset.min(text.len()), ..error });
    }
    parse(text)
}

pub(super) fn parse(text: &str) -> Result<Node, SyntaxError> {
    let mut node: Node = json5::from_str(text).map_err(|error| syntax_error(text, &error))?;
    let mut starts = starts(text);
    node.move_to(&mut |_| starts.next().unwrap_or_default());
    Ok(node)
}

fn syntax_error(text: &str, error: &json5::Error) -> SyntaxError {
    let message = error.to_string();
    let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(words, _)| words);
    if let Some(unfinished) = message.strip_prefix("EOF parsing ") {
        // The parser gives the position of an element around the missing end.
        let message = format!("the text ends in the middle: unfinished {unfinished}");
        return SyntaxError { message, offset: text.len() };
    }
    let offset = error.position().map_or(0, |at| offset_of(text, at.line, at.column));
    SyntaxError { message: message.to_owned(), offset }
}

/// Returns the positions at which each key and each value begins, in the order in which they are written. Only right for valid
/// text, in which everything that is not white space, a comment or `} ] : ,` begins a key or a value.
fn starts(text: &str) -> impl Iterator<Item = usize> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = &text[at..];
            let first = rest.chars().next()?;
            let start = at;
            match first {
                '/' if rest.starts_with("/*") => {
                    at += rest.find("*/").map_or(rest.len(), |end| end + 2);
                }
                '/' => at += rest.find(LINE_ENDS).unwrap_or(rest.len()),
                '}' | ']' | ':' | ',' => at += 1,
                '{' | '[' => {
                    at += 1;
                    return Some(start);
                }
                '"' | '\'' => {
                    at += string_length(rest, first);
                    return Some(start);
                }
                _ if is_space(first) => at += first.len_utf8(),
                _ => {
                    let ends = |c: char| is_space(c) || matches!(c, '}' | ']' | ':' | ',' | '/');
                    at += rest.find(ends).unwrap_or(rest.len());
                    return Some(start);
                }
            }
        }
    })
}

const LINE_ENDS: [char; 4] = ['\n', '\r', '\u{2028}', '\u{2029}'];

fn is_space(c: char) -> bool {
    c.is_whitespace() || c == '\u{feff}'
}

fn string_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Lines and columns of the crate count from 0, in characters.
fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let mut lines = 0;
    let mut columns = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if (lines, columns) >= (line, column) {
            return at;
        }
        if LINE_ENDS.contains(&c) {
            if c == '\r' {
                chars.next_if(|(_, next)| *next == '\n');
            }
            lines += 1;
            columns = 0;
        } else {
            columns += 1;
        }
    }
    text.len()
}

/// Builds nodes at this depth.
#[derive(Clone, Copy)]
struct Depth(usize);

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Depth(0).deserialize(deserializer)
    }
}

impl<'de> DeserializeSeed<'de> for Depth {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        if self.0 > DEEPEST {
            return Err(D::Error::custom(format!("more than {DEEPEST} levels of nesting")));
        }
        deserializer.deserialize_any(self)
    }
}

/// `method(value: type) => node;`
macro_rules! scalars {
    ($($visit:ident($value:ident: $type:ty) => $node:expr;)*) => {
        $(
            fn $visit<E>(self, $value: $type) -> Result<Node, E> {
                Ok(Node::new($node, 0))
            }
        )*
    };
}

impl<'de> Visitor<'de> for Depth {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::new(NodeValue::Null, 0))
    }

    scalars! {
        visit_bool(value: bool) => NodeValue::Bool(value);
        visit_i64(value: i64) => NodeValue::Integer(value.into());
        visit_u64(value: u64) => NodeValue::Integer(value.into());
        visit_i128(value: i128) => NodeValue::Integer(value);
        visit_u128(value: u128) => i128::try_from(value)
            .map_or_else(|_| NodeValue::Float(value.to_string()), NodeValue::Integer);
        visit_f64(value: f64) => NodeValue::Float(format!("{value:?}"));
        visit_str(text: &str) => NodeValue::Text(text.to_owned());
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(Self(self.0 + 1))? {
            items.push(item);
        }
        Ok(Node::new(NodeValue::List(items), 0))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(name) = map.next_key()? {
            let key = Key { name, offset: 0, any_case: false };
            entries.push((key, map.next_value_seed(Self(self.0 + 1))?));
        }
        Ok(Node::new(NodeValue::Table(entries), 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each key and value is where the text at its place says it is.
    fn check(text: &str, expected: &[&str]) {
        let mut found = Vec::new();
        fn walk<'a>(node: &Node, text: &'a str, found: &mut Vec<&'a str>) {
            found.push(&text[node.offset..]);
            match &node.value {
                NodeValue::List(items) => items.iter().for_each(|item| walk(item, text, found)),
                NodeValue::Table(entries) => entries.iter().for_each(|(key, value)| {
                    found.push(&text[key.offset..]);
                    walk(value, text, found);
                }),
                _ => {}
            }
        }
        walk(&parse(text).expect("valid"), text, &mut found);
        assert_eq!(found.len(), expected.len(), "{text}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{found:?} should start with {expected:?}");
        }
    }

    #[test]
    fn every_key_and_value_has_its_place() {
        check("{a: 1}", &["{a", "a:", "1}"]);
        check("/* { */ [ // ]\n'}\\'', -Infinity, [],]", &["[ //", "'}", "-Inf", "[],"]);
        check(
            "{'a b': {\"c\": null}, d/*:*/: .5, // e: 1\r\n$e: +0x1F,}",
            &["{'a", "'a b", "{\"c", "\"c\"", "null", "d/*", ".5", "$e", "+0x1F"],
        );
        check("\u{feff}{\u{2003}é: 'ü\\\n{'}", &["{", "é", "'ü"]);
    }

    #[test]
    fn errors_have_their_place() {
        let check = |text: &str, expected: (&str, usize)| {
            let error = parse_file(text).expect_err("not JSON5");
            assert_eq!((error.message.as_str(), error.offset), expected, "{text}");
        };
        check("{a: }", ("expected value", 4));
        check("{\r\n a: 1\r\n b", ("expected comma", 11));
        check("{} x", ("trailing characters", 3));
        check("{a: 'b", ("the text ends in the middle: unfinished string", 6));
        check("/* {", ("the text ends in the middle: unfinished comment", 4));
        check("{a: '\\x0'}", ("invalid escape sequence", 5));
        check(&"[".repeat(1_000), ("more than 64 levels of nesting", 64));
    }

    #[test]
    fn nothing_is_an_empty_table() {
        for text in ["", " \n", "// all off", "/* a */ // b"] {
            let node = parse_file(text).expect("an empty file is allowed");
            assert_eq!(node.value, NodeValue::Table(Vec::new()), "{text}");
        }
    }
}
