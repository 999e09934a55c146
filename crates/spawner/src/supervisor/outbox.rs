//! Answers and effects that wait until the record of them is durable.

use std::collections::VecDeque;
use std::sync::Arc;

use offshoot_model::Event;
use offshoot_store::{Commit, Store, StoreError, Urgency};
use tokio::sync::OwnedSemaphorePermit;

use super::Answered;
use crate::machine::Effect;

/// Batches in the order in which they were given to the store, which is the order in which they become durable.
#[derive(Default)]
pub(super) struct Outbox {
    batches: VecDeque<Batch>,
    /// The last number known to be durable.
    durable: u64,
}

/// One append and what waits for it.
struct Batch {
    /// None while the record cannot be written: then it is appended with all others, in their order.
    commit: Option<Commit>,
    /// Kept until they are durable, because a store forgets what it could not write. Never empty.
    events: Vec<Arc<Event>>,
    released: Released,
}

/// The answers and effects that a durable batch sets free, beside its events.
#[derive(Default)]
pub(super) struct Released {
    /// For those who asked for children.
    pub(super) answers: Vec<Answered>,
    /// Effects for all other receivers.
    pub(super) effects: Vec<Effect>,
    /// Given back to requests for many pieces, which hand on no more than they have room for.
    pub(super) permits: Vec<OwnedSemaphorePermit>,
}

impl Released {
    /// Returns true if no caller is held up by what is set free: at most a follower or a gathering waits for it.
    pub(super) fn can_wait(&self) -> bool {
        let gathered =
            |effect: &Effect| matches!(effect, Effect::Ended { .. } | Effect::Remove { .. });
        self.answers.is_empty() && self.effects.iter().all(gathered)
    }
}

impl Outbox {
    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    pub(super) fn is_durable(&self, seq: u64) -> bool {
        seq <= self.durable
    }

    /// Events that were given to the store, or wait until it takes any.
    pub(super) fn push(
        &mut self,
        commit: Option<Commit>,
        events: Vec<Arc<Event>>,
        released: Released,
    ) {
        self.batches.push_back(Batch { commit, events, released });
    }

    /// Gives everything that is not durable to the store again, in its order.
    pub(super) fn append_again(&mut self, store: &dyn Store) {
        for batch in &mut self.batches {
            batch.commit = Some(store.record(&batch.events, Urgency::Now));
        }
    }

    /// Lets answers without a record of their own wait for what was recorded before them. Hands them back where nothing is
    /// on its way.
    pub(super) fn push_behind(&mut self, released: Released) -> Option<Released> {
        let Some(batch) = self.batches.back_mut() else { return Some(released) };
        batch.released.answers.extend(released.answers);
        batch.released.effects.extend(released.effects);
        batch.released.permits.extend(released.permits);
        None
    }

    /// Waits for the oldest batch; for ever where nothing is on its way. Safe to drop and to call again.
    ///
    /// # Errors
    ///
    /// The batch stays, and nothing behind it can become durable before it is appended again.
    pub(super) async fn committed(&mut self) -> Result<(Vec<Arc<Event>>, Released), StoreError> {
        let commit = self.batches.front_mut().and_then(|oldest| oldest.commit.as_mut());
        let Some(commit) = commit else { return std::future::pending().await };
        if let Err(error) = commit.await {
            self.batches.iter_mut().for_each(|batch| batch.commit = None);
            return Err(error);
        }
        let Batch { events, released, .. } =
            self.batches.pop_front().expect("the oldest batch is gone");
        self.durable = events.last().expect("a batch has events").seq;
        Ok((events, released))
    }

    /// Takes everything that waits: after the record broke, nothing of it may be told.
    pub(super) fn clear(&mut self) -> Vec<Released> {
        self.batches.drain(..).map(|batch| batch.released).collect()
    }
}

#[cfg(test)]
mod tests {
    use offshoot_model::{RunId, Timestamp};

    use super::*;
    use crate::machine::{RunIndex, WaitId};

    #[test]
    fn only_an_event_for_which_no_run_waits_can_be_late() {
        let check = |effects: Vec<Effect>, expected: bool| {
            let text = format!("{effects:?}");
            let released = Released { effects, ..Released::default() };
            assert_eq!(released.can_wait(), expected, "{text}");
        };
        let run = RunIndex::ROOT;
        let remove = || Effect::Remove { run: RunId::from_bytes([7; 16]) };
        check(vec![], true);
        check(vec![remove()], true);
        check(vec![Effect::Start { run, ahead: Some(0) }], false);
        check(vec![Effect::Recorded { at: Timestamp::EPOCH }], false);
        check(vec![Effect::NoTurn { wait: WaitId(1) }], false);
        let (wait, none) = (WaitId(1), Vec::new);
        let resolve = Effect::Resolve { wait, ended: none(), repeated: none(), pending: none() };
        check(vec![remove(), resolve], false);
    }
}
