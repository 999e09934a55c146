//! The tool `sessions_status`.

use offshoot_door::{Client, Status};
use offshoot_model::JsonText;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;

use crate::answer::{CallFailure, json};

pub(super) const WORDS: &str = "\
What this session may do: depth, children, the rest of its budget, rights, agents.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {}

pub(super) async fn call(client: &Client, arguments: Arguments) -> Result<JsonText, CallFailure> {
    let Arguments {} = arguments;
    Ok(json(&client.call(Status {}).await?))
}
