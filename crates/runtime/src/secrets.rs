//! Values that must not be recorded.

use std::borrow::Cow;
use std::sync::Arc;

use offshoot_model::ToolUse;
use serde_json::Value;

/// Texts that are struck out of the last words and signs of life of a program, and of the inputs of its tools: its ticket, and
/// whatever its operator gave it by name. Cheap to clone.
///
/// ```
/// use offshoot_runtime::Secrets;
///
/// let secrets = Secrets::new(["hunter-2-hunter".to_owned()]);
/// assert_eq!(secrets.strike_out("login hunter-2-hunter failed"), "login [redacted] failed");
/// assert_eq!(format!("{secrets:?}"), "Secrets([redacted])");
/// ```
#[derive(Clone, Default, derive_more::Debug)]
#[debug("Secrets([redacted])")]
pub struct Secrets(Arc<[String]>);

/// The text that replaces a secret.
pub(crate) const STAND_IN: &str = "[redacted]";

/// A shorter text is no secret: it would be found in half of all words.
const SHORTEST: usize = 8;

/// So much of one that was cut off at either end of a text is struck out too.
pub(crate) const PART: usize = 4;

impl Secrets {
    /// The secrets among these: those that are not too short.
    pub fn new(texts: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> =
            texts.into_iter().filter(|text| text.len() >= SHORTEST).collect();
        // One may be part of another.
        secrets.sort_unstable_by_key(|secret| std::cmp::Reverse(secret.len()));
        // Most runs have none, and those take no memory.
        if secrets.is_empty() { Self::default() } else { Self(secrets.into()) }
    }

    /// True if there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The secrets, the longest first.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(String::as_bytes)
    }

    /// The text without them, and without a part of one that stands at its very beginning or end.
    pub fn strike_out<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for secret in &*self.0 {
            if text.contains(secret.as_str()) {
                text = Cow::Owned(text.replace(secret.as_str(), STAND_IN));
            }
            let head = parts(secret).find(|at| text.ends_with(&secret[..*at]));
            if let Some(at) = head {
                let rest = text.len() - at;
                text = Cow::Owned(format!("{}{STAND_IN}", &text[..rest]));
            }
            let cut = |at: &usize| secret.len() - *at;
            let tail = parts(secret)
                .filter(|at| secret.is_char_boundary(cut(at)))
                .find(|at| text.starts_with(&secret[cut(at)..]));
            if let Some(at) = tail {
                text = Cow::Owned(format!("{STAND_IN}{}", &text[at..]));
            }
        }
        text
    }

    /// The use of a tool with this input, whose names and values are without them. They are struck out before the input is cut
    /// and hashed: half a secret is not found, and a short one can be guessed from a hash.
    pub fn tool_use(&self, name: &str, mut input: Value) -> ToolUse {
        self.strike_out_of(&mut input);
        ToolUse::new(&self.whole(name), &input)
    }

    /// Strikes whole secrets out of a document. The end of a text in it is no place where something was cut off.
    fn strike_out_of(&self, value: &mut Value) {
        match value {
            _ if self.0.is_empty() => {}
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => {
                let text = number.to_string();
                let rest = self.whole(&text);
                if rest != text {
                    *value = Value::String(rest);
                }
            }
            Value::String(text) => *text = self.whole(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.strike_out_of(item)),
            Value::Object(fields) => {
                *fields = std::mem::take(fields)
                    .into_iter()
                    .map(|(name, mut value)| {
                        self.strike_out_of(&mut value);
                        (self.whole(&name), value)
                    })
                    .collect();
            }
        }
    }

    fn whole(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), STAND_IN))
    }
}

/// Returns the lengths of the parts of a secret that are looked for, the longest first.
fn parts(secret: &str) -> impl Iterator<Item = usize> {
    (PART..secret.len()).rev().filter(|at| secret.is_char_boundary(*at))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_input_of_a_tool_is_kept_without_them() {
        let secrets =
            Secrets::new(["correct \"horse\"", "hunter-2-hunter", "12345678"].map(str::to_owned));
        let used = secrets.tool_use(
            "login hunter-2-hunter",
            json!({
                "command": ["say correct \"horse\"", "hunter-2"],
                "hunter-2-hunter": {"pin": 12_345_678, "n": 1, "b": true, "none": null},
            }),
        );
        let expected = concat!(
            r#"login [redacted] {"[redacted]":{"b":true,"n":1,"none":null,"pin":"[redacted]"},"#,
            r#""command":["say [redacted]","hunter-2"]}"#,
        );
        assert_eq!(used.to_string(), expected);
        // One that stands where the input is cut leaves no part behind, and the hash is that of the rest.
        let long = |secret: &str| json!("x".repeat(390) + secret);
        let used = secrets.tool_use("t", long("hunter-2-hunter"));
        assert_eq!(used, ToolUse::new("t", &long(STAND_IN)));
    }

    #[test]
    fn secrets_are_struck_out_whole_and_in_part() {
        let secrets = Secrets::new(
            ["correct-horse", "correct-horse-battery", "short", "schlüssel-ß"].map(str::to_owned),
        );
        let check = |text: &str, expected: &str| assert_eq!(secrets.strike_out(text), expected);
        check("", "");
        check("nothing to see", "nothing to see");
        check("a correct-horse, twice: correct-horse", "a [redacted], twice: [redacted]");
        check("correct-horse-battery", "[redacted]");
        check("short of words", "short of words");
        // Cut off where only the last, or the first, so many bytes were kept.
        check("…: correct-ho", "…: [redacted]");
        check("se-battery was wrong", "[redacted] was wrong");
        check("a schlüs", "a [redacted]");
        check("üssel-ß!", "[redacted]!");
        check("in the corr of it", "in the corr of it");
        assert!(matches!(secrets.strike_out("nothing"), Cow::Borrowed(_)));
        assert!(matches!(Secrets::default().strike_out("x"), Cow::Borrowed(_)));
    }
}
