//! The operator goes on with a tree that was over.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CancelledBy, Reason};

/// The choice with which the operator goes on with a tree that was over.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RootReopened {
    /// The pieces that run again.
    pub again: PiecesAgain,
    /// The tree has so many seconds from here on, in place of what it had left.
    pub deadline_seconds: Option<u64>,
    /// A piece may run for so many seconds from here on, in place of what the tree allowed; 0 = no limit.
    pub run_timeout_seconds: Option<u64>,
    /// A piece may be silent for so many seconds from here on, in place of what the tree allowed; 0 = no limit.
    pub idle_timeout_seconds: Option<u64>,
}

/// The pieces of a tree that run again, each as a new run. Those that completed never do.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PiecesAgain {
    /// True for those that failed, and those that were cancelled because too many had failed.
    pub failed: bool,
    /// True for those that were cancelled, or whose tree was stopped before they were done.
    pub cancelled: bool,
    /// Only those with this label.
    pub only: Option<Arc<str>>,
}

impl PiecesAgain {
    /// Returns true if a piece with this label that ended for this reason runs again. `has_started` is true of a piece that ever
    /// had a slot.
    pub fn includes(&self, reason: &Reason, has_started: bool, label: Option<&str>) -> bool {
        let by_end = match reason {
            // The answer stood without it.
            Reason::Completed { .. } | Reason::Cancelled { by: CancelledBy::EarlyAnswer } => false,
            Reason::Cancelled { by: CancelledBy::MaxFail } => self.failed,
            // Never started, for the state of its tree, and recorded as failed or timed out: both choices name it.
            Reason::BudgetPool { .. } | Reason::ParkLimit { .. } => self.failed || self.cancelled,
            // A run that never started was not let.
            Reason::Quota { .. } if !has_started => self.failed || self.cancelled,
            Reason::Cancelled { .. } | Reason::Deadline | Reason::ClientGone => self.cancelled,
            // One that was at work may have done what must not be done twice.
            Reason::Interrupted if has_started => self.failed,
            Reason::Interrupted => self.cancelled,
            // The disk was full: for this piece alone, or for its whole tree.
            Reason::NotRecorded { .. } => self.failed || self.cancelled,
            Reason::ExitCode { .. }
            | Reason::InputUnreadable { .. }
            | Reason::Signal { .. }
            | Reason::CannotStart { .. }
            | Reason::Isolation { .. }
            | Reason::NoRoom { .. }
            | Reason::Quota { .. }
            | Reason::RuntimeError { .. }
            | Reason::PluginPanic { .. }
            | Reason::TurnLimit
            | Reason::Budget { .. }
            | Reason::Timeout { .. }
            | Reason::Idle { .. }
            | Reason::Repeated { .. }
            | Reason::OutOfMemory { .. }
            | Reason::CpuLimit { .. }
            | Reason::OpenFileLimit { .. }
            | Reason::OutputLimit { .. }
            | Reason::SchemaMismatch { .. }
            | Reason::PiecesFailed { .. }
            | Reason::MergeFailed { .. }
            // With what it needs.
            | Reason::NeedFailed { .. } => self.failed,
        };
        by_end && self.may_be(label)
    }

    /// Returns true if a piece with this label is among those that may run again.
    pub fn may_be(&self, label: Option<&str>) -> bool {
        self.only.as_deref().is_none_or(|only| label == Some(only))
    }
}

impl fmt::Display for RootReopened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            again: PiecesAgain { failed, cancelled, only },
            deadline_seconds,
            run_timeout_seconds,
            idle_timeout_seconds,
        } = self;
        f.write_str(match (failed, cancelled) {
            (true, true) => "what failed or was cancelled runs again",
            (true, false) => "what failed runs again",
            (false, true) => "what was cancelled runs again",
            (false, false) => "what never started runs",
        })?;
        if let Some(only) = only {
            write!(f, ", of `{only}` alone")?;
        }
        if let Some(seconds) = deadline_seconds {
            write!(f, ", within {seconds} s")?;
        }
        let time = |f: &mut fmt::Formatter<'_>, seconds: Option<u64>, what: &str| match seconds {
            None => Ok(()),
            Some(0) => write!(f, ", without a limit of {what} for each"),
            Some(seconds) => write!(f, ", {seconds} s of {what} for each"),
        };
        time(f, *run_timeout_seconds, "work")?;
        time(f, *idle_timeout_seconds, "silence")
    }
}
