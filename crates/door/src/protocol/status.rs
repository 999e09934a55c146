//! The rights and limits of a caller.

use offshoot_model::{AgentId, MicroUsd, Rights, RunId, SessionKey};
use serde::{Deserialize, Serialize};

use super::CallerWord;

/// `status`: the caller itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {}

/// The answer to `status`. What no setting bounds is absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusAnswer {
    /// A run, or the operator.
    pub caller: CallerWord,
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The session key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// The running agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Levels below the root.
    pub depth: u32,
    /// The deepest level at which there may be a run.
    pub max_depth: u32,
    /// True if a spawn would be considered. It may be refused all the same.
    pub may_spawn: bool,
    /// The remaining budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetLeft>,
    /// The rights of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Rights>,
    /// The agents that it may spawn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentSummary>,
}

/// The remaining amounts; absent where there is no such budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetLeft {
    /// Tokens of all four kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The amount in dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<MicroUsd>,
}

/// An agent that may be spawned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentSummary {
    /// The name of the agent.
    pub id: AgentId,
    /// The purpose of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}
