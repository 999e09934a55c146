//! What is done and needs no other answer than that it was.

use offshoot_model::BudgetRequest;
use serde::{Deserialize, Serialize};

use super::RunName;

/// `report`: a note to the caller's parent and to whoever watches.
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
    /// Which.
    pub run: RunName,
    /// Spares what is below it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only: bool,
}

/// `pause`: stops admission and starts in the whole tree, or lets them go on. For the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pause {
    /// Whether nothing is to be admitted and started from now on.
    pub paused: bool,
}

/// `budget`: adds to the budget of a run, and to every budget above it. For the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RaiseBudget {
    /// Which.
    pub run: RunName,
    /// How much more.
    pub add: BudgetRequest,
}

/// It was done, or taken on. An empty object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Done {}
