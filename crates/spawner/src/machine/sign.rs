//! Signs of life that come by no message.
//!
//! A program may print a thousand times a second. So what it prints only marks the moment, beside the machine, and the
//! machine asks for the mark when its own time has come to judge a silence.

use offshoot_model::Timestamp;

use super::run::RunIndex;
use super::slots::Part;
use super::timer::Due;
use super::{Effect, Machine};

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
                | Due::Deadline(_)
                | Due::Reconsider => {}
            }
        }
        wanted
    }

    /// A run gave a sign of life at this moment.
    pub(super) fn sign(
        &mut self,
        now: Timestamp,
        run: RunIndex,
        at: Timestamp,
        out: &mut Vec<Effect>,
    ) {
        let is_new = |last: Timestamp| at > last;
        if self.runs[run.get()].live().is_some_and(|live| is_new(live.clock.last_sign())) {
            self.wake(now, run, out);
        }
        if let Some(live) = self.runs[run.get()].live_mut() {
            live.clock.sign(at);
        }
    }
}
