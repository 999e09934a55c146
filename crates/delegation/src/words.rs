//! The words of a text that are compared.

use std::collections::HashMap;

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

/// The words that texts have in common with a task, as numbers from 0 on in the order in which the task has them first. Agents say the
/// same things of themselves, so each part between two spaces is looked at once.
pub(crate) struct CommonWords<'a> {
    words: &'a Words,
    numbers: HashMap<String, usize>,
    /// The number of times that the task has each word.
    asked: Vec<u32>,
    seen: HashMap<&'a str, Vec<usize>>,
}

impl<'a> CommonWords<'a> {
    /// Words in common with this task.
    pub(crate) fn of(task: &str, words: &'a Words) -> Self {
        let (mut numbers, mut asked) = (HashMap::new(), Vec::new());
        for word in words.tokenize(task) {
            let number = *numbers.entry(word).or_insert(asked.len());
            match asked.get_mut(number) {
                Some(times) => *times += 1,
                None => asked.push(1),
            }
        }
        Self { words, numbers, asked, seen: HashMap::new() }
    }

    /// The number of times that the task has each word.
    pub(crate) fn asked(&self) -> &[u32] {
        &self.asked
    }

    /// Tells each word of a text that the task has too, as often as the text has it.
    pub(crate) fn in_text(&mut self, text: &'a str, mut tell: impl FnMut(usize)) {
        for part in text.split_whitespace() {
            let known = self.seen.entry(part).or_insert_with(|| {
                let words = self.words.tokenize(part).into_iter();
                words.filter_map(|word| self.numbers.get(&word).copied()).collect()
            });
            known.iter().copied().for_each(&mut tell);
        }
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
            let (of, all) = (words.tokenize(&asked), words.tokenize(&text));
            let times = |all: &[String], word| all.iter().filter(|it| *it == word).count() as u32;
            let mut common = CommonWords::of(&asked, &words);
            let mut counted = vec![0; common.asked.len()];
            common.in_text(&text, |word| counted[word] += 1);
            for (word, number) in &common.numbers {
                prop_assert_eq!(common.asked[*number], times(&of, word));
                prop_assert_eq!(counted[*number], times(&all, word));
            }
            prop_assert_eq!(words.distinct(&asked).len(), common.asked.len());
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
