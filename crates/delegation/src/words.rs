//! The words of a text that are compared.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

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
        // Each part by itself: a letter of another script changes nothing about the word behind the next space.
        parted(text).split_whitespace().flat_map(|part| self.0.tokenize(part)).collect()
    }
}

/// The words that texts have in common with one text. Agents say the same things of themselves, so each part between two spaces is
/// looked at once.
pub(crate) struct CommonWords<'a> {
    words: &'a Words,
    of: HashSet<String>,
    seen: Mutex<HashMap<String, Vec<String>>>,
}

impl<'a> CommonWords<'a> {
    /// Words in common with this text.
    pub(crate) fn of(text: &str, words: &'a Words) -> Self {
        let of = words.tokenize(text).into_iter().collect();
        Self { words, of, seen: Mutex::default() }
    }
}

impl Tokenizer for CommonWords<'_> {
    fn tokenize(&self, text: &str) -> Vec<String> {
        let mut seen = self.seen.lock().expect("looking at words does not panic");
        let mut common = Vec::new();
        for part in text.split_whitespace() {
            let known = match seen.get(part) {
                Some(known) => known,
                None => {
                    let mut words = self.words.tokenize(part);
                    words.retain(|word| self.of.contains(word));
                    seen.entry(part.to_owned()).or_insert(words)
                }
            };
            common.extend_from_slice(known);
        }
        common
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
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_common_is_what_both_have(
            asked in "[a-zA-Z_é日 .-]{0,40}",
            text in "[a-zA-Z_é日\u{301}'. \n-]{0,60}",
        ) {
            let words = Words::new();
            let of: HashSet<String> = words.tokenize(&asked).into_iter().collect();
            let mut expected = words.tokenize(&text);
            expected.retain(|word| of.contains(word));
            prop_assert_eq!(CommonWords::of(&asked, &words).tokenize(&text), expected);
        }
    }

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
