//! Signs of life that come by no message.
//!
//! A program may print a thousand times a second. So what it prints only marks the moment, beside the machine, and the
//! machine asks for the mark when its own time has come to judge a silence.

use offshoot_model::{RunId, Timestamp};

use super::Machine;
use super::run::{RunIndex, SlotState};
use super::slots::Part;
use super::timer::Due;

impl Machine {
    /// The runs whose silence is judged at this moment, in the next step of time: their last signs of life have to be
    /// known before.
    pub(crate) fn wants_signs(&self, now: Timestamp) -> Vec<RunIndex> {
        let mut wanted = Vec::new();
        for due in self.timers.due(now) {
            match due {
                Due::Idle(run) => wanted.push(run),
                Due::Stall => wanted.extend(self.slots.holders(Part::TREE)),
                Due::Timeout(_)
                | Due::Again(_)
                | Due::Wait(_)
                | Due::Delivery(_)
                | Due::Deadline(_)
                | Due::Park
                | Due::Memory
                | Due::FirstAnswer
                | Due::AccountSlot
                | Due::Alive
                | Due::Reconsider => {}
            }
        }
        wanted
    }

    /// Returns the runs that hold a slot, each with the moment of its last sign of life.
    pub(crate) fn signs(&self) -> impl Iterator<Item = (RunIndex, RunId, Timestamp)> {
        self.runs.places().filter_map(|run| {
            let live = self.runs.live(run)?;
            let holds = matches!(live.phase, SlotState::Holding { .. });
            holds.then(|| (run, self.id(run), live.clock.last_sign()))
        })
    }

    /// A run gives a sign of life now.
    pub(super) fn gives_sign(&mut self, run: RunIndex) {
        self.wake(run);
        if let Some(live) = self.runs.live_mut(run) {
            live.clock.sign(self.now);
        }
    }

    /// A run gave a sign of life at this moment.
    pub(super) fn sign(&mut self, run: RunIndex, at: Timestamp) {
        if self.runs.live(run).is_some_and(|live| at > live.clock.last_sign()) {
            self.wake(run);
        }
        if let Some(live) = self.runs.live_mut(run) {
            live.clock.sign(at);
        }
    }
}
