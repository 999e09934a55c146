//! One run in a tree.

use std::sync::Arc;
use std::time::Duration;

use offshoot_session_key::{AgentId, SessionKey};
use serde::{Deserialize, Serialize};

use crate::ending::{with_cause, with_said};
use crate::{Cleanup, Cost, Need, Origin, Reason, RootId, RunId, RunStatus, Timestamp, Usage};

/// One run in a tree.
#[derive(Clone, Debug)]
pub struct Node {
    /// The run.
    pub run: RunId,
    /// The tree of the run.
    pub root: RootId,
    /// The session key.
    pub key: SessionKey,
    /// The run that asked for this one.
    pub parent: Option<RunId>,
    /// The running agent.
    pub agent: AgentId,
    /// Levels below the root.
    pub depth: u32,
    /// The origin of the run.
    pub origin: Origin,
    /// A short name for people.
    pub label: Option<Arc<str>>,
    /// The status of the run.
    pub status: RunStatus,
    /// The reason of its end, once it has ended.
    pub reason: Option<Reason>,
    /// The line of its last words that says why it is no success.
    pub cause: Option<Arc<str>>,
    /// The beginning of what the run itself says of its error.
    pub said: Option<Arc<str>>,
    /// The time of the admission.
    pub admitted_at: Timestamp,
    /// The time at which it got its first slot.
    pub started_at: Option<Timestamp>,
    /// The time of its end.
    pub ended_at: Option<Timestamp>,
    /// The last sign of life, for people.
    pub progress: Option<Arc<str>>,
    /// The last words in which it reported how it goes.
    pub reported: Option<Arc<str>>,
    /// The usage of the run itself.
    pub usage: Usage,
    /// The cost of the run itself.
    pub cost: Cost,
    /// The treatment of the session once its result was handed over.
    pub cleanup: Cleanup,
    /// The reason why its folder is still there although it was to be removed.
    pub not_removed: Option<Arc<str>>,
    /// The attempt for which it stands in line, after a fault of the one before.
    pub parked: Option<Parked>,
    /// The time since which a request of it to a model waits for room in the budget.
    pub at_cap: Option<Timestamp>,
    /// The wait before its next call to a service that has refused or broken off the last one.
    pub backs_off: Option<BackOff>,
    /// The run that had its place before: it is a piece that runs again.
    pub instead: Option<RunId>,
    /// The run that has its place now: it is a piece, and ran again.
    pub replaced_by: Option<RunId>,
    /// The runs whose answers it needs.
    pub needs: Vec<Need>,
    /// The time since its first slot for which its tree had no supervisor.
    pub(super) dead: Duration,
    /// The time of the last event of its tree, where that has no supervisor any more.
    pub(super) left_at: Option<Timestamp>,
    /// True if its result reached its receiver, or will never be asked for.
    pub(super) handed_over: bool,
    /// True if the run runs nothing itself: its owner follows what is below it.
    pub(super) holds: bool,
    /// The number of requests to models that went through the meter and are not over.
    pub(super) open_requests: u32,
    pub(super) children: Vec<usize>,
}

/// A run that waits for another attempt, after a fault of its runtime or an end that was chosen for that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Parked {
    /// The time at which the attempt before ended.
    #[serde(serialize_with = "crate::rfc3339")]
    pub since: Timestamp,
    /// The time before which the attempt does not begin.
    #[serde(serialize_with = "crate::rfc3339")]
    pub until: Timestamp,
    /// The number of the attempt that is to come.
    pub attempt: u32,
    /// The end of the attempt before.
    pub after: Reason,
}

/// A wait of a run before its next call to a service that has refused or broken off the last one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackOff {
    /// The time of the first call that failed, since the service answered last.
    #[serde(serialize_with = "crate::rfc3339", deserialize_with = "crate::from_rfc3339")]
    pub since: Timestamp,
    /// The time of the next call.
    #[serde(serialize_with = "crate::rfc3339", deserialize_with = "crate::from_rfc3339")]
    pub until: Timestamp,
    /// The fault of the service, in words.
    pub why: Arc<str>,
}

impl Node {
    /// From its first slot to its end, without the time for which its tree had no supervisor; none while it runs or where it never started.
    pub fn execution_time(&self) -> Option<Duration> {
        self.age(self.ended_at?)
    }

    /// The time since its first slot for which its tree had no supervisor.
    pub fn time_without_supervisor(&self) -> Duration {
        self.dead
    }

    /// True if the run is not over, and its tree has no supervisor.
    pub fn is_without_supervisor(&self) -> bool {
        self.left_at.is_some()
    }

    /// The time of the last event of its tree, where the run had begun and the tree has no supervisor any more.
    pub fn left_at(&self) -> Option<Timestamp> {
        self.left_at.filter(|_| self.started_at.is_some())
    }

    /// True if the run runs nothing itself, and only holds what is below it.
    pub fn runs_nothing(&self) -> bool {
        self.holds
    }

    /// The reason of its end in one line, with the cause and what the run itself says of it; none while it lives.
    pub fn why(&self) -> Option<String> {
        let why = with_cause(self.reason.as_ref()?, self.cause.as_deref());
        Some(with_said(why, self.said.as_deref()))
    }

    /// From its first slot to its end, or to this moment while it runs, without the time for which its tree had no supervisor; none where
    /// it never started.
    pub fn age(&self, now: Timestamp) -> Option<Duration> {
        let until = self.ended_at.or(self.left_at).unwrap_or(now);
        Some(until.since(self.started_at?).saturating_sub(self.dead))
    }
}
