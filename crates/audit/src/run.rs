//! One run, as far as the events have come.

use std::sync::Arc;

use offshoot_model::{Admitted, Reason, Rules, RunId, RunStatus};

use crate::delivery::Handed;
use crate::time::Clock;

/// What is known of a run.
pub(crate) struct Run {
    pub(crate) admitted: Box<Admitted>,
    /// Its parent, where that was admitted before it.
    pub(crate) parent: Option<RunId>,
    /// What its own spawns are held to; none where nobody above it has said anything.
    pub(crate) rules: Option<Arc<Rules>>,
    pub(crate) state: State,
    /// Whether it ever had a slot, or needs none.
    pub(crate) has_started: bool,
    /// Children that have not ended.
    pub(crate) live_children: u32,
    /// What it was asked to stop for.
    pub(crate) stopping: Option<Reason>,
    /// What became of its result, once something has.
    pub(crate) handed: Option<Handed>,
    /// How it ended, once it has.
    pub(crate) ended: Option<RunStatus>,
    /// How long it has run.
    pub(crate) clock: Clock,
    /// Which attempt this is.
    pub(crate) attempt: u32,
    /// How often it began again after a fault.
    pub(crate) retries: u32,
    /// Whether this attempt has answered, asked for a child, or was written to.
    pub(crate) has_acted: bool,
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
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
    /// Over.
    Ended,
}

impl Run {
    pub(crate) fn new(
        admitted: Box<Admitted>,
        parent: Option<RunId>,
        inherited: Option<Arc<Rules>>,
    ) -> Self {
        let state = if admitted.runtime.is_some() { State::Queued } else { State::Holder };
        Self {
            rules: admitted.rules.clone().or(inherited),
            admitted,
            parent,
            has_started: state == State::Holder,
            state,
            live_children: 0,
            stopping: None,
            handed: None,
            ended: None,
            clock: Clock::default(),
            attempt: 1,
            retries: 0,
            has_acted: false,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.state == State::Ended
    }
}
