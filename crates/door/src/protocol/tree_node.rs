//! A run in a tree.

use offshoot_model::{AgentId, Cost, RunId, RunStatus, SessionKey, TreeNode, Usage};
use serde::{Deserialize, Serialize};

use super::Word;

/// A run with what is below it, as a reader of any version sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WireTreeNode {
    /// The run.
    pub run_id: RunId,
    /// The session key.
    pub session_key: SessionKey,
    /// The running agent.
    pub agent: AgentId,
    /// A short name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The status of the run.
    pub status: Word<RunStatus>,
    /// The reason why it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<EndReason>,
    /// Levels below the root.
    pub depth: u32,
    /// The run that asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<RunId>,
    /// RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// From start to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_time_ms: Option<u64>,
    /// The usage of the run itself.
    pub own_usage: Usage,
    /// The cost of the run itself. Absent from the answers of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_cost: Option<Cost>,
    /// With everything below.
    pub subtree_usage: Usage,
    /// With everything below.
    pub cost: Cost,
    /// The reason why its folder is still there although it was to be removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_removed: Option<String>,
    /// In the order in which they were asked for.
    #[serde(default)]
    pub children: Vec<WireTreeNode>,
    /// The number of its children that are deleted and left out.
    #[serde(default, skip_serializing_if = "none")]
    pub deleted: u32,
}

/// The reason why a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndReason {
    /// The word for programs.
    pub code: String,
    /// In words.
    pub message: String,
}

impl From<&TreeNode> for WireTreeNode {
    fn from(node: &TreeNode) -> Self {
        Self {
            run_id: node.run_id,
            session_key: node.session_key.clone(),
            agent: node.agent.clone(),
            label: node.label.as_deref().map(str::to_owned),
            status: node.status.into(),
            reason: node.reason.as_ref().map(|reason| EndReason {
                code: reason.code().to_owned(),
                message: reason.to_string(),
            }),
            depth: node.depth,
            parent: node.parent,
            started_at: node.started_at.map(|at| at.to_string()),
            ended_at: node.ended_at.map(|at| at.to_string()),
            execution_time_ms: node.execution_time_ms,
            own_usage: node.own_usage,
            own_cost: Some(node.own_cost),
            subtree_usage: node.subtree_usage,
            cost: node.cost,
            not_removed: node.not_removed.as_deref().map(str::to_owned),
            children: node.children.iter().map(Self::from).collect(),
            deleted: 0,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn none(count: &u32) -> bool {
    *count == 0
}
