//! A result as the value that a program gets.

use std::fs;
use std::io;

use jaq_json::{Val, read};
use offshoot_plugin_sdk::model::ValueKind;
use offshoot_plugin_sdk::{MergeFault, MergeInput, MergeValue};

/// JSON nested deeper than this is refused: no result of use is, and a value is read, shown and dropped by calls in calls.
const DEEPEST: usize = 1000;

/// A result as `{key, value, status}`. Reads its file, where it is in one; blocks.
pub(crate) fn one(result: MergeInput) -> Result<Val, MergeFault> {
    let MergeInput { key, status, value } = result;
    let value = match value {
        MergeValue::Text(text) => Val::utf8_str(text.as_bytes().to_vec()),
        MergeValue::Json(json) => parse(&key, json.as_str())?,
        MergeValue::File { path, kind, .. } => {
            let cannot = |error: io::Error| wrong(&key, &format!("cannot be read: {error}"));
            let bytes = fs::read(path).map_err(cannot)?;
            let text = String::from_utf8(bytes).map_err(|_| wrong(&key, "is no text"))?;
            match kind {
                ValueKind::Json | ValueKind::Result => parse(&key, &text)?,
                ValueKind::Text | ValueKind::Bytes => Val::utf8_str(text.into_bytes()),
            }
        }
    };
    let text = |text: &str| Val::utf8_str(text.as_bytes().to_vec());
    let fields = [
        (text("key"), text(&key)),
        (text("value"), value),
        (text("status"), text(status.as_ref())),
    ];
    Ok(Val::obj(fields.into_iter().collect()))
}

/// The value of JSON text.
pub(crate) fn parse(key: &str, json: &str) -> Result<Val, MergeFault> {
    if depth(json) > DEEPEST {
        return Err(wrong(key, &format!("is nested deeper than {DEEPEST} levels")));
    }
    read::parse_single(json.as_bytes()).map_err(|error| wrong(key, &format!("is no JSON: {error}")))
}

fn wrong(key: &str, what: &str) -> MergeFault {
    MergeFault::new(format!("the result of `{key}` {what}"))
}

/// The depth to which arrays and objects stand in each other.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => {
                while let Some(byte) = bytes.next().filter(|byte| *byte != b'"') {
                    if byte == b'\\' {
                        bytes.next();
                    }
                }
            }
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_that_of_brackets_outside_of_strings() {
        for (json, expected) in [
            ("1", 0),
            ("[]", 1),
            (r#"[{"a": [1]}, [2]]"#, 3),
            (r#"["[[[[", "\"[[[", "\\"]"#, 1),
            (r#"{"[": "]"}"#, 1),
        ] {
            assert_eq!(depth(json), expected, "{json}");
        }
    }
}
