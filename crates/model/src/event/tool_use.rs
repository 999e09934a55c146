//! The use of a tool by an agent, as much of it as a record keeps.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ContentHash;

/// The number of characters of a tool's name that are kept.
const NAME_CHARS: usize = 128;

/// The number of characters of an input that are kept.
const INPUT_CHARS: usize = 400;

/// The use of a tool: its name, and its input where the runtime says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolUse {
    /// The name of the tool, of which at most 128 characters are kept.
    pub name: Arc<str>,
    /// The input; none where the runtime does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<ToolInput>,
}

/// The input of a tool, bounded: two inputs are the same if their digests are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolInput {
    /// The input as JSON on one line, with sorted keys; the first 400 characters of it.
    pub text: Arc<str>,
    /// The number of bytes of the whole input in this form.
    pub size: u64,
    /// The hash of the whole input in this form.
    pub digest: ContentHash,
}

impl ToolUse {
    /// The use of a tool, of which nothing but the name is known.
    pub fn named(name: &str) -> Self {
        Self { name: start(name, NAME_CHARS).into(), input: None }
    }

    /// The use of a tool with this input. An input that is no JSON (a map whose keys are no text) is as one that is not known.
    pub fn new(name: &str, input: &impl Serialize) -> Self {
        let input = serde_json::to_value(input).ok().map(|mut input| {
            input.sort_all_objects();
            ToolInput::of(&input.to_string())
        });
        Self { input, ..Self::named(name) }
    }

    /// The same use, with an input of which the beginning, the size and the digest are known.
    #[must_use]
    pub fn with_start(self, text: &str, size: u64, digest: ContentHash) -> Self {
        let text = start(text, INPUT_CHARS).into();
        Self { input: Some(ToolInput { text, size, digest }), ..self }
    }

    /// Returns a line for people that has the name alone.
    pub fn line(&self) -> String {
        format!("uses {}", self.name)
    }
}

impl ToolInput {
    fn of(json: &str) -> Self {
        let digest = ContentHash::of(json.as_bytes());
        Self { text: start(json, INPUT_CHARS).into(), size: json.len() as u64, digest }
    }

    /// True if the text is the whole input.
    pub fn is_whole(&self) -> bool {
        self.text.len() as u64 == self.size
    }
}

/// The first characters of a text.
fn start(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(end, _)| &text[..end])
}

impl fmt::Display for ToolUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        let Some(input) = &self.input else { return Ok(()) };
        let cut = if input.is_whole() { "" } else { " …" };
        write!(f, " {}{cut}", input.text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_same_input_has_the_same_digest_whatever_its_form() {
        let of = |json: &str| {
            let value: serde_json::Value =
                serde_json::from_str(json).expect("the text is not JSON");
            ToolUse::new("Read", &value)
        };
        let one = of(r#"{"path":"a","range":{"from":1,"to":2}}"#);
        assert_eq!(of(r#"{ "range": {"to":2, "from":1}, "path": "a" }"#), one);
        assert_eq!(one.to_string(), r#"Read {"path":"a","range":{"from":1,"to":2}}"#);
        assert_ne!(of(r#"{"path":"b"}"#).input, one.input);
        assert_eq!(ToolUse::named("Read").to_string(), "Read");
    }

    #[test]
    fn a_long_input_is_kept_as_its_beginning_and_its_digest() {
        let of =
            |last: &str| ToolUse::new(&"n".repeat(500), &json!({"a": "é".repeat(9_000) + last}));
        let (one, other) = (of("x"), of("y"));
        assert_eq!(one.name.len(), NAME_CHARS);
        let (one, other) = (one.input.expect("it was given"), other.input.expect("it was given"));
        assert_eq!((one.text.chars().count(), one.size), (INPUT_CHARS, 18_009));
        assert!(!one.is_whole());
        assert_eq!(one.text, other.text);
        assert_ne!(one.digest, other.digest);
    }
}
