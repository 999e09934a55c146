//! The words of the agents of a tree.

use serde::{Deserialize, Serialize};

/// `output`: what agents said up to now is written to the files from which it is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// Not before more was said than at the call that was answered with this number, or something was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// The last event that the caller has read.
    #[serde(default)]
    pub event: u64,
}

/// The answer to `output`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutputWritten {
    /// The number of times that something was said.
    pub said: u64,
}
