//! The tool `sessions_history`.

use offshoot_door::{Client, History, RunName};
use offshoot_model::JsonText;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;

use crate::answer::{CallFailure, json};

pub(super) const WORDS: &str = "\
What happened in this session or one below: turns, tool calls, reports and results.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    /// (Run id or session key.)
    run: String,
    /// A `seq` of an earlier answer.
    after: Option<u64>,
    /// (Entries at most.)
    limit: Option<u32>,
}

pub(super) async fn call(client: &Client, arguments: Arguments) -> Result<JsonText, CallFailure> {
    let Arguments { run, after, limit } = arguments;
    Ok(json(&client.call(History { run: RunName(run), after, limit }).await?))
}
