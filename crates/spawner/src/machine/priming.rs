//! Runs that send the same long prompt first: one of them begins, and the others when its service has begun to answer it. Then they read the
//! prompt from the cache of the service.
//!
//! ```text
//!   in line, a slot is free ──▶ does one with the same prompt wait for its first answer? ──no──▶ starts
//!                                  └ yes: waits beside the queue ──the answer, the end of that run, 30 s──▶ back to its place
//! ```

use std::cmp::Reverse;
use std::sync::Arc;

use offshoot_config::PrimeCache;
use offshoot_model::{EventKind, RunId, SpawnRequest};
use offshoot_policy::prefix::{Prefix, PrefixId, in_front};
use offshoot_policy::{Admission, RuntimeFacts};

use super::Machine;
use super::queue::Turn;
use super::run::RunIndex;
use super::timer::Due;

impl Machine {
    /// Returns the prompt that a run sends first, where others may wait for the first answer to it. One that is asked for with `no_queue`
    /// waits for nothing.
    pub(super) fn prefix_of(
        &mut self,
        parent: RunIndex,
        admission: &Admission,
        request: &SpawnRequest,
        facts: &RuntimeFacts,
    ) -> Option<PrefixId> {
        let own = facts.own_prompt?;
        let parent = self.runs[parent.get()].live();
        let under = parent.map_or(&admission.terms, |parent| &parent.terms);
        if under.prime_cache() == PrimeCache::Off || request.no_queue {
            return None;
        }
        let agent = &admission.agent;
        let own = (own, facts.inline_bytes);
        let (context, tokens) = in_front(&self.config, agent, own, &request.context);
        let prefix = Prefix {
            runtime: Arc::clone(&facts.name),
            agent: agent.clone(),
            model: request.model.as_deref().map(Into::into),
            context,
        };
        self.books.prefixes.add(prefix, tokens)
    }

    /// Returns true if a run that was taken from the queue may not start yet, because another one with the same prompt has no answer. It
    /// waits beside the queue then.
    pub(super) fn waits_for_first_answer(&mut self, run: RunIndex, turn: Turn) -> bool {
        let prefix = self.runs[run.get()].live().and_then(|live| live.prefix);
        let Some(prefix) = prefix else { return false };
        let Some(until) = self.books.prefixes.waits_until(prefix, self.now) else { return false };
        if let Some(priming) = self.books.prefixes.awaited(prefix) {
            let (run, tokens) = (priming.run, priming.tokens);
            self.say_of_priming(EventKind::Priming { run, tokens });
            self.timers.arm(until, Due::FirstAnswer);
        }
        let depth = self.runs[run.get()].depth();
        self.unprimed.entry(prefix).or_default().insert((Reverse(depth), turn), run);
        true
    }

    /// A run starts: it is the one that goes first, where its prompt is not known to be in a cache.
    pub(super) fn goes_first(&mut self, run: RunIndex) {
        let entry = &self.runs[run.get()];
        if let Some(prefix) = entry.live().and_then(|live| live.prefix) {
            self.books.prefixes.starts(prefix, entry.id, self.now);
        }
    }

    /// The service of a run answers it, and has read its prompt.
    pub(super) fn has_read_prompt(&mut self, run: RunIndex) {
        let prefix = self.runs[run.get()].live().and_then(|live| live.prefix);
        let first = prefix.and_then(|prefix| self.books.prefixes.answered(prefix, self.now));
        self.primed(first);
    }

    /// An attempt of a run is over, and brings no first answer any more.
    pub(super) fn is_no_longer_first(&mut self, run: RunIndex) {
        let entry = &self.runs[run.get()];
        let prefix = entry.live().and_then(|live| live.prefix);
        let first = prefix.and_then(|prefix| self.books.prefixes.over(prefix, entry.id));
        self.primed(first);
    }

    /// Runs may have waited for a first answer for too long.
    pub(super) fn first_answers_run_out(&mut self) {
        for first in self.books.prefixes.run_out(self.now) {
            self.primed(Some(first));
        }
    }

    /// Puts the runs that wait for nothing any more back into the queue.
    pub(super) fn reconsider_first_answers(&mut self) {
        if self.unprimed.is_empty() {
            return;
        }
        let mut lines = std::mem::take(&mut self.unprimed);
        lines.retain(|prefix, line| {
            let waits = self.books.prefixes.waits_until(*prefix, self.now).is_some();
            if !waits {
                let back = std::mem::take(line).into_iter().rev();
                back.filter(|(_, run)| self.is_in_line(*run))
                    .collect::<Vec<_>>()
                    .into_iter()
                    .for_each(|((_, turn), run)| self.put_back_in_turn(run, turn));
            }
            waits
        });
        self.unprimed = lines;
    }

    fn primed(&mut self, first: Option<RunId>) {
        if let Some(run) = first {
            self.say_of_priming(EventKind::Primed { run });
        }
    }

    fn say_of_priming(&mut self, event: EventKind) {
        // Of a tree whose root is over nothing more starts.
        if self.runs[RunIndex::ROOT.get()].live().is_some() {
            self.record(RunIndex::ROOT, event);
        }
    }
}
