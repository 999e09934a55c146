//! Answers that a client gets again and again: a model that waits in a loop is told so.

use offshoot_model::{ContentHash, JsonText};
use parking_lot::Mutex;

/// So many equal answers in a row, and each that follows, say that they are.
const MANY: u32 = 10;

/// The last answer to a wait, and how often it was given in a row.
#[derive(Debug, Default)]
pub(crate) struct Repeats(Mutex<Option<(ContentHash, u32)>>);

impl Repeats {
    /// True if this is the last answer again.
    pub(crate) fn would_repeat(&self, answer: &JsonText) -> bool {
        let hash = ContentHash::of(answer.as_str().as_bytes());
        self.0.lock().is_some_and(|(last, _)| last == hash)
    }

    /// Notes an answer; with the words that go with it, where it has been given too often.
    pub(crate) fn told(&self, answer: JsonText) -> Option<String> {
        let hash = ContentHash::of(answer.as_str().as_bytes());
        let mut last = self.0.lock();
        let times = match *last {
            Some((same, times)) if same == hash => times.saturating_add(1),
            _ => 1,
        };
        *last = Some((hash, times));
        (times >= MANY).then(|| {
            format!(
                "this same answer was given {times} times in a row: nothing has changed. What has ended stays as it is; \
                 wait for what is pending without timeoutSeconds, or go on with what there is"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tenth_equal_answer_in_a_row_says_so() {
        let repeats = Repeats::default();
        let answer = |text: &str| JsonText::of(&text).expect("text");
        for _ in 0..9 {
            assert_eq!(repeats.told(answer("a")), None);
        }
        assert_eq!(repeats.told(answer("b")), None, "another one");
        for _ in 0..9 {
            assert_eq!(repeats.told(answer("a")), None);
        }
        assert!(repeats.would_repeat(&answer("a")) && !repeats.would_repeat(&answer("b")));
        for times in [10, 11] {
            let note = repeats.told(answer("a")).expect("too often");
            assert!(note.contains(&format!("{times} times in a row")), "{note}");
        }
        assert_eq!(repeats.told(answer("b")), None);
    }
}
