//! The result of one probe.

use serde::Serialize;

/// A limit that was asked for more than it allows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Probe {
    /// The key of the limit below `subagents`.
    pub limit: &'static str,
    /// The value that holds; none where nothing is set and nothing is built in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The place where the value was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The settings that were changed for the probe, as `key=value`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
    /// The amount that was asked for.
    pub asked: String,
    /// The amount that the agents got.
    pub got: String,
    /// The code of the refusal or of the ending that was the answer to more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The judgement.
    pub verdict: Verdict,
}

/// The judgement of a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "type")]
pub enum Verdict {
    /// The agents got as much as the limit allows, and no more.
    Holds,
    /// Another limit was reached before this one, which was not exceeded.
    Before {
        /// The code with which that one answered.
        by: String,
    },
    /// The limit is not set, so that there is nothing to try.
    NotSet,
    /// The limit cannot be tried under this configuration.
    NotTried {
        /// The reason.
        why: String,
    },
    /// The agents got more than the limit allows, or less.
    Broken {
        /// The difference.
        why: String,
    },
}

impl Verdict {
    /// True unless the limit was seen to be broken.
    pub const fn is_fine(&self) -> bool {
        !matches!(self, Self::Broken { .. })
    }
}
