//! The tool `sessions_delegate`.

use offshoot_door::{Client, Delegate, Spawn};
use offshoot_model::JsonText;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;

use super::child::Grant;
use crate::answer::{CallFailure, json};

pub(super) const WORDS: &str = "\
Start a child run by the preferred agent that fits the task. The answer `execute_directly` says that none fits or may run: do it yourself.";

/// A task, and no agent: one that is named needs no choice.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    /// (All that it is told.)
    task: String,
    /// (A short name for people.)
    label: Option<String>,
    /// (Values that the child may read, as for sessions_spawn.)
    #[serde(default)]
    #[schemars(with = "Vec<NamedValue>")]
    context: Vec<Grant>,
}

/// A value in the schema. The rest stands with sessions_spawn, and would be paid for twice.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is read as a grant, and only described by this")]
struct NamedValue {
    /// (The name of the value.)
    name: String,
}

pub(super) async fn call(client: &Client, arguments: Arguments) -> Result<JsonText, CallFailure> {
    let Arguments { task, label, context } = arguments;
    let context = context.into_iter().map(Grant::request).collect();
    let spawn = Spawn { label, context, ..Spawn::task(task) };
    Ok(json(&client.call(Delegate { spawn, choose_only: false }).await?))
}
