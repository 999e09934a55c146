//! Asking for a child.

use offshoot_model::{AgentId, BudgetRequest, Cleanup, Rights, RunId, SessionKey};
use serde::{Deserialize, Serialize};

/// `spawn`: one child of the caller. Only `task` is needed. Answered as soon as the child is admitted; its result comes
/// by `wait`, or as a new turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spawn {
    /// The task.
    pub task: String,
    /// The agent; the caller's own where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// A short name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Values of the caller that it may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<ContextGrant>,
    /// A command instead of an agent's own, first the program. Needs the right `exec`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// The folder in which it runs; the caller's where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Another model than the configured one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Another thinking level than the configured one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
    /// A shorter time limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_timeout_seconds: Option<u64>,
    /// Fewer rights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Rights>,
    /// An explicit reservation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetRequest>,
    /// False: refused `busy` where no slot is free, instead of queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<bool>,
    /// The treatment of its session afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup: Option<Cleanup>,
}

/// One value that a child may read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextGrant {
    /// The name by which the child knows it.
    pub name: String,
    /// The name by which the caller knows it; the same where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// The answer to `spawn`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spawned {
    /// The child.
    pub run_id: RunId,
    /// The session key.
    pub session_key: SessionKey,
}

impl Spawn {
    /// A child of the caller's own agent with this task.
    pub fn task(task: impl Into<String>) -> Self {
        Self { task: task.into(), ..Self::default() }
    }
}
