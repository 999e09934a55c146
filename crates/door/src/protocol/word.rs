//! Words in answers. A word of a later version is read as `Unknown`.

use offshoot_model::{RunStatus, ValueKind};
use serde::{Deserialize, Serialize};

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Nothing of this tree has run yet.
    Idle,
    /// Admitted, and waiting for a slot.
    Queued,
    /// Holds a slot; it was asked to start.
    Starting,
    /// Runs.
    Running,
    /// Blocked on its children; its slot is lent.
    Waiting,
    /// The only success.
    Completed,
    /// Ended by itself, and not well.
    Failed,
    /// Its time was over.
    TimedOut,
    /// Somebody asked.
    Cancelled,
    /// Nobody can say how it ended.
    Lost,
    /// A root for a client from outside, which has gone.
    ClientGone,
    /// A word of a later version.
    #[serde(other)]
    Unknown,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VariableKind {
    /// UTF-8 text; the file is the value.
    Text,
    /// JSON; the value stands in the field `value` of the file.
    Json,
    /// The answer of a run that is JSON; its file is like that of JSON.
    Result,
    /// Anything else; the file is the value.
    Bytes,
    /// A word of a later version.
    #[serde(other)]
    Unknown,
}

/// What a line of a history is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// What the session was asked to do.
    Task,
    /// What it reported on the way.
    Report,
    /// What was sent to it.
    Message,
    /// What it asked for: a child, a wait, a merge.
    Request,
    /// A result that it was given.
    Result,
    /// What it answered.
    Answer,
    /// Anything else that happened to it.
    Event,
    /// A word of a later version.
    #[serde(other)]
    Unknown,
}

/// As whom a connection was recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallerWord {
    /// A running agent.
    Run,
    /// The person who owns the tree, or a command of theirs.
    Operator,
    /// A word of a later version.
    #[serde(other)]
    Unknown,
}

impl From<RunStatus> for RunState {
    fn from(status: RunStatus) -> Self {
        match status {
            RunStatus::Idle => Self::Idle,
            RunStatus::Queued => Self::Queued,
            RunStatus::Starting => Self::Starting,
            RunStatus::Running => Self::Running,
            RunStatus::Waiting => Self::Waiting,
            RunStatus::Completed => Self::Completed,
            RunStatus::Failed => Self::Failed,
            RunStatus::TimedOut => Self::TimedOut,
            RunStatus::Cancelled => Self::Cancelled,
            RunStatus::Lost => Self::Lost,
            RunStatus::ClientGone => Self::ClientGone,
        }
    }
}

impl RunState {
    /// Nothing but `completed` is success; least of all a word that nobody knows.
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Completed)
    }

    /// Whether nothing can follow.
    pub const fn is_terminal(self) -> bool {
        matches!(
            self,
            Self::Completed
                | Self::Failed
                | Self::TimedOut
                | Self::Cancelled
                | Self::Lost
                | Self::ClientGone
        )
    }
}

impl From<ValueKind> for VariableKind {
    fn from(kind: ValueKind) -> Self {
        match kind {
            ValueKind::Text => Self::Text,
            ValueKind::Json => Self::Json,
            ValueKind::Result => Self::Result,
            ValueKind::Bytes => Self::Bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_those_of_the_model() {
        for status in [
            RunStatus::Idle,
            RunStatus::Queued,
            RunStatus::Starting,
            RunStatus::Running,
            RunStatus::Waiting,
            RunStatus::Completed,
            RunStatus::Failed,
            RunStatus::TimedOut,
            RunStatus::Cancelled,
            RunStatus::Lost,
            RunStatus::ClientGone,
        ] {
            let here = serde_json::to_string(&RunState::from(status)).unwrap();
            assert_eq!(here, format!("\"{status}\""));
            assert_eq!(RunState::from(status).is_terminal(), status.is_terminal());
            assert_eq!(RunState::from(status).is_success(), status.is_success());
        }
        for kind in [ValueKind::Text, ValueKind::Json, ValueKind::Result, ValueKind::Bytes] {
            let here = serde_json::to_string(&VariableKind::from(kind)).unwrap();
            assert_eq!(here, format!("\"{kind}\""));
        }
    }

    #[test]
    fn later_words_are_unknown_and_no_success() {
        let state: RunState = serde_json::from_str("\"hibernating\"").unwrap();
        assert_eq!(state, RunState::Unknown);
        assert!(!state.is_success() && !state.is_terminal());
        assert_eq!(
            serde_json::from_str::<VariableKind>("\"video\"").unwrap(),
            VariableKind::Unknown
        );
        assert_eq!(serde_json::from_str::<EntryKind>("\"dream\"").unwrap(), EntryKind::Unknown);
        assert_eq!(serde_json::from_str::<CallerWord>("\"guest\"").unwrap(), CallerWord::Unknown);
    }
}
