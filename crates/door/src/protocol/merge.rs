//! Many results into one.

use offshoot_model::{Chosen, JsonText, RunId};
use serde::{Deserialize, Serialize};

use super::RunName;

/// A merge of results, as a caller asks for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MergeOrder {
    /// The name of a strategy, such as `vote` or `quorum:3`, or the merge of a plugin: `plugin:NAME`, `plugin:NAME=PARAMETERS`.
    pub strategy: String,
    /// `fail` (the default), `skip` or `include`: what becomes of those that did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<String>,
    /// Text between two results of `concatenate`, in place of a line `---`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separator: Option<String>,
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
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Merged {
    /// The name of the merge.
    pub strategy: String,
    /// The answer: text as a JSON string, everything else as itself; `{"ref": …}` where it is large.
    pub data: Option<JsonText>,
    /// The caller's name for it, where it is kept as a value.
    pub name: Option<String>,
    /// Runs that did not complete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<RunId>,
    /// The reason why this is not the answer to the request; `data` is then the part that there is.
    pub error: Option<String>,
    /// Name of the result that a judge chose, and the reason; none where no judge was asked.
    pub chosen: Option<Chosen>,
}
