//! The tool `sessions_report`.

use offshoot_door::{Client, Report};
use offshoot_model::JsonText;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;

use crate::answer::{CallFailure, json};

pub(super) const WORDS: &str = "Record a line of progress, for the parent session and for people.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    /// (The note.)
    text: String,
}

pub(super) async fn call(client: &Client, arguments: Arguments) -> Result<JsonText, CallFailure> {
    let Arguments { text } = arguments;
    Ok(json(&client.call(Report { text }).await?))
}
