//! The end of a request to a model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The way in which a request that went through the meter ended.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema
)]
#[serde(rename_all = "snake_case")]
pub enum RequestEnding {
    /// The provider answered, and the whole answer was passed on: what it reported is charged.
    Answered,
    /// The answer came to its end, and reported no use: what is not known is charged at its bound.
    Unreported,
    /// The answer broke off: what is not known is charged at its bound.
    Broken,
    /// The provider refused it: nothing is charged.
    Declined,
    /// The request never left: nothing is charged.
    NotSent,
    /// The supervisor was gone before it was over: it is charged at its bound.
    Lost,
}

impl RequestEnding {
    /// Returns true if the provider has answered, and all of its answer was passed on.
    pub const fn is_answered(self) -> bool {
        matches!(self, Self::Answered | Self::Unreported)
    }

    /// Returns the ending in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Unreported => "answered without saying what it used",
            Self::Broken => "broken off",
            Self::Declined => "declined by the provider",
            Self::NotSent => "not sent",
            Self::Lost => "lost with its supervisor",
        }
    }
}
