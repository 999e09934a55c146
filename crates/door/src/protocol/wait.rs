//! Waiting for children.

use offshoot_model::{RunId, WaitMode};
use serde::{Deserialize, Serialize};

use super::{MergeOrder, Merged, RunName, WireEnvelope};

/// `wait`: blocks until runs have ended. The caller's slot is lent meanwhile. Asking again gives the same results.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    /// For which; empty means all children of the caller so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<RunName>,
    /// For all of them, or for one.
    pub mode: Option<WaitMode>,
    /// After this many milliseconds the answer names what is still pending. Absent: no limit.
    pub timeout_ms: Option<u64>,
    /// Results as one answer, in the order asked. What it does not need any more it cancels: `first` and `quorum:N` end
    /// the others.
    pub merge: Option<MergeOrder>,
    /// Tell how it goes, by the notification `progress`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub progress: bool,
}

/// The answer to `wait`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Waited {
    /// The runs that have ended, in the order asked.
    pub ended: Vec<WireEnvelope>,
    /// The runs that have not ended.
    #[serde(default)]
    pub pending: Vec<RunId>,
    /// The results of those that have ended, where a merge was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<Merged>,
}
