//! The state of the keeper of a supervisor that did not hold any more.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of a keeper that was found not to hold any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeeperFault {
    /// The keeper had ended.
    Ended,
    /// The keeper was stopped, by a signal or a debugger.
    Stopped,
    /// The keeper gave no sign of life, although nothing had stopped it.
    Silent,
}

impl KeeperFault {
    /// Returns the state in words, as the rest of a sentence about the keeper.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Ended => "had ended",
            Self::Stopped => "was stopped",
            Self::Silent => "gave no sign of life",
        }
    }
}
