//! A run in a tree.

use offshoot_model::{
    AgentId, BackOff, Cost, Reason, RunId, RunStatus, SessionKey, Timestamp, TreeHolds, TreeNode,
    Usage, from_rfc3339, rfc3339,
};
use serde::{Deserialize, Serialize};

use super::Word;

/// A run with what is below it, as a reader of any version sees it.
#[serde_with::skip_serializing_none]
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
    pub label: Option<String>,
    /// The status of the run.
    pub status: Word<RunStatus>,
    /// The reason why it ended.
    pub reason: Option<EndReason>,
    /// The last words in which it reported how it goes. Absent from the answers of earlier versions.
    pub reported: Option<String>,
    /// The reasons why nothing more of the tree starts, at the topmost run of an answer. Absent from the answers of earlier versions.
    #[serde(flatten)]
    pub holds: TreeHolds,
    /// The other attempt that the run waits for. Absent from the answers of earlier versions.
    pub parked: Option<WireParked>,
    /// The time since which a request of the run to a model waits for room in the budget. Absent from the answers of earlier versions, as the
    /// next one.
    #[serde(default, serialize_with = "rfc3339", deserialize_with = "from_rfc3339")]
    pub at_cap_since: Option<Timestamp>,
    /// The wait of the run before its next call to a service that has refused or broken off the last one.
    pub backs_off: Option<BackOff>,
    /// Levels below the root.
    pub depth: u32,
    /// The run that asked for it.
    pub parent: Option<RunId>,
    /// RFC 3339.
    pub started_at: Option<String>,
    /// RFC 3339.
    pub ended_at: Option<String>,
    /// From start to end.
    pub execution_time_ms: Option<u64>,
    /// The time since it was asked for. Absent from the answers of earlier versions, as the next two.
    pub age_ms: Option<u64>,
    /// The time since its start, while it is not over.
    pub running_ms: Option<u64>,
    /// The time since its last sign of life, where it holds a slot.
    pub silent_ms: Option<u64>,
    /// The usage of the run itself.
    pub own_usage: Usage,
    /// The cost of the run itself. Absent from the answers of earlier versions.
    pub own_cost: Option<Cost>,
    /// With everything below.
    pub subtree_usage: Usage,
    /// With everything below.
    pub cost: Cost,
    /// The reason why its folder is still there although it was to be removed.
    pub not_removed: Option<String>,
    /// In the order in which they were asked for.
    #[serde(default)]
    pub children: Vec<WireTreeNode>,
    /// The number of its children that are deleted and left out.
    #[serde(default, skip_serializing_if = "none")]
    pub deleted: u32,
}

/// A wait for another attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WireParked {
    /// The time at which the attempt before ended.
    #[serde(serialize_with = "rfc3339", deserialize_with = "from_rfc3339")]
    pub since: Timestamp,
    /// The time before which the attempt does not begin.
    #[serde(serialize_with = "rfc3339", deserialize_with = "from_rfc3339")]
    pub until: Timestamp,
    /// The number of the attempt that is to come.
    pub attempt: u32,
    /// The end of the attempt before, in words.
    pub after: String,
}

/// The reason why a run ended.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndReason {
    /// The word for programs.
    pub code: String,
    /// In words, with the cause that the run named.
    pub message: String,
    /// The exit code of its process, where that is how it ended; absent where it is 0.
    pub exit_code: Option<i32>,
    /// The signal that ended its process.
    pub signal: Option<i32>,
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
                message: match &node.cause {
                    Some(cause) => format!("{reason}: {cause}"),
                    None => reason.to_string(),
                },
                exit_code: match reason {
                    Reason::Completed { exit_code } => exit_code.filter(|code| *code != 0),
                    Reason::ExitCode { code } => Some(*code),
                    _ => None,
                },
                signal: match reason {
                    Reason::Signal { signal } => Some(*signal),
                    _ => None,
                },
            }),
            reported: node.reported.as_deref().map(str::to_owned),
            holds: node.holds.clone(),
            parked: node.parked.as_ref().map(|parked| WireParked {
                since: parked.since,
                until: parked.until,
                attempt: parked.attempt,
                after: parked.after.to_string(),
            }),
            at_cap_since: node.at_cap_since,
            backs_off: node.backs_off.clone(),
            depth: node.depth,
            parent: node.parent,
            started_at: node.started_at.map(|at| at.to_string()),
            ended_at: node.ended_at.map(|at| at.to_string()),
            execution_time_ms: node.execution_time_ms,
            age_ms: None,
            running_ms: None,
            silent_ms: None,
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
