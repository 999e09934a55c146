//! What is told once the record of it is durable.

use offshoot_store::{Commit, StoreError};
use std::collections::VecDeque;

use super::Answered;
use crate::follow::News;
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
    commit: Commit,
    last: u64,
    told: Told,
}

/// What a durable batch sets free.
#[derive(Default)]
pub(super) struct Told {
    /// For those who follow the tree.
    pub(super) news: Vec<News>,
    /// For those who asked for children.
    pub(super) answers: Vec<Answered>,
    /// For everybody else.
    pub(super) effects: Vec<Effect>,
}

impl Told {
    /// Whether nobody is held up by what is set free: at most somebody follows the tree, or gathers results.
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

    pub(super) fn push(&mut self, commit: Commit, last: u64, told: Told) {
        self.batches.push_back(Batch { commit, last, told });
    }

    /// What has nothing of its own to record waits for what was recorded before it.
    /// Handed back where nothing is on its way.
    pub(super) fn push_behind(&mut self, told: Told) -> Option<Told> {
        let Some(batch) = self.batches.back_mut() else { return Some(told) };
        batch.told.news.extend(told.news);
        batch.told.answers.extend(told.answers);
        batch.told.effects.extend(told.effects);
        None
    }

    /// Waits for the oldest batch. Safe to drop and to call again. Must not be called on an empty outbox.
    pub(super) async fn committed(&mut self) -> Result<Told, StoreError> {
        let oldest = self.batches.front_mut().expect("an empty outbox waits for nothing");
        let outcome = (&mut oldest.commit).await;
        let batch = self.batches.pop_front().expect("it was there before the wait");
        outcome?;
        self.durable = batch.last;
        Ok(batch.told)
    }

    /// Forgets everything that waits: after the record broke, nothing of it may be told.
    pub(super) fn clear(&mut self) {
        self.batches.clear();
    }
}

#[cfg(test)]
mod tests {
    use offshoot_model::RunId;

    use super::*;
    use crate::machine::{RunIndex, WaitId};

    #[test]
    fn only_what_holds_nobody_up_can_wait() {
        let check = |effects: Vec<Effect>, expected: bool| {
            let text = format!("{effects:?}");
            let told = Told { effects, ..Told::default() };
            assert_eq!(told.can_wait(), expected, "{text}");
        };
        let run = RunIndex::ROOT;
        let remove = || Effect::Remove { run: RunId::from_bytes([7; 16]) };
        check(vec![], true);
        check(vec![remove()], true);
        check(vec![Effect::Start { run }], false);
        check(vec![Effect::Hand { run }], false);
        check(vec![Effect::Raised], false);
        check(vec![Effect::NoTurn { wait: WaitId(1) }], false);
        let resolve = Effect::Resolve { wait: WaitId(1), ended: vec![], pending: vec![] };
        check(vec![remove(), resolve], false);
    }
}
