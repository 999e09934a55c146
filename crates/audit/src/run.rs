//! One run, as far as the events have come.

use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{Admitted, EventKind, Reason, Rules, RunId, RunStatus};

use crate::delivery::Handed;
use crate::time::Clock;

/// The state of a run.
pub(crate) struct Run {
    pub(crate) admitted: Box<Admitted>,
    /// The parent, where that was admitted before the run.
    pub(crate) parent: Option<RunId>,
    /// The limits on its own spawns; none where no run above it set any.
    pub(crate) rules: Option<Arc<Rules>>,
    /// The limits of its own rules beyond those that it is held to itself.
    pub(crate) binds: Binds,
    pub(crate) state: SlotState,
    /// True if it ever had a slot, or needs none.
    pub(crate) has_started: bool,
    /// Children that have not ended.
    pub(crate) live_children: u32,
    /// The reason for which the run was asked to stop.
    pub(crate) stopping: Option<Reason>,
    /// The fate of its result, once there is one.
    pub(crate) handed: Option<Handed>,
    /// The state in which it ended, once it has.
    pub(crate) ended: Option<RunStatus>,
    /// The time for which it has run.
    pub(crate) clock: Clock,
    /// The number of this attempt.
    pub(crate) attempt: u32,
    /// The number of times that it began again after a fault.
    pub(crate) retries: u32,
    /// The number of the runtime of `model.fallbacks` that runs it; 0 for its own.
    pub(crate) fallback: u32,
    /// True from the moment at which it fell back to the attempt that follows: that is no further one on the same runtime.
    pub(crate) is_falling: bool,
    /// True if this attempt has answered, asked for a child, or was written to.
    pub(crate) has_acted: bool,
    /// The state of its budget, where a request was more than it had left.
    pub(crate) cap: Cap,
}

/// The state of a run at the cap of its budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Cap {
    /// No request was too much.
    #[default]
    Below,
    /// A request of this attempt waits for more budget, or has given that up.
    Held,
    /// The run stands in line until there is more.
    Waits,
}

/// True for an event that only a run at work brings about.
pub(crate) const fn is_act(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::Kept { .. }
            | EventKind::Reported { .. }
            | EventKind::ToolUsed(_)
            | EventKind::Repeats { .. }
            | EventKind::BacksOff { .. }
            | EventKind::Answered
            | EventKind::ModelChanged { .. }
            | EventKind::ObservationOpened { .. }
            | EventKind::ObservationClosed { .. }
    )
}

/// The limits that a run's own rules set for what is below it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Binds {
    /// True if they limit how many may hold a slot.
    pub(crate) slots: bool,
    /// True if they limit how long it may take.
    pub(crate) deadline: bool,
    /// The age of the tree when the run had its first child.
    pub(crate) since: Option<Duration>,
}

impl Binds {
    /// Compares a run's own rules with those that it is held to. The rules of a root hold for the whole tree, and are counted
    /// there. Earlier versions held to no others.
    fn of(own: Option<&Rules>, here: Option<&Rules>) -> Self {
        let (Some(own), Some(here)) = (own.filter(|own| says_all(Some(own))), here) else {
            return Self::default();
        };
        let caps = |rules: &Rules| (rules.max_concurrent, rules.max_concurrent_per_level);
        Self {
            slots: caps(own) != caps(here),
            deadline: own.deadline_seconds.is_some()
                && own.deadline_seconds != here.deadline_seconds,
            since: None,
        }
    }
}

/// True if a record was written by a version that says all that a run is held to: earlier ones left out some, and held to
/// some in another way.
pub(crate) fn says_all(rules: Option<&Rules>) -> bool {
    rules.is_some_and(|rules| rules.max_returns.is_some())
}

/// The state of a run with regard to its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotState {
    /// Admitted, without a slot.
    Queued,
    /// A root that only holds pieces, and needs no slot.
    Holder,
    /// Holds a slot.
    Holding,
    /// Waits, its slot is lent.
    Lent,
    /// Had started when its supervisor died, and has not been taken up again.
    Interrupted,
    /// The run has ended.
    Ended,
}

impl Run {
    pub(crate) fn new(
        admitted: Box<Admitted>,
        parent: Option<RunId>,
        inherited: Option<Arc<Rules>>,
    ) -> Self {
        let state = if admitted.runtime.is_some() { SlotState::Queued } else { SlotState::Holder };
        Self {
            binds: Binds::of(admitted.rules.as_deref(), inherited.as_deref()),
            rules: admitted.rules.clone().or(inherited),
            admitted,
            parent,
            has_started: state == SlotState::Holder,
            state,
            live_children: 0,
            stopping: None,
            handed: None,
            ended: None,
            clock: Clock::default(),
            attempt: 1,
            retries: 0,
            fallback: 0,
            is_falling: false,
            has_acted: false,
            cap: Cap::default(),
        }
    }

    /// Takes in that each run that it asks for may take so many seconds from here on.
    pub(crate) fn give_time(&mut self, seconds: u64) {
        Arc::make_mut(&mut self.admitted.grant).run_timeout_seconds = seconds;
        let rules = self.rules.as_mut().map(Arc::make_mut);
        if let Some(rules) = rules.filter(|rules| rules.run_timeout_seconds.is_some()) {
            rules.run_timeout_seconds = Some(seconds);
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.state == SlotState::Ended
    }
}
