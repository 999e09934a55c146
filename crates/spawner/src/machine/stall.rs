//! Parents that are blocked on their children without saying so.
//!
//! A parent that polls instead of waiting keeps its slot, and its children stand in line for that very slot. Where
//! every holder of a full part of the tree is above a run that stands in line there, and none has given a sign of life
//! for a while, the one that has been silent longest lends its slot as if it waited. Its next sign of life takes a slot
//! again, in debt like a wait that has timed out. Its clock runs on: it was not seen to wait.
//!
//! Slots of accounts are shared with other trees, and what the children of a silent parent wait for may be held by another tree that waits for
//! what this parent holds. So while runs wait for a slot of any account, each silent parent below which no run holds a slot is such a holder,
//! whatever the others do.

use std::collections::HashSet;
use std::time::Duration;

use offshoot_model::{EventKind, Timestamp};

use super::Machine;
use super::run::{RunIndex, SlotState};
use super::slots::Part;
use super::timer::Due;

/// The time for which all holders must have been silent.
const SILENCE: Duration = Duration::from_secs(30);

/// Holders of a part of the tree that are all parents.
struct Silence {
    part: Part,
    /// The one that has been silent longest.
    longest: RunIndex,
    /// The latest sign of life of all holders.
    since: Timestamp,
}

impl Machine {
    /// Sets the time of the next search for a stall, where one may come: all slots are taken, by parents only, and a run is
    /// queued. A leaf among the holders ends the search at once, which is the ordinary case.
    pub(super) fn watch_for_stall(&mut self) {
        let none_waits = self.queue.is_empty() && self.aside().next().is_none();
        if none_waits && self.account_slots.returning() == 0 {
            if let Some(at) = self.stall_looked_for.take() {
                self.timers.disarm(at, Due::Stall);
            }
            return;
        }
        if self.stall_looked_for.is_some() || self.paused || self.held {
            return;
        }
        let silences = self.silences().map(|silence| silence.since);
        let parents = self.parents_beside_full_accounts().map(|(_, since)| since);
        if let Some(since) = silences.chain(parents).min() {
            let at = since.plus(SILENCE);
            let at = if at > self.now { at } else { self.now.plus(SILENCE) };
            self.stall_looked_for = Some(at);
            self.timers.arm(at, Due::Stall);
        }
    }

    /// The moment at which all may have been silent for long enough.
    pub(super) fn look_for_stall(&mut self) {
        self.stall_looked_for = None;
        let stalls = self.silences().filter(|silence| silence.since.plus(SILENCE) <= self.now);
        let stalls: Vec<Silence> = stalls.collect();
        let blocked = self.blocked_parents();
        for Silence { part, longest, .. } in stalls {
            // One that was lent before may have been a slot of this part as well.
            if !self.slots.holders(part).contains(&longest) {
                continue;
            }
            let is_queued = |run: &RunIndex| {
                self.is_in_line(*run) && self.slots.is_within(self.runs[*run].position.part, part)
            };
            let in_line = self.queue.entries().chain(self.aside());
            let in_line: Vec<RunIndex> = in_line.filter(is_queued).collect();
            let above = self.above_any(&in_line);
            if !self.slots.holders(part).iter().all(|run| above.contains(run)) {
                continue;
            }
            // The deepest is served next, so it is for its sake.
            if let Some(run) = in_line.into_iter().max_by_key(|run| self.runs[*run].depth()) {
                self.record(run, EventKind::StallLent);
                self.lend_in_silence(longest);
            }
        }
        for (parent, waits) in blocked {
            // Its slot may have been lent for the sake of a full part just now.
            if self.slots.holders(Part::TREE).contains(&parent) {
                self.record(waits, EventKind::StallLent);
                self.lend_in_silence(parent);
            }
        }
    }

    /// Returns the parents that have been silent for long enough and hold a slot, below which no run holds one and some run waits for a slot of
    /// its account, each with that run.
    fn blocked_parents(&self) -> Vec<(RunIndex, RunIndex)> {
        let is_long = |(_, since): &(RunIndex, Timestamp)| since.plus(SILENCE) <= self.now;
        let mut parents = self.parents_beside_full_accounts().filter(is_long).peekable();
        if parents.peek().is_none() {
            return Vec::new();
        }
        let above = self.above_any(self.slots.holders(Part::TREE));
        let idle = parents.map(|(run, _)| run).filter(|run| !above.contains(run));
        idle.filter_map(|run| Some((run, self.waits_for_account_below(run)?))).collect()
    }

    /// Returns the runs that are above one of these.
    fn above_any<'a>(&self, runs: impl IntoIterator<Item = &'a RunIndex>) -> HashSet<RunIndex> {
        runs.into_iter().flat_map(|run| self.runs.above(*run)).collect()
    }

    /// Returns the parents that hold a slot, with their last signs of life, while some run waits for a slot of its account.
    fn parents_beside_full_accounts(&self) -> impl Iterator<Item = (RunIndex, Timestamp)> {
        let holders = self.slots.holders(Part::TREE).iter().copied();
        let holders = holders.filter(|_| self.account_slots.is_any_full());
        holders.filter_map(|run| {
            let live = self.runs.live(run)?;
            (!live.live_children.is_empty()).then(|| (run, live.clock.last_sign()))
        })
    }

    /// Returns a run below this one that waits for a slot of its account.
    fn waits_for_account_below(&self, run: RunIndex) -> Option<RunIndex> {
        let mut next = vec![run];
        while let Some(run) = next.pop() {
            if self.account_slots.is_in_line(run) {
                return Some(run);
            }
            next.extend(self.runs.live(run).into_iter().flat_map(|live| &live.live_children));
        }
        None
    }

    /// A run whose slot was lent in its silence has spoken: it goes on, in debt where no slot is free.
    pub(super) fn wake(&mut self, run: RunIndex) {
        let live = self.runs.live(run);
        if live.is_some_and(|live| live.phase == SlotState::Lent && live.waits.is_empty()) {
            self.let_clock_rest(run);
            self.hold_in_debt(run);
        }
    }

    /// One for each part that is full, in which runs stand in line, and of which each holder has a child that lives.
    fn silences(&self) -> impl Iterator<Item = Silence> {
        let waits = |part| {
            let is_within =
                |run: RunIndex| self.slots.is_within(self.runs[run].position.part, part);
            self.queue.has_new(part) || self.aside().any(is_within)
        };
        // A leaf among the holders ends the search at once: asked before the lines, which may be long.
        let silences = self.full_parts().filter_map(|part| self.silence(part));
        silences.filter(move |silence| waits(silence.part))
    }

    /// The parts in which nothing can start. Where the host is full that is the tree, whatever its own cap says.
    fn full_parts(&self) -> impl Iterator<Item = Part> {
        let is_full = self.is_host_full() && self.slots.any_free();
        self.slots.full().chain(is_full.then_some(Part::TREE))
    }

    fn silence(&self, part: Part) -> Option<Silence> {
        let mut found: Option<(Timestamp, Silence)> = None;
        // The youngest first: those are rarely parents.
        for &run in self.slots.holders(part).iter().rev() {
            let live = self.runs.live(run).filter(|live| !live.live_children.is_empty())?;
            let sign = live.clock.last_sign();
            let (earliest, silence) =
                found.get_or_insert((sign, Silence { part, longest: run, since: sign }));
            silence.since = silence.since.max(sign);
            if sign < *earliest {
                (*earliest, silence.longest) = (sign, run);
            }
        }
        found.map(|(_, silence)| silence)
    }
}
