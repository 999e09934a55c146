//! A rule that was not held to.

use offshoot_model::RunId;
use serde::Serialize;

use crate::Rule;

/// Something in the record that must not be there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, derive_more::Display)]
#[display("event {seq}, run {run}: {rule}: {message}")]
#[serde(rename_all = "camelCase")]
pub struct Breach {
    /// The event with which it shows; the last one where something is missing.
    pub seq: u64,
    /// The run that broke the rule.
    pub run: RunId,
    /// The rule that was broken.
    pub rule: Rule,
    /// In words.
    pub message: String,
}
