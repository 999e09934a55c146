//! Answers that a client gets again and again: a model that waits in a loop is told so.

use std::collections::HashSet;

use offshoot_model::{ContentHash, JsonText, RunId};
use parking_lot::Mutex;

/// So many equal answers in a row, and each that follows, say that they are.
const MANY: u32 = 10;

/// The answers to the waits of one client.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    /// The last one, and how often it was given in a row.
    last: Mutex<Option<(ContentHash, u32)>>,
    /// The runs whose results the client has.
    heard: Mutex<HashSet<RunId>>,
}

impl Repeats {
    /// True if this is the last answer again.
    pub(crate) fn would_repeat(&self, answer: &JsonText) -> bool {
        let hash = ContentHash::of(answer.as_str().as_bytes());
        self.last.lock().is_some_and(|(last, _)| last == hash)
    }

    /// Notes an answer; with the words that go with it, where it has been given too often.
    pub(crate) fn told(&self, answer: JsonText) -> Option<String> {
        let hash = ContentHash::of(answer.as_str().as_bytes());
        let mut last = self.last.lock();
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

    /// Leaves out the results that the client has, unless it has all of them; it has all after this. A session is told of its children by its
    /// supervisor in the same way. The root of a server runs nothing, and the supervisor tells it of all.
    pub(crate) fn leave_out_heard<T>(&self, ended: &mut Vec<T>, run: impl Fn(&T) -> RunId) {
        let mut heard = self.heard.lock();
        if ended.iter().any(|it| !heard.contains(&run(it))) {
            ended.retain(|it| !heard.contains(&run(it)));
        }
        heard.extend(ended.iter().map(run));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_told_once_until_there_is_no_other() {
        let repeats = Repeats::default();
        let [a, b, c] = [1, 2, 3].map(|number| RunId::from_bytes([number; 16]));
        let told = |ended: &[RunId]| {
            let mut ended = ended.to_vec();
            repeats.leave_out_heard(&mut ended, |run| *run);
            ended
        };
        assert_eq!(told(&[a]), [a]);
        assert_eq!(told(&[a, b]), [b]);
        assert_eq!(told(&[a, b]), [a, b], "it has both, and asks again");
        assert_eq!(told(&[a, b, c]), [c]);
    }

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
