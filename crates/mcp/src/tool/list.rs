//! The tool `sessions_list`.

use offshoot_door::{Client, List};
use offshoot_model::JsonText;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;

use crate::answer::{CallFailure, json};

pub(super) const WORDS: &str =
    "This session's runs and all below them: state, depth, usage and cost.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    /// (The latest so many.)
    limit: Option<u32>,
}

pub(super) async fn call(client: &Client, arguments: Arguments) -> Result<JsonText, CallFailure> {
    let Arguments { limit } = arguments;
    Ok(json(&client.call(List { limit, ..List::default() }).await?))
}
