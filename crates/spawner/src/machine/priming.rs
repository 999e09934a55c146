//! Runs that send the same long prompt first: one of them begins, and the others when its service has begun to answer it. Then they read the
//! prompt from the cache of the service.
//!
//! ```text
//!   in line, a slot is free ──▶ does one with the same prompt wait for its first answer? ──no──▶ starts
//!                                  └ yes: waits beside the queue ──the answer, the end of that run, 30 s──▶ back to its place
//! ```

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use offshoot_config::PrimeCache;
use offshoot_model::{AgentId, EventKind, RunId, SpawnRequest, Timestamp};
use offshoot_policy::RuntimeFacts;
use offshoot_policy::prefix::{Prefix, PrefixId, Priming, in_front};

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
        agent: &AgentId,
        request: &SpawnRequest,
        facts: &RuntimeFacts,
    ) -> Option<PrefixId> {
        let own = facts.own_prompt?;
        let (parent, id) = (self.runs.live(parent)?, self.id(parent));
        if parent.terms.prime_cache() == PrimeCache::Off || request.no_queue {
            return None;
        }
        let own = (own, facts.inline_bytes);
        let (context, tokens) = in_front(&self.config, agent, own, &request.context);
        let tools = request.tools.as_ref().map(|tools| format!("{tools:?}").into());
        let prefix = Prefix {
            runtime: Arc::clone(&facts.name),
            agent: agent.clone(),
            model: request.model.as_deref().map(Into::into),
            tools,
            // It is named in front of the values.
            parent: Some(id).filter(|_| !context.is_empty()),
            context,
        };
        self.books.prefixes.add(prefix, tokens)
    }

    /// The owner of a piece that was read back says again what it is asked: the record of a piece does not say it.
    pub(super) fn asked_again(
        &mut self,
        run: RunIndex,
        request: &SpawnRequest,
        facts: &RuntimeFacts,
    ) {
        let entry = &self.runs[run];
        let (Some(parent), Some(live)) = (entry.parent, entry.live()) else { return };
        // It may be on another runtime by now.
        if live.account.as_deref() != Some(&*facts.account) {
            return;
        }
        let agent = entry.agent.clone();
        let prefix = self.prefix_of(parent, &agent, request, facts);
        if let Some(live) = self.runs.live_mut(run) {
            live.prefix = prefix;
        }
    }

    /// Returns true if a run that was taken from the queue may not start yet, because another one with the same prompt has no answer. It
    /// waits beside the queue then.
    pub(super) fn waits_for_first_answer(&mut self, run: RunIndex, turn: Turn) -> bool {
        let Some(prefix) = self.prefix(run) else { return false };
        let Some(until) = self.books.prefixes.waits_until(prefix, self.now) else { return false };
        self.awaits(prefix, until);
        let depth = self.runs[run].depth();
        self.unprimed.entry(prefix).or_default().insert((Reverse(depth), turn), run);
        true
    }

    /// A run starts: it is the one that goes first, where its prompt is not known to be in a cache.
    pub(super) fn goes_first(&mut self, run: RunIndex) {
        let Some(prefix) = self.prefix(run) else { return };
        let until = self.books.prefixes.starts(prefix, self.id(run), self.now);
        let mut others = self.unprimed.get(&prefix).into_iter().flat_map(BTreeMap::values);
        // They have waited for one before it.
        if let Some(until) = until.filter(|_| others.any(|run| self.is_in_line(*run))) {
            self.awaits(prefix, until);
        }
    }

    /// A run waits for the first answer to this prompt, until this moment.
    fn awaits(&mut self, prefix: PrefixId, until: Timestamp) {
        if let Some(Priming { run, tokens }) = self.books.prefixes.awaited(prefix) {
            self.record_of_tree(EventKind::Priming { run, tokens });
            self.timers.arm(until, Due::FirstAnswer);
        }
    }

    /// The service of a run answers it, and has read its prompt.
    pub(super) fn has_read_prompt(&mut self, run: RunIndex) {
        let prefix = self.prefix(run);
        let first = prefix.and_then(|prefix| self.books.prefixes.answered(prefix, self.now));
        self.primed(first);
    }

    /// An attempt of a run is over, and brings no first answer any more.
    pub(super) fn is_no_longer_first(&mut self, run: RunIndex) {
        let id = self.id(run);
        let first = self.prefix(run).and_then(|prefix| self.books.prefixes.over(prefix, id));
        self.primed(first);
    }

    /// Runs may have waited for a first answer for too long.
    pub(super) fn first_answers_run_out(&mut self) {
        for first in self.books.prefixes.run_out(self.now) {
            self.primed(Some(first));
        }
    }

    /// Puts the runs that wait for nothing any more back into the queue: as many as have room, and one where that goes first.
    pub(super) fn reconsider_first_answers(&mut self) {
        if self.unprimed.is_empty() || !self.slots.any_free() {
            return;
        }
        let room = self.slots.room() as usize;
        let mut lines = std::mem::take(&mut self.unprimed);
        lines.retain(|prefix, line| {
            let prefixes = &self.books.prefixes;
            if prefixes.waits_until(*prefix, self.now).is_some() {
                return true;
            }
            let room = if prefixes.is_warm(*prefix, self.now) { room } else { 1 };
            self.call_back(line, room);
            !line.is_empty()
        });
        self.unprimed = lines;
    }

    fn prefix(&self, run: RunIndex) -> Option<PrefixId> {
        self.runs.live(run)?.prefix
    }

    fn primed(&mut self, first: Option<RunId>) {
        if let Some(run) = first {
            self.record_of_tree(EventKind::Primed { run });
        }
    }
}
