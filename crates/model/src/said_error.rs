//! An agent's own account of its error, out of what it printed.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The account that a run which is no success gives of its error. It stands beside the evidence and changes nothing about it: an
/// agent may be wrong about itself.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SaidError {
    /// The error in its words.
    pub error: Option<String>,
    /// Advice on what to do next.
    pub recovery_suggestion: Option<String>,
    /// True if it says that the same request may succeed if made again.
    pub parent_can_retry: Option<bool>,
}

impl SaidError {
    /// The longest text that is kept, in bytes; of a longer one its beginning.
    pub const TEXT_BYTES: usize = 4096;

    /// An account is looked for in so many bytes at the end of an answer.
    pub const TAIL_BYTES: usize = 64 * 1024;

    /// Reads the JSON object at the end of an answer, where it has `error`, `recovery_suggestion` or `parent_can_retry`; names in
    /// camel case are the same. `error` is a text, or an object with `message` and perhaps the other two, as in our own envelopes.
    ///
    /// ```
    /// use offshoot_model::SaidError;
    ///
    /// let printed = r#"looking at the repository
    /// {"status": "error", "error": "Git repo not clean", "recovery_suggestion": "Run: git stash", "parent_can_retry": true}"#;
    /// let said = SaidError::read(printed).expect("it says why");
    /// assert_eq!(said.error.as_deref(), Some("Git repo not clean"));
    /// assert_eq!(said.parent_can_retry, Some(true));
    /// assert_eq!(SaidError::read("{\"lines\": 12}"), None);
    /// ```
    pub fn read(answer: &str) -> Option<Self> {
        let object = last_object(tail(answer))?;
        let inner = object.get("error").and_then(Value::as_object);
        let said = Self {
            error: match inner {
                Some(inner) => text(inner, &["message"]),
                None => text(&object, &["error"]),
            },
            recovery_suggestion: either(&object, inner, |object| {
                text(object, &["recovery_suggestion", "recoverySuggestion"])
            }),
            parent_can_retry: either(&object, inner, |object| {
                get(object, &["parent_can_retry", "parentCanRetry"])?.as_bool()
            }),
        };
        (said != Self::default()).then_some(said)
    }

    /// Returns the beginning of the account for a line among others: the error, or else the advice.
    ///
    /// ```
    /// use offshoot_model::SaidError;
    ///
    /// let said = SaidError::read("{\"error\": \"no route\\nto the host\"}").expect("an account");
    /// assert_eq!(said.in_a_line().as_deref(), Some("no route"));
    /// ```
    pub fn in_a_line(&self) -> Option<String> {
        /// More of an account stands in `show`.
        const CHARACTERS: usize = 200;
        let text = self.error.as_deref().or(self.recovery_suggestion.as_deref())?;
        let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
        match line.char_indices().nth(CHARACTERS) {
            Some((end, _)) => Some(format!("{}…", &line[..end])),
            None => Some(line.to_owned()),
        }
    }
}

impl fmt::Display for SaidError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let retry = self.parent_can_retry.map(|can| match can {
            true => "it can be tried again",
            false => "it cannot be tried again",
        });
        let suggestion = self.recovery_suggestion.as_ref();
        let parts = [
            self.error.as_deref().map(Cow::Borrowed),
            suggestion.map(|text| Cow::Owned(format!("it suggests: {text}"))),
            retry.map(Cow::Borrowed),
        ];
        for (at, part) in parts.into_iter().flatten().enumerate() {
            f.write_str(if at > 0 { "; " } else { "" })?;
            f.write_str(&part)?;
        }
        Ok(())
    }
}

/// The end of a text, as much of it as is looked at.
fn tail(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(SaidError::TAIL_BYTES))..]
}

/// Returns the JSON object with which a text ends, where it begins at the beginning of a line. A fence of Markdown may stand around it.
fn last_object(text: &str) -> Option<Map<String, Value>> {
    /// An object over several lines may have so many lines that begin like an object.
    const TRIES: usize = 64;
    let text = text.trim_end();
    let text = text.strip_suffix("```").map_or(text, str::trim_end);
    if !text.ends_with('}') {
        return None;
    }
    let starts = text.rmatch_indices('{').filter(|(at, _)| {
        let line = text[..*at].rfind('\n').map_or(0, |end| end + 1);
        text[line..*at].trim().is_empty()
    });
    starts.take(TRIES).find_map(|(at, _)| serde_json::from_str(&text[at..]).ok())
}

fn get<'a>(object: &'a Map<String, Value>, names: &[&str]) -> Option<&'a Value> {
    names.iter().find_map(|name| object.get(*name))
}

fn text(object: &Map<String, Value>, names: &[&str]) -> Option<String> {
    let text = get(object, names)?.as_str()?.trim();
    let cut = text.floor_char_boundary(SaidError::TEXT_BYTES);
    (!text.is_empty()).then(|| text[..cut].to_owned())
}

/// Returns what the outer object says, or else the inner one.
fn either<T>(
    outer: &Map<String, Value>,
    inner: Option<&Map<String, Value>>,
    read: impl Fn(&Map<String, Value>) -> Option<T>,
) -> Option<T> {
    read(outer).or_else(|| read(inner?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_the_object_at_the_end_is_an_account() {
        let said = |error: &str, suggestion: Option<&str>, retry| {
            Some(SaidError {
                error: Some(error.to_owned()),
                recovery_suggestion: suggestion.map(str::to_owned),
                parent_can_retry: retry,
            })
        };
        let table = [
            ("", None),
            ("no JSON at all", None),
            ("[1, 2]", None),
            ("{\"error\": 7}", None),
            ("{\"error\": \"  \"}", None),
            ("{\"status\": \"error\"}", None),
            ("{\"error\": \"x\"} and more", None),
            ("a {\"error\": \"x\"}", None),
            ("{\"error\": \"x\"", None),
            ("{\"error\": \"x\"}", said("x", None, None)),
            ("{\"error\": \"x\"}\n\n", said("x", None, None)),
            ("{\"error\": \"old\"}\n{\"error\": \"new\"}\n", said("new", None, None)),
            (
                "working\n{\n  \"error\": \"x\",\n  \"recovery_suggestion\": \"y\",\n  \"more\":\n  {\"error\": \"z\"}\n}\n",
                said("x", Some("y"), None),
            ),
            (
                "```json\n{\"error\": \"x\", \"parentCanRetry\": false}\n```\n",
                said("x", None, Some(false)),
            ),
            (
                "{\"status\":\"failed\",\"error\":{\"code\":\"timeout\",\"message\":\"x\",\"recoverySuggestion\":\"y\",\"parentCanRetry\":true}}",
                said("x", Some("y"), Some(true)),
            ),
            ("{\"error\": \"x\", \"parent_can_retry\": \"yes\"}", said("x", None, None)),
        ];
        for (answer, expected) in table {
            assert_eq!(SaidError::read(answer), expected, "{answer}");
        }
        let only = SaidError::read("{\"parent_can_retry\": true}").expect("an account");
        assert_eq!(only.to_string(), "it can be tried again");
    }

    #[test]
    fn huge_and_deep_answers_are_bounded() {
        let long = format!("{{\"error\": \"{}\"}}", "é".repeat(20_000));
        let said = SaidError::read(&long).expect("it fits in what is looked at");
        assert_eq!(said.error.expect("a text").len(), SaidError::TEXT_BYTES);
        let longer = format!("{{\"error\": \"{}\"}}", "é".repeat(SaidError::TAIL_BYTES));
        assert_eq!(SaidError::read(&longer), None, "its beginning is not looked at");
        let deep = "{\"error\":\n".repeat(10_000) + &"}".repeat(10_000);
        assert_eq!(SaidError::read(&deep), None);
    }

    proptest! {
        #[test]
        fn no_answer_is_too_strange(answer in "[{}\"a-c:, \n`é]{0,80}") {
            if let Some(said) = SaidError::read(&answer) {
                prop_assert!(said != SaidError::default());
            }
        }

        #[test]
        fn an_account_is_found_after_any_lines(before in "[a-z{}\" \n]{0,60}", error in "[a-zé]{1,20}") {
            let answer = format!("{before}\n{}", serde_json::json!({ "error": error }));
            prop_assert_eq!(SaidError::read(&answer).and_then(|said| said.error), Some(error));
        }
    }
}
