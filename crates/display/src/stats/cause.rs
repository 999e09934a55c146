//! Failures by their causes.

use offshoot_model::RunId;
use serde::Serialize;

/// Failures with the same exit code that say the same, but for numbers.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cause {
    /// The number of runs that failed so.
    pub runs: u64,
    /// The code of the reason, such as `exit_code`.
    pub code: String,
    /// The words of the first of them whose place no other run has taken.
    pub example: String,
    /// The words that all of them share, with `…` in place of those in which they differ.
    pub words: String,
    /// The run of the example.
    pub run_id: RunId,
    /// The name of that run for people.
    pub name: String,
}

/// The failures of one cause.
#[derive(Clone, Debug, Default)]
pub(super) struct CauseSum {
    pub(super) runs: u64,
    /// The words of all of them; none in place of those in which they differ.
    words: Vec<Option<String>>,
    /// The first of those that still count: the code of the reason, the words, the run and its name.
    pub(super) examples: Vec<(&'static str, String, RunId, String)>,
}

/// The failures of a cause that are kept as examples, since the place of some may be taken again.
pub(super) const EXAMPLES: usize = 8;

impl CauseSum {
    /// Takes in the words of one more failure.
    pub(super) fn share(&mut self, example: &str) {
        if self.examples.is_empty() {
            self.words = example.split(' ').map(|word| Some(word.to_owned())).collect();
            return;
        }
        let words: Vec<&str> = example.split(' ').collect();
        // What has more words than others shares the first ones at most.
        self.words.truncate(words.len());
        for (shared, word) in self.words.iter_mut().zip(words) {
            *shared = shared.take().filter(|shared| shared == word);
        }
    }

    pub(super) fn cause(self) -> Option<Cause> {
        let words = self.words.iter().map(|word| word.as_deref().unwrap_or("…"));
        let words = words.collect::<Vec<_>>().join(" ");
        let (code, example, run_id, name) = self.examples.into_iter().next()?;
        let words = if self.runs == 1 { example.clone() } else { words };
        Some(Cause { runs: self.runs, code: code.to_owned(), example, words, run_id, name })
    }
}

/// Returns a text without digits and without ids of runs: what differs in these alone is the same cause.
pub(super) fn without_numbers(text: &str) -> String {
    let word = |word: &str| match word.trim_end_matches(':').parse::<RunId>() {
        Ok(_) => String::new(),
        Err(_) => word.chars().filter(|char| !char.is_ascii_digit()).collect(),
    };
    text.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}
