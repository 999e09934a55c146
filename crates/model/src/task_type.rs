//! The type of a task, by which what was learned of earlier tasks applies to later ones.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_with::DeserializeFromStr;

/// A type of tasks, as who asks names it: 1 to 64 letters, digits and `_`, `-`, `.`, `:` or `/`, such as `validate_syntax`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, DeserializeFromStr, JsonSchema)]
#[serde(transparent)]
pub struct TaskType(Arc<str>);

/// A text that is no type of tasks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a type of tasks has 1 to 64 letters, digits and `_`, `-`, `.`, `:` or `/`, as `validate_syntax`"
)]
pub struct ParseTaskTypeError;

/// The most characters of a type.
const LONGEST: usize = 64;

impl TaskType {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TaskType {
    type Err = ParseTaskTypeError;

    fn from_str(text: &str) -> Result<Self, ParseTaskTypeError> {
        let is_known = |c: char| c.is_alphanumeric() || "_-.:/".contains(c);
        let is_type = (1..=LONGEST).contains(&text.chars().count()) && text.chars().all(is_known);
        if is_type { Ok(Self(text.into())) } else { Err(ParseTaskTypeError) }
    }
}

impl fmt::Display for TaskType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_a_short_word() {
        let check = |text: &str, is_type: bool| {
            assert_eq!(text.parse::<TaskType>().is_ok(), is_type, "{text:?}");
        };
        for text in ["validate_syntax", "a", "Prüfung", "docs/api:v1.2-x", &"x".repeat(64)] {
            check(text, true);
        }
        for text in ["", "two words", "a\nb", "\u{1b}[2J", "a|b", &"x".repeat(65)] {
            check(text, false);
        }
        let parsed = serde_json::from_str::<TaskType>("\"a b\"").expect_err("two words");
        assert!(parsed.to_string().starts_with("a type of tasks has 1 to 64"), "{parsed}");
        let written = serde_json::from_str::<TaskType>("\"a\"").map(|it| it.to_string());
        assert_eq!(written.expect("a word"), "a");
    }
}
