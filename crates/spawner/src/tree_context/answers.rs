//! Answers that are small and new, for runs that need them: nearly every such run starts soon after what it needs has ended.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use offshoot_model::{Envelope, Payload, RunId};

/// The most bytes that are held: some hundred answers of the greatest size that stands in the record. All others are read from there.
const MOST_BYTES: u64 = 1 << 20;

/// Answers whose record is durable.
#[derive(Debug, Default)]
pub(crate) struct Answers(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    by_run: HashMap<RunId, Payload>,
    /// The oldest first.
    order: VecDeque<RunId>,
    bytes: u64,
}

impl Answers {
    /// A run has ended, and the record of that is durable.
    pub(crate) fn keep(&self, envelope: &Envelope) {
        let Some(answer @ (Payload::Text(_) | Payload::Json(_))) = &envelope.data else { return };
        if !envelope.status.is_success() {
            return;
        }
        let mut held = self.lock();
        if held.by_run.insert(envelope.run_id, answer.clone()).is_none() {
            held.bytes += cost(answer);
            held.order.push_back(envelope.run_id);
        }
        while held.bytes > MOST_BYTES
            && let Some(oldest) = held.order.pop_front()
        {
            let gone = held.by_run.remove(&oldest).expect("each in the order is held");
            held.bytes -= cost(&gone);
        }
    }

    /// Returns the answer of a run, if it is held.
    pub(crate) fn get(&self, run: RunId) -> Option<Payload> {
        self.lock().by_run.get(&run).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes of an answer, and about those of its place here.
fn cost(answer: &Payload) -> u64 {
    answer.size() + 128
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
        answers.keep(&ended(1, Reason::ExitCode { code: 7 }, "no answer"));
        assert!(!held(1));
        let half = "a".repeat(MOST_BYTES as usize / 2);
        for run in 2..6 {
            answers.keep(&ended(run, completed(), &half));
        }
        assert_eq!([2, 3, 4, 5].map(held), [false, false, false, true]);
        answers.keep(&ended(6, completed(), "small"));
        assert!(held(5) && held(6));
    }
}
