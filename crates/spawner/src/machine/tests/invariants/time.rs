//! Invariants of time: limits of runs, deadlines, and no time without a supervisor.

use std::time::Duration;

use offshoot_model::{Event, EventKind, Reason, RunId, Timestamp};

use super::Ledger;

/// Time that is counted.
#[derive(Clone, Copy, Default)]
pub(super) struct Stretch {
    before: Duration,
    since: Option<Timestamp>,
    /// Nothing is counted before this moment.
    rests_until: Timestamp,
}

impl Stretch {
    pub(super) fn begin(&mut self, at: Timestamp) {
        self.since = Some(at);
    }

    pub(super) fn end(&mut self, at: Timestamp) {
        self.before = self.until(at);
        self.since = None;
    }

    pub(super) fn add(&mut self, time: Duration) {
        self.before += time;
    }

    pub(super) fn until(&self, at: Timestamp) -> Duration {
        let since = self.since.map(|since| since.max(self.rests_until));
        self.before + since.map_or(Duration::ZERO, |since| at.since(since))
    }

    /// Counts nothing between these moments.
    pub(super) fn rest(&mut self, at: Timestamp, until: Timestamp) {
        self.before = self.until(at);
        self.since = self.since.map(|_| at);
        self.rests_until = until;
    }
}

impl Ledger {
    pub(super) fn count_time(&mut self, event: &Event) {
        let (run, at) = (event.run, event.at);
        match &event.kind {
            EventKind::Admitted(_) if event.seq == 1 => self.alive.begin(at),
            EventKind::Starting | EventKind::Returned => {
                self.held.entry(run).or_default().begin(at);
            }
            // An attempt whose time was over is followed by one that has all of it.
            EventKind::Resumed { after: Some(after), .. }
                if matches!(**after, Reason::Timeout { .. } | Reason::Idle { .. }) =>
            {
                self.held.remove(&run);
            }
            EventKind::Waiting | EventKind::Resumed { .. } => {
                self.held.entry(run).or_default().end(at);
            }
            EventKind::Reopened => {
                self.alive.end(self.last_at);
                self.alive.begin(at);
                self.held.values_mut().for_each(|held| held.end(self.last_at));
            }
            EventKind::BusyWaiting { cpu_ms, .. } => {
                self.held.entry(run).or_default().add(Duration::from_millis(*cpu_ms));
            }
            EventKind::Stopping { reason } => self.assert_deadline(run, at, reason),
            EventKind::Ended(ending) => {
                self.held.remove(&run);
                self.assert_deadline(run, at, &ending.reason);
            }
            _ => {}
        }
    }

    /// Checks that a run stopped by a deadline was stopped by that of the tree, or by one that an agent above it sets.
    pub(super) fn assert_deadline(&mut self, run: RunId, at: Timestamp, reason: &Reason) {
        if *reason != Reason::Deadline || !self.clock_is_true {
            return;
        }
        let of_tree = Duration::from_secs(self.limits.deadline_seconds);
        let of_tree = self.deadline.or((!of_tree.is_zero()).then_some(of_tree));
        let is_of_tree = of_tree.is_some_and(|end| self.alive.until(at) >= end);
        let is_below = self.is_out_of_time(run, at);
        assert!(is_of_tree || is_below, "time without a supervisor does not count");
        *self.seen.entry("deadline of a part").or_default() += u32::from(!is_of_tree);
    }

    /// True if an agent above this run sets a deadline for the runs below it, and that deadline has passed.
    pub(super) fn is_out_of_time(&self, run: RunId, at: Timestamp) -> bool {
        self.above(run).any(|above| {
            let seconds = self.own(above).deadline_seconds;
            let age = self.alive.until(at);
            seconds.is_some_and(|seconds| {
                age >= self.first_child[&above] + Duration::from_secs(seconds)
            })
        })
    }

    /// Checks that no run works for longer than it may, before a crash and after it together.
    pub(super) fn assert_timeouts(&self, now: Timestamp) {
        for run in self.holding.iter().filter(|run| !self.stopping.contains(run)) {
            let limit = Duration::from_secs(self.admitted[run].grant.run_timeout_seconds);
            let held = self.held[run].until(now);
            assert!(limit.is_zero() || held < limit, "it has worked for {held:?}");
        }
    }
}
