//! Trees that another supervisor takes over, and trees that go on after their end.

use offshoot_model::{Event, RootReopened};

use super::Audit;
use crate::Rule;
use crate::run::SlotState;

impl Audit {
    /// A new supervisor: whatever held a slot or had lent it runs no more.
    pub(super) fn reopened(&mut self, event: &Event) {
        if Some(event.run) != self.found.root.map(|root| root.run()) {
            let message = "reopened, and is not the root".to_owned();
            self.breach(event, Rule::States, message);
        }
        self.slots.clear();
        self.breakers.interrupt();
        self.walls.clear_probes();
        for (id, run) in &mut self.runs {
            // Its part of the pool is on record, and its start is not.
            if run.state == SlotState::Queued {
                self.books.return_to_pool(*id);
            }
            if matches!(run.state, SlotState::Holding | SlotState::Lent) {
                run.state = SlotState::Interrupted;
                run.clock.stop();
            }
        }
    }

    /// The operator goes on with a tree that was over. Only a root that holds pieces is reopened.
    pub(super) fn root_reopened(&mut self, event: &Event, reopened: &RootReopened) {
        let run = self.runs.get_mut(&event.run).expect("the run that was looked up is gone");
        if run.parent.is_some() || run.admitted.runtime.is_some() || !run.is_over() {
            let message = "reopened, and is no root of pieces that was over".to_owned();
            return self.breach(event, Rule::States, message);
        }
        (run.state, run.stopping, run.ended) = (SlotState::Holder, None, None);
        reopened.run_timeout_seconds.into_iter().for_each(|seconds| run.give_time(seconds));
        if let Some(seconds) = reopened.deadline_seconds {
            self.deadline = Some((self.life.age, seconds));
        }
        self.books.reopen(event.run);
    }
}
