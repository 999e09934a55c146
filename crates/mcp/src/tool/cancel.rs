//! The tool `sessions_cancel`.

use offshoot_door::{Cancel, Client, RunName};
use offshoot_model::JsonText;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;

use crate::answer::{CallFailure, json};

pub(super) const WORDS: &str = "End a session below this one, with everything below it.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    /// (Run id or session key.)
    run: String,
    /// Spare what is below it.
    #[serde(default)]
    only: bool,
}

pub(super) async fn call(client: &Client, arguments: Arguments) -> Result<JsonText, CallFailure> {
    let Arguments { run, only } = arguments;
    Ok(json(&client.call(Cancel { run: RunName(run), only }).await?))
}
