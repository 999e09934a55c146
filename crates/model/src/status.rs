//! The status of a run.

use serde::{Deserialize, Serialize};

/// `queued → starting → running ⇄ waiting → completed | failed | timed_out | cancelled | lost | client_gone`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display, strum::IntoStaticStr, strum::AsRefStr)]
#[strum(serialize_all = "snake_case")]
pub enum RunStatus {
    /// Nothing of this tree has run yet. Only a whole tree is ever idle.
    Idle,
    /// Admitted, and waiting for a slot.
    Queued,
    /// Holds a slot; its runtime was asked to start it.
    Starting,
    /// The runtime reported that the run has started.
    Running,
    /// Blocked on its children; its slot is lent.
    Waiting,
    /// The only success.
    Completed,
    /// Ended by itself, and not well.
    Failed,
    /// Ended by us, because its time was over.
    TimedOut,
    /// Ended by us, on request.
    Cancelled,
    /// The ending is not known.
    Lost,
    /// A root for a client from outside: the client has gone, which says nothing of how its work went.
    ClientGone,
}

impl RunStatus {
    /// True if no other status can follow.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Idle | Self::Queued | Self::Starting | Self::Running | Self::Waiting => false,
            Self::Completed
            | Self::Failed
            | Self::TimedOut
            | Self::Cancelled
            | Self::Lost
            | Self::ClientGone => true,
        }
    }

    /// Nothing but `completed` is success anywhere.
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Completed)
    }

    /// True of an end that the run came to by itself and that is no success: it failed, or took too long.
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::TimedOut)
    }
}
