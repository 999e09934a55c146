//! Requests that are answered with no more than that they were done.

use offshoot_model::BudgetRequest;
use serde::{Deserialize, Serialize};

use super::RunName;

/// `report`: a note to the caller's parent and to those who watch the tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The note.
    pub text: String,
}

/// `send`: a message into a running session below the caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Send {
    /// To whom.
    pub to: RunName,
    /// The message.
    pub text: String,
}

/// `cancel`: ends a run below the caller, with everything below that run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cancel {
    /// The run.
    pub run: RunName,
    /// Spares what is below it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only: bool,
}

/// `pause`: stops admission and starts in the whole tree, or lets them go on. For the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pause {
    /// True to stop admissions and starts from now on; false to allow them again.
    pub paused: bool,
}

/// `budget`: adds to the budget of a run, and to every budget above it. For the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RaiseBudget {
    /// The run.
    pub run: RunName,
    /// The amount to add.
    pub add: BudgetRequest,
}

/// The answer to a request that was done or accepted. An empty object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Done {}
