//! How a wait goes.

use serde::{Deserialize, Serialize};

use super::Merged;

/// What the notification `progress` tells about a request that is still open. May be thinned: only the last one counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// How many of the runs waited for have ended.
    pub ended: u64,
    /// Of how many.
    pub total: u64,
    /// The last sign of life, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What there is so far of a merge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<Merged>,
}
