//! The state of the keeper of a supervisor that did not hold any more.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of a keeper that was found not to hold any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
// In words the rest of a sentence about the keeper.
#[derive(strum::Display)]
pub enum KeeperFault {
    /// The keeper had ended.
    #[strum(to_string = "had ended")]
    Ended,
    /// The keeper was stopped, by a signal or a debugger.
    #[strum(to_string = "was stopped")]
    Stopped,
    /// The keeper gave no sign of life, although nothing had stopped it.
    #[strum(to_string = "gave no sign of life")]
    Silent,
}
