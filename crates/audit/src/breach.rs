//! A rule that was not held to.

use std::fmt;

use offshoot_model::RunId;
use serde::Serialize;

use crate::Rule;

/// Something in the record that must not be there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seq, run, rule, message } = self;
        write!(f, "event {seq}, run {run}: {rule}: {message}")
    }
}
