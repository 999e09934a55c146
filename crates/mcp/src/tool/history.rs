//! `sessions_history`.

use offshoot_door::{Client, History, RunName};
use offshoot_model::JsonText;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;

use crate::answer::{CallFailure, json};

pub(super) const WORDS: &str = "\
What happened in a session below this one, or in this one: turns, tool calls, reports and results, in order.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    /// Run id or session key.
    run: String,
    /// Only what came after this number: `seq` of the last entry of an earlier answer.
    after: Option<u64>,
    /// At most so many entries.
    limit: Option<u32>,
}

pub(super) async fn call(client: &Client, arguments: Arguments) -> Result<JsonText, CallFailure> {
    let Arguments { run, after, limit } = arguments;
    Ok(json(&client.call(History { run: RunName(run), after, limit }).await?))
}
