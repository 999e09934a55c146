//! Reports of running agents, and the tools that they use: kept, as long as they come no faster than a record should grow.

use std::sync::Arc;
use std::time::Duration;

use offshoot_config::OnRepeat;
use offshoot_model::{EventKind, Reason, Timestamp, ToolUse};

use super::run::RunIndex;
use super::streak::Streak;
use super::{Effect, Machine};

/// A run may report, or use a tool, this often for as long as it likes.
const EVERY: Duration = Duration::from_secs(1);

/// The number of reports beyond that rate that may come at once.
const AT_ONCE: u32 = 100;

/// The number of reports of one run that may still be kept. Stands for a bucket of [`AT_ONCE`] that fills by one in each
/// [`EVERY`], by the moment at which it is full again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Allowance {
    full_at: Timestamp,
}

impl Allowance {
    /// True if one more report may be kept at this moment.
    pub(super) fn has_room(&self, now: Timestamp) -> bool {
        self.after(now).since(now) <= EVERY * AT_ONCE
    }

    /// Counts a report that is kept.
    pub(super) fn count(&mut self, now: Timestamp) {
        self.full_at = self.after(now);
    }

    fn after(&self, now: Timestamp) -> Timestamp {
        self.full_at.max(now).plus(EVERY)
    }
}

impl Machine {
    /// A run says how it goes. One of which no attempt runs says nothing.
    pub(super) fn reported(&mut self, run: RunIndex, text: Arc<str>) {
        if self.runs.running(run).is_none() {
            return;
        }
        self.gives_sign(run);
        if self.runs.live(run).is_some_and(|live| live.reports.has_room(self.now)) {
            self.record(run, EventKind::Reported { text });
        } else {
            self.show(run, text);
        }
    }

    /// The agent of a living run has used a tool.
    pub(super) fn tool_used(&mut self, run: RunIndex, used: ToolUse) {
        let Some(live) = self.runs.live_mut(run) else { return };
        let repeated = Streak::of(&mut live.streak, live.attempt, &used);
        let is_over = live.under.on_repeat() == OnRepeat::Stop;
        self.record_or_show(run, EventKind::ToolUsed(Box::new(used)));
        let Some((tool, times)) = repeated else { return };
        self.record(run, EventKind::Repeats { tool: Arc::clone(&tool), times });
        if is_over {
            self.stop(run, Reason::Repeated { tool: tool.to_string(), times });
        }
    }

    /// Records what a runtime tells as often as it likes, up to a rate; what is more is shown as progress.
    pub(super) fn record_or_show(&mut self, run: RunIndex, kind: EventKind) {
        let has_room = self.runs.live(run).is_some_and(|live| live.tool_uses.has_room(self.now));
        match (has_room, kind) {
            (true, kind) => drop(self.record(run, kind)),
            (false, EventKind::ToolUsed(used)) => self.show(run, used.line().into()),
            (false, kind) => self.show(run, kind.text().into()),
        }
    }

    /// Shows a line of progress, which is not kept.
    pub(super) fn show(&mut self, run: RunIndex, text: Arc<str>) {
        let event = self.event(run, EventKind::Progress { text });
        self.out.push(Effect::Show(Arc::new(event)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_report_is_always_kept_and_a_loop_is_not() {
        let is_kept = |allowance: &mut Allowance, second: u64| {
            let now = Timestamp::from_micros(second * 1_000_000);
            let has_room = allowance.has_room(now);
            if has_room {
                allowance.count(now);
            }
            has_room
        };
        let mut steady = Allowance::default();
        assert!((1000..2000).all(|second| is_kept(&mut steady, second)));
        let mut loops = Allowance::default();
        let kept =
            |loops: &mut Allowance, second| (0..1000).filter(|_| is_kept(loops, second)).count();
        assert_eq!(kept(&mut loops, 1000), 100);
        assert_eq!(kept(&mut loops, 1000), 0);
        assert_eq!(kept(&mut loops, 1007), 7);
        assert_eq!(kept(&mut loops, 900), 0, "a clock that was set back gives none");
        assert_eq!(kept(&mut loops, 9000), 100);
    }
}
