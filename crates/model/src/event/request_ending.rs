//! The end of a request to a model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The way in which a request that went through the meter ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "snake_case")]
pub enum RequestEnding {
    /// The provider answered, and the whole answer was passed on: what it reported is charged.
    #[strum(to_string = "answered")]
    Answered,
    /// The answer came to its end, and reported no use: what is not known is charged at its bound.
    #[strum(to_string = "answered without saying what it used")]
    Unreported,
    /// The answer broke off: what is not known is charged at its bound.
    #[strum(to_string = "broken off")]
    Broken,
    /// The provider refused it: nothing is charged.
    #[strum(to_string = "declined by the provider")]
    Declined,
    /// The request never left: nothing is charged.
    #[strum(to_string = "not sent")]
    NotSent,
    /// The supervisor was gone before it was over: it is charged at its bound.
    #[strum(to_string = "lost with its supervisor")]
    Lost,
}

impl RequestEnding {
    /// Returns true if the provider has answered, and all of its answer was passed on.
    pub const fn is_answered(self) -> bool {
        matches!(self, Self::Answered | Self::Unreported)
    }
}
