//! Signs of life, which the record does not keep.

use offshoot_model::RunId;
use serde::{Deserialize, Serialize};

/// `activity`: the runs that hold a slot. For the operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Activity {}

/// The answer to `activity`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Activities {
    /// In the order in which they were admitted.
    pub runs: Vec<RunActivity>,
}

/// A run that holds a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunActivity {
    /// The run.
    pub run_id: RunId,
    /// The time since its last sign of life: output, an event, or a request, in milliseconds.
    pub silent_ms: u64,
}
