//! New answers, for runs that need them: nearly every such run starts soon after what it needs has ended.

use std::collections::{HashMap, VecDeque};

use offshoot_model::{Envelope, Payload, RunId};
use parking_lot::Mutex;

/// The most bytes of answers on record that are held: some hundred of the greatest size that stands in the record. All others are read
/// from there.
const MOST_BYTES: u64 = 1 << 20;

/// The newest answers. One is held at least until it is on record: until then it is nowhere else.
#[derive(Debug, Default)]
pub(crate) struct Answers(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    by_run: HashMap<RunId, Payload>,
    /// Runs whose end is on record, the oldest first.
    recorded: VecDeque<RunId>,
    /// The bytes of those on record.
    bytes: u64,
}

impl Answers {
    /// Holds the answer of a run that has ended.
    pub(crate) fn keep(&self, envelope: &Envelope) {
        if envelope.status.is_success() {
            // A run that said nothing has answered with an empty text.
            let answer = envelope.data.clone().unwrap_or_else(|| Payload::text(""));
            self.0.lock().by_run.insert(envelope.run_id, answer);
        }
    }

    /// Takes in that the end of a run is durable.
    pub(crate) fn recorded(&self, run: RunId) {
        let mut held = self.0.lock();
        let Some(answer) = held.by_run.get(&run) else { return };
        held.bytes += cost(answer);
        held.recorded.push_back(run);
        while held.bytes > MOST_BYTES
            && let Some(oldest) = held.recorded.pop_front()
        {
            let gone = held.by_run.remove(&oldest).expect("each in the order is held");
            held.bytes -= cost(&gone);
        }
    }

    /// Returns the answer of a run, if it is held.
    pub(crate) fn get(&self, run: RunId) -> Option<Payload> {
        self.0.lock().by_run.get(&run).cloned()
    }
}

/// The bytes of an answer in memory, and about those of its place here.
fn cost(answer: &Payload) -> u64 {
    answer.at_hand().map_or(0, str::len) as u64 + 128
}

#[cfg(test)]
mod tests {
    use offshoot_model::{AgentId, Ending, Reason};
    use offshoot_session_key::SessionKey;

    use super::*;

    fn ended(run: u8, reason: Reason, answer: &str) -> Envelope {
        let ending = Ending { output: Some(Payload::text(answer)), ..Ending::of(reason) };
        let key = SessionKey::parse("agent:main:main").expect("a key");
        let agent = AgentId::parse("main").expect("an id");
        Envelope::of(&ending, key, RunId::from_bytes([run; 16]), agent, 1)
    }

    #[test]
    fn the_newest_answers_are_held_within_a_bound() {
        let answers = Answers::default();
        let held = |run: u8| answers.get(RunId::from_bytes([run; 16])).is_some();
        let completed = || Reason::Completed { exit_code: None };
        let recorded = |run: u8| answers.recorded(RunId::from_bytes([run; 16]));
        answers.keep(&ended(1, Reason::ExitCode { code: 7 }, "no answer"));
        recorded(1);
        assert!(!held(1));
        let half = "a".repeat(MOST_BYTES as usize / 2);
        for run in 2..6 {
            answers.keep(&ended(run, completed(), &half));
        }
        assert_eq!([2, 3, 4, 5].map(held), [true; 4], "they are nowhere else");
        (2..6).for_each(recorded);
        assert_eq!([2, 3, 4, 5].map(held), [false, false, false, true]);
        answers.keep(&ended(6, completed(), "small"));
        recorded(6);
        assert!(held(5) && held(6));
    }
}
