//! Parents that are blocked on their children without saying so.
//!
//! A parent that polls instead of waiting keeps its slot, and its children stand in line for that very slot. Where
//! every holder is above somebody who stands in line, and none has given a sign of life for a while, the one that has
//! been silent longest lends its slot as if it waited. Its next sign of life takes a slot again, in debt like a wait
//! that has timed out. Its clock runs on: nobody has seen it wait.

use std::collections::HashSet;
use std::time::Duration;

use offshoot_model::{EventKind, RunStatus, Timestamp};

use super::run::{Phase, RunIndex};
use super::timer::Due;
use super::{Effect, Machine};

/// How long all holders must have been silent.
const SILENCE: Duration = Duration::from_secs(30);

/// Holders that are all parents.
struct Silence {
    /// The one that has been silent longest.
    longest: RunIndex,
    /// When the last of them gave a sign of life.
    since: Timestamp,
}

impl Machine {
    /// Sees to it that a stall is looked for, where one may come: all slots are taken, by parents only, and somebody
    /// stands in line. A leaf among the holders ends the search at once, which is the ordinary case.
    pub(super) fn watch_for_stall(&mut self, now: Timestamp) {
        if self.queue.is_empty() {
            if let Some(at) = self.stall_looked_for.take() {
                self.timers.disarm(at, Due::Stall);
            }
            return;
        }
        if self.stall_looked_for.is_some() || self.paused || self.held {
            return;
        }
        if let Some(silence) = self.silence() {
            let at = silence.since.plus(SILENCE);
            let at = if at > now { at } else { now.plus(SILENCE) };
            self.stall_looked_for = Some(at);
            self.timers.arm(at, Due::Stall);
        }
    }

    /// The moment at which all may have been silent for long enough.
    pub(super) fn look_for_stall(&mut self, now: Timestamp, out: &mut Vec<Effect>) {
        self.stall_looked_for = None;
        let Some(Silence { longest, since }) = self.silence() else { return };
        if since.plus(SILENCE) > now {
            return;
        }
        let is_queued = |run: &RunIndex| self.runs[run.get()].status() == RunStatus::Queued;
        let in_line: Vec<RunIndex> = self.queue.entries().filter(is_queued).collect();
        let above: HashSet<RunIndex> =
            in_line.iter().flat_map(|&run| self.ancestors(run)).collect();
        if !self.holders.iter().all(|run| above.contains(run)) {
            return;
        }
        // The deepest is served next, so it is for its sake.
        if let Some(run) = in_line.into_iter().max_by_key(|run| self.runs[run.get()].depth) {
            self.record(now, run, EventKind::StallLent, out);
            self.lend_in_silence(now, longest, out);
        }
    }

    /// A run whose slot was lent in its silence has spoken: it goes on, in debt where no slot is free.
    pub(super) fn wake(&mut self, now: Timestamp, run: RunIndex, out: &mut Vec<Effect>) {
        let entry = &self.runs[run.get()];
        let depth = entry.depth;
        let was_silent =
            entry.live().is_some_and(|live| live.phase == Phase::Lent && live.waits.is_empty());
        if was_silent {
            self.let_clock_rest(now, run);
            let lease = self.slots.take_in_debt(depth);
            self.hold_again(now, run, lease, out);
        }
    }

    /// None where a slot is free, or where one of the holders has no child that lives.
    fn silence(&self) -> Option<Silence> {
        if self.slots.any_free() {
            return None;
        }
        let mut found: Option<(Timestamp, Silence)> = None;
        // The youngest first: those are rarely parents.
        for &run in self.holders.iter().rev() {
            let live = self.runs[run.get()].live().filter(|live| live.live_children > 0)?;
            let sign = live.clock.last_sign();
            let (earliest, silence) =
                found.get_or_insert((sign, Silence { longest: run, since: sign }));
            silence.since = silence.since.max(sign);
            if sign < *earliest {
                (*earliest, silence.longest) = (sign, run);
            }
        }
        found.map(|(_, silence)| silence)
    }

    fn ancestors(&self, run: RunIndex) -> impl Iterator<Item = RunIndex> {
        std::iter::successors(self.runs[run.get()].parent, |run| self.runs[run.get()].parent)
    }
}
