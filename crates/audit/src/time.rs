//! Time, counted again: how long runs had a slot, and how long the tree has lived.

use std::time::Duration;

use offshoot_model::{Reason, Rules, Timestamp};

use crate::run::{Run, SlotState};

/// A supervisor that has much to do is late by moments; what is late by this much was not stopped at all.
fn slack(limit: Duration) -> Duration {
    Duration::from_secs(60).max(limit / 10)
}

/// The rounding error of a time that is written down by the second: it may be a second short.
const ROUNDED: Duration = Duration::from_secs(1);

/// The time of a run since its latest start.
#[derive(Clone, Copy, Default)]
pub(crate) struct Clock {
    started: Option<Timestamp>,
    /// Since when it has a slot.
    since: Option<Timestamp>,
    /// The time for which it had one before, with the CPU time that it used while it waited.
    held: Duration,
    /// The CPU time that it used while it waited.
    worked: Duration,
}

impl Clock {
    /// Starts the clock; nothing of an earlier attempt counts.
    pub(crate) fn start(&mut self, at: Timestamp) {
        *self = Self { started: Some(at), since: Some(at), ..Self::default() };
    }

    /// Pauses the clock: the run lends its slot.
    pub(crate) fn pause(&mut self, at: Timestamp) {
        self.held = self.held(at);
        self.since = None;
    }

    /// Goes on: the run has its slot back.
    pub(crate) fn go_on(&mut self, at: Timestamp) {
        self.since = Some(at);
    }

    /// Nothing of it runs.
    pub(crate) fn stop(&mut self) {
        *self = Self::default();
    }

    fn held(&self, at: Timestamp) -> Duration {
        self.held.saturating_add(self.since.map_or(Duration::ZERO, |since| at.since(since)))
    }
}

/// A run has worked while it waited, which counts against its time. Answers whether that is over.
pub(crate) fn has_worked(run: &mut Run, cpu_ms: u64, at: Timestamp) -> bool {
    let (limit, worked) = (run.admitted.grant.run_timeout_seconds, Duration::from_millis(cpu_ms));
    run.clock.held = run.clock.held.saturating_add(worked);
    run.clock.worked = run.clock.worked.saturating_add(worked);
    limit > 0 && run.clock.held(at) >= Duration::from_secs(limit)
}

/// In words how a run went on after its time without being asked to stop.
pub(crate) fn overtime(run: &Run, at: Timestamp) -> Option<String> {
    let limit = Duration::from_secs(run.admitted.grant.run_timeout_seconds);
    let held = run.clock.held(at);
    let is_over = !limit.is_zero() && held > limit + slack(limit);
    (is_over && run.stopping.is_none() && run.state != SlotState::Ended)
        .then(|| format!("had run for {} seconds, and {} it may", held.as_secs(), limit.as_secs()))
}

/// In words why a run was not to be stopped for its time; without a moment where the clock cannot tell it.
pub(crate) fn too_early(run: &Run, reason: &Reason, at: Option<Timestamp>) -> Option<String> {
    let grant = &run.admitted.grant;
    let (seconds, granted, what) = match reason {
        Reason::Timeout { seconds } => (*seconds, grant.run_timeout_seconds, "time"),
        Reason::Idle { seconds } => (*seconds, grant.idle_timeout_seconds, "silence"),
        _ => return None,
    };
    if seconds != granted {
        return Some(format!(
            "was stopped after {seconds} seconds of {what}, and {granted} it has"
        ));
    }
    // A later attempt has what an earlier one has left.
    let since = run.clock.started.filter(|_| run.attempt == 1)?;
    let passed = at?.since(since).saturating_add(run.clock.worked);
    (passed + ROUNDED < Duration::from_secs(seconds)).then(|| {
        format!("was stopped after {} seconds, and has {seconds} of {what}", passed.as_secs())
    })
}

/// In words how a run has more time than its parent may give: than the parent's rules say, and than the parent has itself where
/// the requester of the parent has given it less than its own rules. `granted` is the time of the run, and that of its parent.
pub(crate) fn longer(
    (granted, parent): (u64, u64),
    rules: Option<&Rules>,
    parent_rules: Option<&Rules>,
) -> Option<String> {
    let is_longer = |seconds: u64, than: u64| than > 0 && (seconds == 0 || seconds > than);
    let most = rules?.run_timeout_seconds?;
    let parents_most = parent_rules?.run_timeout_seconds?;
    let (most, whose) = match is_longer(parents_most, parent) && is_longer(most, parent) {
        true => (parent, "its parent was given"),
        false => (most, "the rules of its parent say"),
    };
    let said = |seconds: u64| match seconds {
        0 => "without end".to_owned(),
        seconds => format!("for {seconds} seconds"),
    };
    is_longer(granted, most).then(|| format!("may run {}, and {whose} {most}", said(granted)))
}

/// The time of a tree: from its first slot, or from its admission where its root never has one. Time without a supervisor
/// does not count.
#[derive(Default)]
pub(crate) struct Life {
    begun: bool,
    /// The age of the tree.
    pub(crate) age: Duration,
    last: Timestamp,
    /// Nothing counts before this time.
    rests_until: Timestamp,
}

impl Life {
    /// Moves on to the next event.
    pub(crate) fn tick(&mut self, at: Timestamp, is_reopening: bool) {
        if self.begun && !is_reopening {
            self.age += at.since(self.last.max(self.rests_until));
        }
        self.last = at;
    }

    /// Nothing counts before this time, whatever was said before; everything where there is none.
    pub(crate) fn rest(&mut self, until: Option<Timestamp>) {
        self.rests_until = until.unwrap_or(Timestamp::EPOCH);
    }

    /// From here it counts.
    pub(crate) fn begin(&mut self) {
        self.begun = true;
    }

    /// In words how something begins after a deadline of which the time began at this age.
    pub(crate) fn overtime(&self, since: Duration, deadline: Option<u64>) -> Option<String> {
        let deadline = Duration::from_secs(deadline?);
        let lived = self.age.saturating_sub(since);
        let is_late = lived > deadline + slack(deadline);
        is_late.then(|| {
            let (lived, deadline) = (lived.as_secs(), deadline.as_secs());
            let of = if since.is_zero() { "the tree" } else { "what is below an agent" };
            format!("begins after {lived} seconds of {of}, which has {deadline}")
        })
    }
}
