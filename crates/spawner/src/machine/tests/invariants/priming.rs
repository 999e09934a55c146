//! Invariants of prompts that several runs send first: as long as some wait for the first answer of one, none of them starts.

use std::collections::{BTreeMap, BTreeSet};

use offshoot_model::{RunId, Timestamp};
use offshoot_policy::prefix::Prefixes;

use super::Ledger;

/// The runs for whose first answer others wait.
#[derive(Default)]
pub(super) struct Primings {
    /// The runs, each since when.
    awaited: BTreeMap<RunId, Timestamp>,
    /// The runs that have gone over to another runtime, and share their prompt with no other.
    left_out: BTreeSet<RunId>,
}

impl Primings {
    /// Takes in that another supervisor holds the tree.
    pub(super) fn clear(&mut self) {
        self.awaited.clear();
    }

    /// Takes in that a run has gone over to another runtime.
    pub(super) fn leave_out(&mut self, run: RunId) {
        self.left_out.insert(run);
    }
}

impl Ledger {
    pub(super) fn priming(&mut self, first: RunId, at: Timestamp) {
        assert!(self.limits.long_prompts, "runs share a prompt");
        assert!(self.started.contains(&first), "it has started");
        assert!(!self.ended.contains_key(&first), "it is not over");
        assert_eq!(self.primings.awaited.insert(first, at), None, "told once");
        assert!(!self.in_line.is_empty(), "a run waits for it");
    }

    pub(super) fn primed(&mut self, first: RunId, at: Timestamp) {
        let since = self.primings.awaited.remove(&first).expect("it was told");
        let time = at.since(since);
        assert!(
            !self.clock_is_true || time <= Prefixes::PATIENCE * 2,
            "no longer than that: {time:?}"
        );
        *self.seen.entry("waited for half a minute").or_default() +=
            u32::from(time >= Prefixes::PATIENCE);
    }

    /// Checks that no run starts while one with the same prompt is waited for.
    pub(super) fn assert_prompt_is_answered(&self, run: RunId) {
        let of = |run: &RunId| {
            let admitted = &self.admitted[run];
            (admitted.runtime.clone(), admitted.agent.clone())
        };
        let is_same = |first: &RunId| of(first) == of(&run);
        if !self.primings.left_out.contains(&run) {
            assert!(
                !self.primings.awaited.keys().any(is_same),
                "one with its prompt has no answer"
            );
        }
    }
}
