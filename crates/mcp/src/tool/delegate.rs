//! The tool `sessions_delegate`.

use offshoot_door::{Client, Delegate, Observed, Spawn};
use offshoot_model::{AgentId, JsonText};
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;

use super::child::Grant;
use crate::answer::{CallFailure, json};

pub(super) const WORDS: &str = "\
Start a child by the preferred agent that fits. `execute_directly`: do it yourself; `done` ends its `observation`.";

/// A task; or the number of one with a type that was done here.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    /// (All that it is told.)
    #[serde(default)]
    task: String,
    /// (The type of the task, by which it is counted how such tasks went.)
    #[serde(rename = "type")]
    task_type: Option<String>,
    /// (Which agent runs it, where that needs no choice.)
    agent_id: Option<String>,
    /// (A short name for people.)
    label: Option<String>,
    /// (Values that the child may read, as for sessions_spawn.)
    #[serde(default)]
    #[schemars(with = "Vec<NamedValue>")]
    context: Vec<Grant>,
    /// (The number of an observation, in place of all else.)
    done: Option<u32>,
    /// (With `done`: the task is not done.)
    #[serde(default)]
    failed: bool,
}

/// A value in the schema. The rest stands with sessions_spawn, and would be paid for twice.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is read as a grant, and only described by this")]
struct NamedValue {
    /// (The name of the value.)
    name: String,
}

pub(super) async fn call(client: &Client, arguments: Arguments) -> Result<JsonText, CallFailure> {
    let Arguments { task, task_type, agent_id, label, context, done, failed } = arguments;
    if let Some(observation) = done {
        return Ok(json(&client.call(Observed { observation, failed }).await?));
    }
    let task_type = task_type.as_deref().map(str::parse).transpose();
    let task_type = task_type.map_err(|error| CallFailure::invalid("type", error))?;
    let agent = agent_id.as_deref().map(AgentId::parse).transpose();
    let agent = agent.map_err(|error| CallFailure::invalid("agentId", error))?;
    let context = context.into_iter().map(Grant::request).collect();
    let spawn = Spawn { task_type, agent, label, context, ..Spawn::task(task) };
    Ok(json(&client.call(Delegate { spawn, choose_only: false }).await?))
}
