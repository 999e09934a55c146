//! The progress of a wait.

use serde::{Deserialize, Serialize};

use super::Merged;

/// The content of the notification `progress` about a request that is still open. May be thinned: only the last one counts.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// The number of the runs waited for that have ended.
    pub ended: u64,
    /// Of how many.
    pub total: u64,
    /// The last sign of life, for people.
    pub text: Option<String>,
    /// The part of a merged answer that there is so far.
    pub merged: Option<Merged>,
}
