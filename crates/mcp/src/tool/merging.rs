//! The merge of results, as tools take it.

use offshoot_door::MergeOrder;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;

/// The merge of results.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Merging {
    /// (As for sessions_merge.)
    pub(super) strategy: String,
    /// (As for sessions_merge.)
    pub(super) on_failure: Option<OnFailure>,
}

/// The treatment of results that did not complete.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub(super) enum OnFailure {
    /// Failed results are named, and the other results are kept.
    Fail,
    /// Failed results are left out.
    Skip,
    /// The envelope of a failed result is its value.
    Include,
}

impl Merging {
    /// As the door is asked for it.
    pub(super) fn order(self) -> MergeOrder {
        let Self { strategy, on_failure } = self;
        let on_failure = on_failure.map(|word| word.to_string());
        MergeOrder { strategy, on_failure, ..MergeOrder::default() }
    }
}
