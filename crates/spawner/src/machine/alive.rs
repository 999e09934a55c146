//! The word of a supervisor that it lives, while its runs work without a word of their own.
//!
//! A supervisor that is killed leaves no event of its end: up to when its runs have worked is the time of its last event. Where runs
//! hold slots and nothing else is recorded, there is one of these after ten seconds, and then after as long again as it has been
//! quiet, a minute at most.

use std::time::Duration;

use offshoot_model::{EventKind, Timestamp};

use super::Machine;
use super::run::RunIndex;
use super::timer::Due;

/// The time after another event until the first of these.
const SOON: Duration = Duration::from_secs(10);
/// The longest time between two of them.
const LATEST: Duration = Duration::from_secs(60);

/// The times of the last events.
#[derive(Debug, Default)]
pub(super) struct LastEvents {
    any: Timestamp,
    /// The last one that says something else.
    other: Timestamp,
    is_armed: bool,
}

impl LastEvents {
    /// Takes in that an event is recorded.
    pub(super) fn see(&mut self, kind: &EventKind, at: Timestamp) {
        self.any = at;
        if !matches!(kind, EventKind::Alive) {
            self.other = at;
        }
    }

    /// The time of the next of these events, if nothing else is recorded.
    fn next(&self) -> Timestamp {
        self.any.plus(self.any.since(self.other).clamp(SOON, LATEST))
    }
}

impl Machine {
    /// Sets the timer, where a run holds a slot.
    pub(super) fn watch_for_silence(&mut self) {
        if !self.last_events.is_armed && self.slots.live() > 0 {
            self.last_events.is_armed = true;
            self.timers.arm(self.now.plus(SOON), Due::Alive);
        }
    }

    /// The timer has rung: where nothing was recorded for so long although runs work, that goes on record.
    pub(super) fn may_say_alive(&mut self) {
        self.last_events.is_armed = false;
        if self.slots.live() == 0 || !self.is_open() {
            return;
        }
        if self.last_events.next() <= self.now {
            self.record(RunIndex::ROOT, EventKind::Alive);
        }
        self.last_events.is_armed = true;
        self.timers.arm(self.last_events.next().max(self.now), Due::Alive);
    }
}
