//! Handing a task on without naming an agent.

use serde::{Deserialize, Serialize};

use super::Spawn;

/// `delegate`: a child of the caller, run by the preferred agent that fits the task; by the `agent` of the request where it has one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delegate {
    /// The child.
    #[serde(flatten)]
    pub spawn: Spawn,
    /// True: the choice is answered, and nothing is started.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub choose_only: bool,
}

/// `observed`: the caller is over with a task that it did itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Observed {
    /// The number of the observation, as `delegate` answered it.
    pub observation: u32,
    /// True: the task is not done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
}
