//! The rights and limits of a caller.

use offshoot_model::{
    AgentId, AgentSummary, DelegationContext, MicroUsd, Rights, RunId, SessionKey,
};
use serde::{Deserialize, Serialize};

use super::CallerWord;

/// `status`: the caller itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {}

/// The answer to `status`. What no setting bounds is absent.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusAnswer {
    /// A run, or the operator.
    pub caller: CallerWord,
    /// The run.
    pub run_id: Option<RunId>,
    /// The session key.
    pub session_key: Option<SessionKey>,
    /// The running agent.
    pub agent: Option<AgentId>,
    /// Levels below the root.
    pub depth: u32,
    /// The runs above it, and the request at the top.
    pub delegation: Option<DelegationContext>,
    /// The deepest level at which there may be a run.
    pub max_depth: u32,
    /// True if a spawn would be considered. It may be refused all the same.
    pub may_spawn: bool,
    /// The remaining budget.
    pub budget: Option<BudgetLeft>,
    /// The rights of the run.
    pub tools: Option<Rights>,
    /// The agents that it may spawn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentSummary>,
}

/// The remaining amounts; absent where there is no such budget.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetLeft {
    /// Tokens of all four kinds.
    pub tokens: Option<u64>,
    /// The amount in dollars.
    pub usd: Option<MicroUsd>,
}
