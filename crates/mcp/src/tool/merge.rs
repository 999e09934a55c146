//! `sessions_merge`.

use offshoot_door::{Client, KeyedResult, Merge, RunName};
use offshoot_model::JsonText;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;

use super::merging::{Merging, OnFailure};
use crate::answer::{CallFailure, json};

pub(super) const WORDS: &str = "\
Make one answer of the results of children that have ended, and of values that you bring; without either, of all children \
that have ended. Our own strategies ask no model. The answer is kept as a value, under the name that is given back.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    /// `concatenate`, `structured`, `vote`, `summarize`, `sum`, `first` or `quorum:N`; or `plugin:NAME`, `plugin:NAME=PARAMETERS`
    /// for a merge of a plugin that the operator has installed.
    strategy: String,
    /// What becomes of children that did not complete; `fail` where absent.
    on_failure: Option<OnFailure>,
    /// Run ids or session keys, in the order that the answer keeps.
    #[serde(default)]
    runs: Vec<String>,
    /// Values from elsewhere, which come after those of the runs.
    #[serde(default)]
    results: Vec<Keyed>,
}

/// A value with the name of whoever it came from.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Keyed {
    /// The name.
    key: String,
    /// The value: any JSON.
    value: serde_json::Value,
}

pub(super) async fn call(client: &Client, arguments: Arguments) -> Result<JsonText, CallFailure> {
    let Arguments { strategy, on_failure, runs, results } = arguments;
    let results = results.into_iter();
    let merge = Merge {
        order: Merging { strategy, on_failure }.order(),
        runs: runs.into_iter().map(RunName).collect(),
        results: results
            .map(|Keyed { key, value }| KeyedResult { key, value: json(&value) })
            .collect(),
    };
    Ok(json(&client.call(merge).await?))
}
