//! Values that must not be recorded.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Texts that are struck out of the last words and signs of life of a program: its ticket, and whatever its operator
/// gave it by name. Cheap to clone.
///
/// ```
/// use offshoot_runtime::Secrets;
///
/// let secrets = Secrets::new(["hunter-2-hunter".to_owned()]);
/// assert_eq!(secrets.strike_out("login hunter-2-hunter failed"), "login [redacted] failed");
/// assert_eq!(format!("{secrets:?}"), "Secrets([redacted])");
/// ```
#[derive(Clone, Default)]
pub struct Secrets(Arc<[String]>);

/// The text that replaces a secret.
const STAND_IN: &str = "[redacted]";

/// A shorter text is no secret: it would be found in half of all words.
const SHORTEST: usize = 8;

/// So much of one that was cut off at either end of a text is struck out too.
const PART: usize = 4;

impl Secrets {
    /// The secrets among these: those that are not too short.
    pub fn new(texts: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> =
            texts.into_iter().filter(|text| text.len() >= SHORTEST).collect();
        // One may be part of another.
        secrets.sort_unstable_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(secrets.into())
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
}

/// Returns the lengths of the parts of a secret that are looked for, the longest first.
fn parts(secret: &str) -> impl Iterator<Item = usize> {
    (PART..secret.len()).rev().filter(|at| secret.is_char_boundary(*at))
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets([redacted])")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
