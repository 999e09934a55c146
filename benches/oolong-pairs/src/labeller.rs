//! The agent of the benchmark: it labels the lines of its piece, and does wrong as often as it is told to.

use serde::{Deserialize, Serialize};

use crate::{Entry, Label, Labelled};

/// The rates at which the labeller does wrong. What happens to a line or a call follows from the seed and the text, so that two runs see the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Faults {
    /// The seed.
    pub seed: u64,
    /// The share of the lines with a wrong label.
    pub label_errors: f64,
    /// The share of the calls that are answered with a refusal in words.
    pub refusals: f64,
    /// The share of the calls that die before they have answered.
    pub kills: f64,
}

/// The end of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// A line for each entry.
    Labels(String),
    /// Words instead of labels, as of a model that does not want to.
    Refusal(&'static str),
    /// No answer: the process or the stream ends in the middle.
    Death,
}

const REFUSAL: &str = "I am sorry, but I cannot label what these users have asked.";

impl Faults {
    /// Returns true if a call can end otherwise than with labels, so that calls are to be counted.
    pub fn depend_on_calls(&self) -> bool {
        self.refusals > 0.0 || self.kills > 0.0
    }

    /// Answers the `ask`-th call about a text, from 0. Lines that are no entries are not answered.
    pub fn react(&self, text: &str, ask: u32) -> Reaction {
        let drawn = self.drawn(b"call", text, ask);
        if drawn < self.kills {
            return Reaction::Death;
        }
        if drawn < self.kills + self.refusals {
            return Reaction::Refusal(REFUSAL);
        }
        let entries = text.lines().filter_map(|line| Some((line, line.parse::<Entry>().ok()?)));
        let labelled = entries.filter_map(|(line, entry)| {
            let label = self.label(line, Label::of(&entry.instance)?);
            Some(format!("{}\n", Labelled { user: entry.user, date: entry.date, label }))
        });
        Reaction::Labels(labelled.collect())
    }

    /// The right label, or another one.
    fn label(&self, line: &str, right: Label) -> Label {
        if self.drawn(b"line", line, 0) >= self.label_errors {
            return right;
        }
        let others: Vec<Label> = Label::ALL.into_iter().filter(|label| *label != right).collect();
        let place = self.drawn(b"which", line, 0) * others.len() as f64;
        others[place as usize]
    }

    /// A number from 0 to 1, which is the same for the same text.
    fn drawn(&self, what: &[u8], text: &str, nth: u32) -> f64 {
        let mut hash = blake3::Hasher::new();
        hash.update(&self.seed.to_le_bytes()).update(&nth.to_le_bytes());
        hash.update(what).update(text.as_bytes());
        let bytes = hash.finalize();
        let first = bytes.as_bytes().first_chunk().expect("a hash has 32 bytes");
        (u64::from_le_bytes(*first) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Corpus, Recipe};

    fn corpus() -> Corpus {
        Corpus::generate(&Recipe { tokens: 8_000, seed: 3, users: None })
    }

    #[test]
    fn without_faults_all_labels_are_right() {
        let corpus = corpus();
        let expected: String =
            corpus.labelled().iter().map(|labelled| format!("{labelled}\n")).collect();
        let text = format!("Label these:\n{}", corpus.text());
        assert_eq!(Faults::default().react(&text, 0), Reaction::Labels(expected));
    }

    #[test]
    fn as_many_labels_are_wrong_as_asked_for() {
        let corpus = corpus();
        let faults = Faults { label_errors: 0.2, ..Faults::default() };
        let Reaction::Labels(text) = faults.react(&corpus.text(), 0) else {
            panic!("no call fails here")
        };
        let labelled: Vec<Labelled> =
            text.lines().map(|line| line.parse().expect("a line")).collect();
        let wrong = labelled.iter().zip(corpus.labelled()).filter(|(a, b)| *a != b).count();
        let share = wrong as f64 / labelled.len() as f64;
        assert!((0.13..0.27).contains(&share), "{share}");
    }

    #[test]
    fn another_call_may_end_otherwise() {
        let faults = Faults { kills: 0.3, refusals: 0.3, ..Faults::default() };
        let text = "Date: Feb 02, 2023 || User: 76153 || Instance: Where is Harbour Street?";
        let ends: Vec<Reaction> = (0..200).map(|ask| faults.react(text, ask)).collect();
        let count = |is: fn(&Reaction) -> bool| ends.iter().filter(|end| is(end)).count();
        assert!((40..80).contains(&count(|end| *end == Reaction::Death)));
        assert!((40..80).contains(&count(|end| matches!(end, Reaction::Refusal(_)))));
        assert_eq!(faults.react(text, 7), ends[7], "the same call ends the same");
    }
}
