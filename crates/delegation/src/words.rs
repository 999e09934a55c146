//! The words of a text that are compared.

use bm25::{DefaultTokenizer, Language, Tokenizer};

/// Returns the stems of the words of English texts. Names count as words: their parts are separated by `-`, `_` or a capital letter.
pub(crate) struct Words(DefaultTokenizer);

impl Words {
    pub(crate) fn new() -> Self {
        Self(DefaultTokenizer::new(Language::English))
    }

    /// The stems of a text, each once, in order.
    pub(crate) fn distinct(&self, text: &str) -> Vec<String> {
        let mut words = self.tokenize(text);
        words.sort_unstable();
        words.dedup();
        words
    }
}

impl Tokenizer for Words {
    fn tokenize(&self, text: &str) -> Vec<String> {
        self.0.tokenize(&parted(text))
    }
}

/// Puts a space between the parts of `git-coordinator`, `git_coordinator` and `gitCoordinator`.
fn parted(text: &str) -> String {
    let mut parted = String::with_capacity(text.len() + 8);
    let mut was_small = false;
    for c in text.chars() {
        if was_small && c.is_uppercase() {
            parted.push(' ');
        }
        parted.push(if matches!(c, '-' | '_') { ' ' } else { c });
        was_small = c.is_lowercase();
    }
    parted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_stems_without_those_that_say_nothing() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(Words::new().distinct(text), expected, "{text:?}");
        };
        check("format the commit", &["commit", "format"]);
        check("For commit formatting", &["commit", "format"]);
        check(
            "git-coordinator, templateSync and test_validator",
            &["coordin", "git", "sync", "templat", "test", "valid"],
        );
        check("", &[]);
        check("the of and", &[]);
        check("!?", &[]);
    }
}
