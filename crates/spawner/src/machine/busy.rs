//! Runs that work while they wait.
//!
//! A wait lends the slot of its run, and the time limit of the run rests. Nothing keeps the run from working meanwhile, and
//! its slot cannot be taken back: with a single slot its children would never end. So the CPU time that it used counts against
//! its time limit instead, and stands on record.

use std::time::Duration;

use offshoot_model::{EventKind, Reason};

use super::Machine;
use super::run::{RunIndex, SlotState};
use super::timer::Due;

/// A run that uses less than this part of the time in which it waits is at rest.
const AT_REST: u32 = 10;

/// The CPU time below which the use of a wait is put together with that of the next one: a program of the run that ends, or
/// starts another wait, is no work. Work that is split into many short waits is found all the same.
const GRAIN: Duration = Duration::from_millis(250);

/// The CPU time that the processes of a run used while the run waited, and the length of the wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Busy {
    pub(crate) cpu: Duration,
    pub(crate) wait: Duration,
}

impl Busy {
    const fn is_at_rest(self) -> bool {
        self.cpu.as_millis() * AT_REST as u128 <= self.wait.as_millis()
    }
}

impl Machine {
    /// A wait of a run has closed, and this is what its processes used meanwhile.
    pub(super) fn busy(&mut self, run: RunIndex, busy: Busy) {
        let Some(live) = self.runs.live_mut(run) else { return };
        // A reading of an earlier attempt.
        if matches!(live.phase, SlotState::Queued | SlotState::Holder) {
            return;
        }
        let small = live.small_work.take().map_or_else(Busy::default, |small| *small);
        let busy = Busy { cpu: small.cpu + busy.cpu, wait: small.wait + busy.wait };
        if busy.is_at_rest() {
            return;
        }
        if busy.cpu < GRAIN {
            live.small_work = Some(Box::new(busy));
            return;
        }
        let [cpu_ms, wait_ms] = [busy.cpu, busy.wait].map(|time| time.as_millis() as u64);
        self.record(run, EventKind::BusyWaiting { cpu_ms, wait_ms });
        let live = self.runs.live(run).expect("the run ended within the step that looked at it");
        let seconds = live.grant.run_timeout_seconds;
        if live.clock.is_over(self.now, seconds) {
            self.stop(run, Reason::Timeout { seconds });
        }
    }

    /// Counts what a run did while it waited against its time limit.
    pub(super) fn has_worked(&mut self, run: RunIndex, cpu_ms: u64) {
        let Some(live) = self.runs.live_mut(run) else { return };
        let seconds = live.grant.run_timeout_seconds;
        if let Some(at) = live.clock.timeout_at(seconds) {
            self.timers.disarm(at, Due::Timeout(run));
        }
        live.clock.spend(Duration::from_millis(cpu_ms));
        let holds = matches!(live.phase, SlotState::Holding { .. });
        if let Some(at) = live.clock.timeout_at(seconds).filter(|_| holds) {
            self.timers.arm(at, Due::Timeout(run));
        }
    }
}
