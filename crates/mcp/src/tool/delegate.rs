//! The tool `sessions_delegate`.

use offshoot_door::{Client, Delegate, Spawn};
use offshoot_model::JsonText;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;

use super::child::Grant;
use crate::answer::{CallFailure, json};

pub(super) const WORDS: &str = "\
Start a child session run by the preferred agent that fits the words of the task. Where none fits, or no child is allowed, the answer \
is `execute_directly`: do the task yourself.";

/// A task, and no agent: one that is named needs no choice.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    /// All that it is told.
    task: String,
    /// (A short name for people.)
    label: Option<String>,
    /// Values that the child may read.
    #[serde(default)]
    context: Vec<Grant>,
}

pub(super) async fn call(client: &Client, arguments: Arguments) -> Result<JsonText, CallFailure> {
    let Arguments { task, label, context } = arguments;
    let context = context.into_iter().map(Grant::request).collect();
    let spawn = Spawn { label, context, ..Spawn::task(task) };
    Ok(json(&client.call(Delegate { spawn, choose_only: false }).await?))
}
