//! Many results into one.

use offshoot_model::{JsonText, RunId};
use serde::{Deserialize, Serialize};

use super::RunName;

/// A merge of results, as a caller asks for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MergeOrder {
    /// The name of a strategy, such as `vote` or `quorum:3`, or the merge of a plugin: `plugin:NAME`, `plugin:NAME=PARAMETERS`.
    pub strategy: String,
    /// `fail` (the default), `skip` or `include`: what becomes of those that did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<String>,
}

/// `merge`: stored results of runs below the caller, or values that it brings, as one answer. First the runs. Where
/// neither is named: all children of the caller that have ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Merge {
    /// The merge.
    pub order: MergeOrder,
    /// Runs that have ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<RunName>,
    /// Values from elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<KeyedResult>,
}

/// A value with the name of its source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyedResult {
    /// The name.
    pub key: String,
    /// The value.
    pub value: JsonText,
}

/// A merged answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Merged {
    /// The name of the merge.
    pub strategy: String,
    /// The answer: text as a JSON string, everything else as itself; `{"ref": …}` where it is large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<JsonText>,
    /// The caller's name for it, where it is kept as a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Runs that did not complete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<RunId>,
    /// The reason why this is not the answer to the request; `data` is then the part that there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
