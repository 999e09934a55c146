//! Deadlines: how long the whole tree may take, and what is below one agent, queueing included.
//!
//! What is below an agent begins with its first child. Time without a supervisor does not count, nor does the time until the
//! reset of a quota where `quota.deadlineCountsParked` is false.

use std::collections::BTreeMap;
use std::time::Duration;

use offshoot_model::{Reason, Timestamp};

use super::Machine;
use super::run::RunIndex;
use super::timer::Due;

/// For how long a tree has been held by a supervisor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Age {
    before: Duration,
    since: Timestamp,
    /// Nothing is counted before this moment.
    rests_until: Timestamp,
}

impl Age {
    /// A supervisor takes the tree; the last one held it until `until`.
    pub(super) fn go_on(&mut self, until: Timestamp, now: Timestamp) {
        *self = Self { before: self.at(until), since: now, ..*self };
    }

    /// Counts nothing before this moment, whatever was said before.
    pub(super) fn rest(&mut self, now: Timestamp, until: Timestamp) {
        *self = Self { before: self.at(now), since: now, rests_until: until };
    }

    fn at(&self, now: Timestamp) -> Duration {
        self.before + now.since(self.since.max(self.rests_until))
    }
}

/// The deadlines of one tree, by the run whose subtree each bounds. That of the root bounds the root as well.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Deadlines {
    pub(super) age: Age,
    ends: BTreeMap<RunIndex, End>,
}

impl Deadlines {
    /// True if the time of a run is over at this moment.
    pub(super) fn has_passed(&self, run: RunIndex, now: Timestamp) -> bool {
        self.ends.get(&run).is_some_and(|end| end.age <= self.age.at(now))
    }
}

#[derive(Debug, PartialEq, Eq)]
struct End {
    /// The age of the tree at this end.
    age: Duration,
    has_passed: bool,
}

impl Machine {
    /// Gives the runs below a run this many seconds from now on, and the whole tree where the run is its root.
    pub(super) fn set_deadline(&mut self, run: RunIndex, seconds: u64) {
        let time = Duration::from_secs(seconds);
        let age = self.deadlines.age.at(self.now) + time;
        self.deadlines.ends.insert(run, End { age, has_passed: false });
        self.timers.arm(self.now.plus(time), Due::Deadline(run));
    }

    /// A deadline may have passed: everything below the run is stopped. It is looked at again if not.
    pub(super) fn deadline(&mut self, run: RunIndex) {
        let age = self.deadlines.age.at(self.now);
        let Some(end) = self.deadlines.ends.get_mut(&run) else { return };
        let left = end.age.saturating_sub(age);
        if !left.is_zero() {
            return self.timers.arm(self.now.plus(left), Due::Deadline(run));
        }
        end.has_passed = true;
        if run == RunIndex::ROOT {
            return self.stop_for(&Reason::Deadline);
        }
        for run in self.subtree(run).into_iter().skip(1).rev() {
            self.stop(run, Reason::Deadline);
        }
    }

    /// Each deadline is looked at: a new supervisor holds the tree.
    pub(super) fn look_at_deadlines(&mut self) {
        let runs: Vec<RunIndex> = self.deadlines.ends.keys().copied().collect();
        for run in runs {
            self.deadline(run);
        }
    }

    /// True if a run may have no child because the time for that is over.
    pub(super) fn is_out_of_time(&self, run: RunIndex) -> bool {
        let passed = |run| self.deadlines.ends.get(&run).is_some_and(|end| end.has_passed);
        std::iter::once(run).chain(self.runs.above(run)).any(passed)
    }
}
