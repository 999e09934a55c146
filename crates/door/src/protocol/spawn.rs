//! Asking for a child.

use std::num::NonZeroU32;
use std::path::PathBuf;

use offshoot_model::{
    AgentId, BudgetRequest, Cleanup, Isolation, JsonText, LoweredLimit, OnNeedFailed, OutputFormat,
    Rights, RunId, SessionKey, TaskType, path_text,
};
use serde::{Deserialize, Serialize};

/// `spawn`: one child of the caller. Only `task` is needed. Answered as soon as the child is admitted; its result comes
/// by `wait`, or as a new turn.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spawn {
    /// The task.
    pub task: String,
    /// The agent; the caller's own where absent.
    pub agent: Option<AgentId>,
    /// A short name for people.
    pub label: Option<String>,
    /// The type of the task, by which it is counted how such tasks ended.
    #[serde(rename = "type")]
    pub task_type: Option<TaskType>,
    /// Values of the caller that it may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<ContextGrant>,
    /// The part of a value of the caller that it reads as its input, in place of its task.
    pub input: Option<SpawnInput>,
    /// A command instead of an agent's own, first the program. Needs the right `exec`.
    pub command: Option<Vec<String>>,
    /// The folder in which it runs; the caller's where absent.
    #[serde(default, with = "path_text")]
    pub cwd: Option<PathBuf>,
    /// Another model than the configured one.
    pub model: Option<String>,
    /// Another thinking level than the configured one.
    pub thinking: Option<String>,
    /// A shorter time limit.
    pub run_timeout_seconds: Option<u64>,
    /// Fewer rights.
    pub tools: Option<Rights>,
    /// An explicit reservation.
    pub budget: Option<BudgetRequest>,
    /// The weight among the children of a `spawn_many`, by which the budget is divided; 1 where absent.
    pub weight: Option<NonZeroU32>,
    /// False: refused `busy` where no slot is free, instead of queued.
    pub queue: Option<bool>,
    /// The deepest level that anything below it may have.
    pub max_depth: Option<u32>,
    /// Exit codes of its command that mean success; those of the tree where absent.
    pub ok_exit: Option<Vec<i32>>,
    /// The format of its answer; that of the tree where absent.
    pub output: Option<OutputFormat>,
    /// The form that its answer must have, as a JSON Schema; that of its agent where absent.
    pub schema: Option<JsonText>,
    /// The folder in which it works, where that is to be one of its own: `worktree`, `worktree:COMMIT` or `copy`; as its agent has it
    /// where absent. `none` takes nothing away from that.
    pub isolation: Option<Isolation>,
    /// The treatment of its session afterwards.
    pub cleanup: Option<Cleanup>,
    /// Of one of the `children` of a `spawn_many`: the name by which others of them need it.
    pub id: Option<String>,
    /// Of one of the `children` of a `spawn_many`: the ids of those that it needs. It starts when these have completed, and reads the
    /// answer of `a` as the value `need_a`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// The fate of it when one that it needs does not complete; it is skipped where absent.
    #[serde(default, skip_serializing_if = "OnNeedFailed::is_skip")]
    pub on_need_failed: OnNeedFailed,
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

/// Part of a value, as the input of a child.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpawnInput {
    /// The caller's name for the value.
    pub name: String,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
    /// The first so many bytes of the value come before them.
    #[serde(default)]
    pub header: u64,
}

/// The answer to `spawn`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spawned {
    /// The child.
    pub run_id: RunId,
    /// The session key.
    pub session_key: SessionKey,
    /// The limits of which it got less than was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lowered: Vec<LoweredLimit>,
    /// The terms that are not as those of its parent, a line each, such as `children: down to depth 3 → none`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}

impl Spawn {
    /// A child of the caller's own agent with this task.
    pub fn task(task: impl Into<String>) -> Self {
        Self { task: task.into(), ..Self::default() }
    }
}
