//! The result of a merge, as the record has it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Payload;

/// The result of a merge.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MergeSummary {
    /// The strategy, as written on the command line.
    pub strategy: String,
    /// The number of results that went in.
    pub merged: u32,
    /// The number of runs that did not complete.
    pub failed: u32,
    /// The answer.
    pub output: Payload,
    /// Name of the result that a judge chose, and the reason; none where no judge was asked.
    pub chosen: Option<Chosen>,
}

/// A result that a judge chose among others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Chosen {
    /// The name of the result.
    pub winner: String,
    /// The reason in the words of the judge; empty where it gave none.
    pub reason: String,
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.winner)?;
        if self.reason.is_empty() { Ok(()) } else { write!(f, ", because: {}", self.reason) }
    }
}
