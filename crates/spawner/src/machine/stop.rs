//! Stopping: one ladder for time limits, cancels, budgets and Ctrl-C.

use std::time::Duration;

use offshoot_model::{CancelledBy, Ending, EventKind, Reason};
use offshoot_runtime::Stop;

use super::run::{RunIndex, SlotState};
use super::timer::Due;
use super::{Effect, Machine, Reach};

impl Machine {
    /// Stops a run and what is below it, leaves first, with one grace for all.
    pub(super) fn cancel(&mut self, run: RunIndex, reach: Reach, by: CancelledBy) {
        let mut doomed = match reach {
            Reach::Only => vec![run],
            Reach::Subtree | Reach::Below => self.subtree(run),
        };
        if reach == Reach::Below {
            doomed.remove(0);
        }
        if doomed.first() == Some(&RunIndex::ROOT) {
            self.cut_off();
        }
        for run in doomed.into_iter().rev() {
            self.stop(run, Reason::Cancelled { by });
        }
    }

    /// The operator's Ctrl-C: everything softly, or everything at once.
    pub(super) fn stop_all(&mut self, firm: bool) {
        self.closing = true;
        self.cut_off();
        for run in self.runs.places().rev() {
            self.stop(run, Reason::Cancelled { by: CancelledBy::Operator });
            // It holds its slot, or has lent it.
            if firm && self.runs.running(run).is_some_and(|live| live.phase != SlotState::Holder) {
                self.out.push(Effect::Stop { run, how: Stop::Firm });
            }
        }
    }

    /// A root that runs nothing itself ends. One that runs something ends by itself, and one that is over stays so:
    /// its owner may say this at any moment.
    pub(super) fn close(&mut self, ending: Ending) {
        if self.runs.root().is_some_and(|root| root.phase == SlotState::Holder) {
            self.drop_unclaimed();
            self.finished(RunIndex::ROOT, ending);
        }
    }

    /// The whole tree is to stop for this reason, leaves first.
    pub(super) fn stop_for(&mut self, reason: &Reason) {
        self.closing = true;
        self.cut_off();
        for run in self.runs.places().rev() {
            self.stop(run, reason.clone());
        }
    }

    /// A run's own time may be over; a timer that is out of date says nothing.
    pub(super) fn timeout(&mut self, run: RunIndex) {
        let Some(live) = self.runs.live(run) else { return };
        let seconds = live.grant.run_timeout_seconds;
        if live.clock.timeout_at(seconds).is_some_and(|at| at <= self.now) {
            self.stop(run, Reason::Timeout { seconds });
        }
    }

    /// A run may have been silent for too long; it is looked at again if not.
    pub(super) fn idle(&mut self, run: RunIndex) {
        let Some(live) = self.runs.live_mut(run) else { return };
        live.idle_armed = None;
        let seconds = live.grant.idle_timeout_seconds;
        match live.clock.idle_at(seconds) {
            Some(at) if at <= self.now => self.stop(run, Reason::Idle { seconds }),
            Some(at) => {
                live.idle_armed = Some(at);
                self.timers.arm(at, Due::Idle(run));
            }
            None => {}
        }
    }

    /// A root that holds pieces is about to stop. Where some of them are at work, an answer made of the others is not
    /// what was asked for.
    fn cut_off(&mut self) {
        let works =
            |run: &RunIndex| self.runs.live(*run).is_some_and(|live| live.stopping.is_none());
        let are_at_work = self.runs[RunIndex::ROOT].children.iter().any(works);
        if let Some(root) = self.runs.live_mut(RunIndex::ROOT) {
            root.cut_off |=
                are_at_work && root.phase == SlotState::Holder && root.stopping.is_none();
        }
    }

    /// Asks one run to stop. What has not started ends at once; what runs is asked, then killed by its runtime when
    /// the grace is over. The first reason stands.
    pub(super) fn stop(&mut self, run: RunIndex, reason: Reason) {
        let Some(live) = self.runs.live_mut(run) else { return };
        match live.phase {
            SlotState::Queued => self.finished(run, Ending::of(reason)),
            // A root that holds pieces ends when its owner has its answer; but it was stopped, and did not fail.
            SlotState::Holder => {
                live.stopping.get_or_insert_with(|| Box::new(reason));
            }
            SlotState::Holding { .. } | SlotState::Lent | SlotState::Returning { .. } => {
                if live.stopping.is_some() {
                    let is_own = matches!(reason, Reason::Timeout { .. } | Reason::Idle { .. });
                    live.is_last_attempt |= !is_own;
                    return;
                }
                let reason = Box::new(reason);
                let grace = Duration::from_secs(live.grant.grace_seconds);
                self.record(run, EventKind::Stopping { reason });
                self.out.push(Effect::Stop { run, how: Stop::Soft { grace } });
                self.refuse_waiting(run);
            }
        }
    }
}
