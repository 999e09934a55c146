//! The text of an error about JSON that people or models wrote.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde::de::{Error as _, IgnoredAny};
use serde_json::value::RawValue;

/// Words for types of the reader, and those for what stands in JSON.
const WORDS: [(&str, &str); 6] = [
    ("a sequence", "an array"),
    ("sequence", "array"),
    ("a map", "an object"),
    ("map", "object"),
    ("unit value", "null"),
    ("floating point", "number"),
];

/// Words for the numbers of the reader, and what may stand in JSON.
const NUMBERS: [(&str, &str); 13] = [
    ("u8", "a whole number from 0 to 255"),
    ("u16", "a whole number from 0 to 65535"),
    ("u32", "a whole number from 0 to 4294967295"),
    ("u64", "a whole number from 0 on"),
    ("usize", "a whole number from 0 on"),
    ("i32", "a whole number from -2147483648 to 2147483647"),
    ("i64", "a whole number"),
    ("f32", "a number"),
    ("f64", "a number"),
    ("a nonzero u16", "a whole number from 1 to 65535"),
    ("a nonzero u32", "a whole number from 1 to 4294967295"),
    ("a nonzero u64", "a whole number from 1 on"),
    ("a nonzero usize", "a whole number from 1 on"),
];

/// Faults of a text that is no JSON, as the reader says them and in words for its author.
const SYNTAX: [(&str, &str); 18] = [
    ("EOF while parsing a list", "it ends in the middle of an array"),
    ("EOF while parsing an object", "it ends in the middle of an object"),
    ("EOF while parsing a string", "it ends in the middle of a string"),
    ("EOF while parsing a value", "it ends where a value must stand"),
    ("expected ident", "a word that is none of true, false and null"),
    ("expected value", "a value must stand here"),
    ("expected `:`", "a `:` is missing"),
    ("expected `,` or `]`", "a `,` or a `]` is missing"),
    ("expected `,` or `}`", "a `,` or a `}` is missing"),
    ("invalid escape", "no character is written in this way behind a backslash"),
    ("invalid number", "this is not how a number is written"),
    ("invalid unicode code point", "no character has this number"),
    (
        "control character (\\u0000-\\u001F) found while parsing a string",
        "a control character in a string must be escaped",
    ),
    ("lone leading surrogate in hex escape", "half a surrogate pair"),
    ("unexpected end of hex escape", "half a surrogate pair"),
    ("trailing comma", "nothing follows the comma"),
    ("trailing characters", "something follows the value"),
    ("recursion limit exceeded", "too many values stand in each other"),
];

/// Reads an object. The reader alone would take an array too, element by element in the order of its own fields.
///
/// # Errors
/// Fails where the text is no JSON, no object, or another one.
pub fn json_object<'a, T: Deserialize<'a>>(text: &'a str) -> serde_json::Result<T> {
    if text.trim_ascii_start().starts_with('[') {
        // What is no JSON at all says so itself.
        let _: IgnoredAny = serde_json::from_str(text)?;
        return Err(serde_json::Error::custom("found array, expected an object"));
    }
    serde_json::from_str(text)
}

/// Returns what is wrong in one line: the field and what it should be. Without the place, and without names of types.
pub fn json_error(text: &str, error: &serde_json::Error) -> String {
    let message = error.to_string();
    let message = message.split_once(" at line ").map_or(&*message, |(message, _)| message);
    if place_of_keys(text, error).is_some() {
        let message = "expected an object with exactly one key";
        return match place(text, error).as_str() {
            "" => message.to_owned(),
            field => format!("`{field}`: {message}"),
        };
    }
    if !error.is_data() {
        let known = SYNTAX.iter().find(|(said, _)| *said == message);
        return known.map_or(message, |(_, plain)| plain).to_owned();
    }
    let message = plain(message);
    match place(text, error).as_str() {
        "" => message,
        field => format!("`{field}`: {message}"),
    }
}

/// Returns the name of the field that is wrong, or that is missing; none where the text is no JSON, or is wrong as a whole.
pub fn json_field(text: &str, error: &serde_json::Error) -> Option<String> {
    if !error.is_data() && place_of_keys(text, error).is_none() {
        return None;
    }
    let mut field = place(text, error);
    let message = error.to_string();
    let key = ["missing field `", "duplicate field `", "unknown field `"]
        .into_iter()
        .find_map(|start| message.strip_prefix(start)?.split('`').next());
    // Where a key itself is wrong, the place is that of the object, or of the key.
    if let Some(key) = key.filter(|key| field.rsplit('.').next() != Some(*key)) {
        let dot = if field.is_empty() { "" } else { "." };
        field = format!("{field}{dot}{key}");
    }
    (!field.is_empty()).then_some(field)
}

/// Returns the place of the fault where an object must have one key, and has none or several: the reader reports that as a fault of
/// the text, which is none. None of all other errors.
fn place_of_keys(text: &str, error: &serde_json::Error) -> Option<usize> {
    let is_possible = error.is_syntax()
        && error.to_string().starts_with("expected value")
        && serde_json::from_str::<IgnoredAny>(text).is_ok();
    let at = offset(text, error.line(), error.column());
    let (before, after) = text.split_at_checked(at + 1).filter(|_| is_possible)?;
    // The reader stands on the end of an object without a key; before a second key it still stands on the end of the first value.
    let inside = before.strip_suffix('}').map(str::trim_ascii_end);
    if inside.is_some_and(|inside| inside.ends_with('{')) {
        return Some(at);
    }
    after.trim_ascii_start().starts_with(',').then_some(at + 1)
}

/// Returns the names of the fields in which an error lies.
fn place(text: &str, error: &serde_json::Error) -> String {
    let mut field = String::new();
    if error.line() == 0 {
        // The whole of it is wrong.
        return field;
    }
    let at = offset(text, error.line(), error.column());
    descend(text, place_of_keys(text, error).unwrap_or(at), &mut field);
    field
}

/// The message in words of JSON.
fn plain(message: &str) -> String {
    if let Some(key) = message.strip_prefix("missing field ") {
        return format!("the key {key} is missing");
    }
    if let Some(key) = message.strip_prefix("duplicate field ") {
        return format!("the key {key} stands twice");
    }
    if let Some(rest) = message.strip_prefix("unknown field ") {
        return format!("unknown key {rest}");
    }
    if let Some(rest) = message.strip_prefix("unknown variant ") {
        return format!("found {rest}");
    }
    let Some((found, expected)) = message.split_once(", expected ") else {
        return message.to_owned();
    };
    let found = match found.split_once(": ") {
        Some(("invalid type" | "invalid value", found)) => word(found),
        // A list is read in place of an object, or of another list.
        _ if found.starts_with("invalid length ") => "array".to_owned(),
        _ => return message.to_owned(),
    };
    let number = NUMBERS.iter().find(|(number, _)| expected == *number);
    let expected = match (number, expected.split_once(' ')) {
        (Some((_, json)), _) => (*json).to_owned(),
        (_, Some(("struct" | "enum" | "internally" | "adjacently", _))) => "an object".to_owned(),
        (_, Some(("tuple" | "newtype", _))) => "an array".to_owned(),
        _ => word(expected),
    };
    format!("found {found}, expected {expected}")
}

/// Words of the reader in those of JSON.
fn word(text: &str) -> String {
    let known =
        WORDS.iter().find(|(word, _)| text == *word || text.starts_with(&format!("{word} ")));
    known.map_or_else(|| text.to_owned(), |(word, json)| text.replacen(word, json, 1))
}

/// The place of a character that the reader counts in lines and columns, from 1.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let above =
        text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum::<usize>();
    (above + column).saturating_sub(1)
}

/// Adds the names of the fields in which a place of the text lies. What is an object or an array is found wrong before its first
/// character is read.
fn descend(text: &str, at: usize, field: &mut String) {
    let is_top = field.is_empty();
    let after = text.bytes().enumerate().skip(at + 1);
    let next = after.skip_while(|(_, byte)| byte.is_ascii_whitespace()).map(|(at, _)| at).next();
    let mut enter = |name: &str, part: &RawValue| {
        let part = part.get();
        let start = part.as_ptr().addr() - text.as_ptr().addr();
        let is_inside = (start..start + part.len()).contains(&at);
        if is_inside || next == Some(start) {
            field.push_str(name);
        }
        if is_inside {
            descend(part, at - start, field);
        }
    };
    if let Ok(Fields(fields)) = serde_json::from_str(text) {
        let dot = if is_top { "" } else { "." };
        fields.iter().for_each(|(name, value)| enter(&format!("{dot}{name}"), value));
    } else if let Ok(elements) = serde_json::from_str::<Vec<&RawValue>>(text) {
        (0_usize..).zip(elements).for_each(|(number, value)| enter(&format!("[{number}]"), value));
    }
}

/// The fields of an object, each as it is written.
#[derive(Deserialize)]
struct Fields<'a>(#[serde(borrow)] HashMap<Cow<'a, str>, &'a RawValue>);

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(dead_code, reason = "only read")]
    #[derive(Debug, Deserialize)]
    struct Inner {
        seconds: u64,
        words: Vec<String>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        task: String,
        #[expect(dead_code, reason = "only read")]
        inner: Option<Inner>,
    }

    #[test]
    fn the_field_is_named_for_programs() {
        #[track_caller]
        fn check(text: &str, expected: Option<&str>) {
            let error = serde_json::from_str::<Outer>(text).expect_err("it is wrong");
            assert_eq!(json_field(text, &error).as_deref(), expected, "{text}");
        }
        check(r#"{"task": 3}"#, Some("task"));
        check("{}", Some("task"));
        check(
            r#"{"task": "x", "inner": {"seconds": 1, "words": ["a", 5]}}"#,
            Some("inner.words[1]"),
        );
        check(r#"{"inner": {"seconds": 1}}"#, Some("inner.words"));
        check(r#"{"tasks": "x"}"#, Some("tasks"));
        check(r#"{"task": "x", "task": "y"}"#, Some("task"));
        check("3", None);
        check("{", None);
    }

    #[test]
    fn an_object_with_one_key_is_asked_for() {
        #[expect(dead_code, reason = "only read")]
        #[derive(Debug, Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum Value {
            Text(String),
            Base64(String),
        }
        #[expect(dead_code, reason = "only read")]
        #[derive(Debug, Deserialize)]
        struct Put {
            name: String,
            value: Value,
        }
        for value in [
            "{}",
            r#"{"text": "a", "base64": "b"}"#,
            r#"{ "text": "a" , "more": {} }"#,
            r#"{"base64": "a", "more": {}}"#,
            "{ }",
        ] {
            for text in [
                format!(r#"{{"name": "n", "value": {value}}}"#),
                format!(r#"{{"value": {value}, "name": "n"}}"#),
            ] {
                let error = json_object::<Put>(&text).expect_err("it is wrong");
                let expected = "`value`: expected an object with exactly one key";
                assert_eq!(json_error(&text, &error), expected, "{text}");
                assert_eq!(json_field(&text, &error).as_deref(), Some("value"), "{text}");
            }
            let error = json_object::<Value>(value).expect_err("it is wrong");
            assert_eq!(json_error(value, &error), "expected an object with exactly one key");
            assert_eq!(json_field(value, &error), None);
        }
    }

    #[test]
    fn what_else_the_reader_takes_for_a_fault_of_the_text_is_said_as_before() {
        #[derive(Debug, Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum Mode {
            All,
            Any,
        }
        #[expect(dead_code, reason = "only read")]
        #[derive(Debug, Deserialize)]
        struct Wait {
            mode: Option<Mode>,
            text: Option<String>,
        }
        for (text, expected) in [
            (r#"{"mode": 77}"#.to_owned(), "a value must stand here"),
            (r#"{"mode": true, "text": "a"}"#.to_owned(), "a value must stand here"),
            (r#"{"text": "\ud800"}"#.to_owned(), "half a surrogate pair"),
        ] {
            let error = json_object::<Wait>(&text).expect_err("it is wrong");
            assert_eq!(json_error(&text, &error), expected, "{text}");
        }
    }

    #[test]
    fn an_object_is_no_array() {
        let read = json_object::<Outer>(r#" {"task": "x"}"#).expect("it is one");
        assert_eq!(read.task, "x");
        for text in ["[]", r#" ["x", null]"#, r#"[["x"]]"#] {
            let error = json_object::<Outer>(text).expect_err("it is none");
            assert_eq!(json_error(text, &error), "found array, expected an object");
        }
        let error = json_object::<Outer>("[[[[").expect_err("it is none");
        assert_eq!(json_error("[[[[", &error), "it ends in the middle of an array");
    }

    #[test]
    fn the_field_is_named_in_words_of_json() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            let error = serde_json::from_str::<Outer>(text).expect_err("it is wrong");
            assert_eq!(json_error(text, &error), expected, "{text}");
        }
        check(r#"{"task": 3}"#, "`task`: found integer `3`, expected a string");
        check(r#"{"task": null}"#, "`task`: found null, expected a string");
        check(r#"{"task": {"a": 1}}"#, "`task`: found object, expected a string");
        check(r#"{"task": [1]}"#, "`task`: found array, expected a string");
        check("3", "found integer `3`, expected an object");
        check(r#""x""#, "found string \"x\", expected an object");
        check(r#"{"task": "x", "inner": 4}"#, "`inner`: found integer `4`, expected an object");
        check(
            r#"{"inner": {"seconds": "x", "words": []}, "task": "x"}"#,
            "`inner.seconds`: found string \"x\", expected a whole number from 0 on",
        );
        check(
            "{\"task\": \"x\",\n \"inner\": {\"seconds\": 1,\n \"words\": [\"a\", 5]}}",
            "`inner.words[1]`: found integer `5`, expected a string",
        );
        check(
            r#"{"task": "x", "inner": {"seconds": -1, "words": []}}"#,
            "`inner.seconds`: found integer `-1`, expected a whole number from 0 on",
        );
        check(r#"{"task": "x", "inner": []}"#, "`inner`: found array, expected an object");
        check(
            r#"{"task": "x", "inner": {"seconds": 1, "words": 5}}"#,
            "`inner.words`: found integer `5`, expected an array",
        );
        check(r#"{"tasks": "x"}"#, "unknown key `tasks`, expected `task` or `inner`");
        check("{}", "the key `task` is missing");
        check(r#"{"task": "x", "task": "y"}"#, "the key `task` stands twice");
        check(r#"{"inner": {"seconds": 1}}"#, "`inner`: the key `words` is missing");
        check("nope", "a word that is none of true, false and null");
        check("{", "it ends in the middle of an object");
        check("", "it ends where a value must stand");
        check("{} 3", "the key `task` is missing");
        check(r#"{"task": "x"} 3"#, "something follows the value");
    }
}
