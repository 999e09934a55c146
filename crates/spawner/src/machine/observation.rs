//! Observations of tasks that runs do themselves: opened where a task with a type was to be executed directly, closed by the run,
//! by the end of its turn or by its own.

use offshoot_model::{EventKind, TaskType};

use super::Machine;
use super::report::Allowance;
use super::run::RunIndex;

/// The observations of one run.
#[derive(Debug, Default)]
pub(super) struct Observations {
    /// The number of the last one.
    last: u32,
    /// The numbers of those that are open.
    open: Vec<u32>,
    /// The number of further ones that the record has room for.
    allowance: Allowance,
}

/// A run that has more tasks at once in its hands has lost count of them.
const MOST_OPEN: usize = 100;

impl Machine {
    /// Returns the number of an observation that a run may open now; none for a run of which no attempt runs, and for one that opens
    /// them faster than a record should grow.
    pub(crate) fn next_observation(&self, run: RunIndex) -> Option<u32> {
        let Some(observations) = &self.runs.running(run)?.observations else {
            return Some(1);
        };
        let has_room =
            observations.open.len() < MOST_OPEN && observations.allowance.has_room(self.now);
        has_room.then_some(observations.last + 1)
    }

    /// True if this observation of a run is open.
    pub(crate) fn is_observing(&self, run: RunIndex, number: u32) -> bool {
        let live = self.runs.running(run);
        let observations = live.and_then(|live| live.observations.as_ref());
        observations.is_some_and(|observations| observations.open.contains(&number))
    }

    /// A run begins with a task of this type, of which [`Machine::next_observation`] gave the number.
    pub(super) fn observes(&mut self, run: RunIndex, number: u32, task_type: TaskType) {
        self.gives_sign(run);
        self.record(run, EventKind::ObservationOpened { number, task_type });
    }

    /// A run is over with a task of which [`Machine::is_observing`] is true.
    pub(super) fn observed(&mut self, run: RunIndex, number: u32, success: bool) {
        self.gives_sign(run);
        self.record(run, EventKind::ObservationClosed { number, success });
    }

    /// Applies that an observation is open.
    pub(super) fn observation_opened(&mut self, run: RunIndex, number: u32) {
        let now = self.now;
        if let Some(live) = self.runs.live_mut(run) {
            let observations = live.observations.get_or_insert_default();
            observations.last = number;
            observations.open.push(number);
            observations.allowance.count(now);
        }
    }

    /// Applies that observations of a run are closed: this one, or all.
    pub(super) fn observation_closed(&mut self, run: RunIndex, number: Option<u32>) {
        let live = self.runs.live_mut(run);
        if let Some(observations) = live.and_then(|live| live.observations.as_mut()) {
            observations.open.retain(|open| number.is_some_and(|number| *open != number));
        }
    }
}
