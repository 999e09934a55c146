//! The tool `sessions_merge`.

use offshoot_door::{Client, KeyedResult, Merge, RunName};
use offshoot_merge::{Asking, Strategy};
use offshoot_model::JsonText;
use rmcp::schemars::{self, JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::json_argument::JsonArgument;
use super::merging::{Merging, OnFailure};
use crate::answer::{CallFailure, json};

pub(super) const WORDS: &str = "\
Make one answer of the results of ended children and of values of yours, kept as the value that is named.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    #[schemars(schema_with = "strategy")]
    strategy: String,
    /// Children that did not complete: named (the default), left out, or taken as they are.
    on_failure: Option<OnFailure>,
    /// Default: all, in order.
    #[serde(default)]
    runs: Vec<String>,
    /// After those of the runs.
    #[serde(default)]
    results: Vec<Keyed>,
}

/// The schema of a strategy, which names those that there are.
fn strategy(_: &mut SchemaGenerator) -> Schema {
    // Those that are one and the same but for a word behind a colon stand in one.
    let names =
        Strategy::NAMES.join(", ").replace("structured, structured:base64", "structured[:base64]");
    let asking = Asking::OF_AGENTS.join(", ");
    let words = format!("{names}, {asking}, plugin:NAME[=PARAMETERS].");
    json_schema!({ "type": "string", "description": words })
}

/// A value with a name.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Keyed {
    /// (Its name.)
    key: String,
    /// As JSON.
    #[schemars(with = "String")]
    value: JsonArgument,
}

pub(super) async fn call(client: &Client, arguments: Arguments) -> Result<JsonText, CallFailure> {
    let Arguments { strategy, on_failure, runs, results } = arguments;
    let results = results.into_iter();
    let merge = Merge {
        order: Merging { strategy, on_failure }.order(),
        runs: runs.into_iter().map(RunName).collect(),
        results: results.map(|Keyed { key, value }| KeyedResult { key, value: value.0 }).collect(),
    };
    Ok(json(&client.call(merge).await?))
}
