//! The tool `sessions_send`.

use offshoot_door::{Client, RunName, Send};
use offshoot_model::JsonText;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;

use crate::answer::{CallFailure, json};

pub(super) const WORDS: &str = "\
Send a message into a running session below this one.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    /// (Run id or session key.)
    to: String,
    /// (The message.)
    text: String,
}

pub(super) async fn call(client: &Client, arguments: Arguments) -> Result<JsonText, CallFailure> {
    let Arguments { to, text } = arguments;
    Ok(json(&client.call(Send { to: RunName(to), text }).await?))
}
