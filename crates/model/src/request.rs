//! A request for a child.

use std::num::NonZeroU32;
use std::sync::Arc;

use offshoot_session_key::AgentId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ContentHash, Isolation, JsonText, MicroUsd, Rights, TaskType, VariableRef};

/// A request for one child. Who asks is known from elsewhere, never from here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SpawnRequest {
    /// The task of the child. Must not be empty.
    pub task: Arc<str>,
    /// The agent; the caller's own where absent.
    pub agent: Option<AgentId>,
    /// A short name for people, 1 to 100 characters without control characters.
    pub label: Option<Arc<str>>,
    /// The type of the task: how long such tasks took and how they ended is counted by it.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub task_type: Option<TaskType>,
    /// Named values the child may read.
    pub context: Vec<ContextEntry>,
    /// A command of the caller's choosing, first the program. Needs the right `exec`.
    pub command: Option<Arc<[String]>>,
    /// Another model than the configured one.
    pub model: Option<String>,
    /// Another thinking level than the configured one.
    pub thinking: Option<String>,
    /// A shorter time limit; a longer one is cut to what the chain allows.
    pub run_timeout_seconds: Option<u64>,
    /// Fewer rights.
    pub tools: Option<Rights>,
    /// An explicit reservation.
    pub budget: Option<BudgetRequest>,
    /// The weight among children that are asked for together, by which the rest of the caller's budget is divided; 1 where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<NonZeroU32>,
    /// Refuses the request as `busy` where no slot is free. By default it waits for one.
    pub no_queue: bool,
    /// The deepest level that anything below the child may have; a deeper one is cut to what the chain allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<u32>,
    /// Exit codes of a command that mean success; those of the tree where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ok_exit: Option<Arc<[i32]>>,
    /// The format of the answer; that of the tree where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputFormat>,
    /// The form that its answer must have, as a JSON Schema; that of its agent where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<JsonText>,
    /// The folder in which it works; as its agent has it where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// The treatment of the session afterwards; as the caller's settings have it where absent. A session stays if one above it
    /// was asked to be kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleanup: Option<Cleanup>,
    /// The words of the task by which its agent was chosen. Set by the engine alone, and on no wire.
    #[serde(skip)]
    pub chosen_by: Arc<[String]>,
    /// The hash of all that the run is asked, where a merge asks for it. Set by the engine alone, and on no wire.
    #[serde(skip)]
    pub merges: Option<ContentHash>,
}

/// The treatment of a session once its result was handed over. The record of it stays either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[derive(Serialize, Deserialize, JsonSchema, strum::AsRefStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Cleanup {
    /// The session stays.
    #[default]
    Keep,
    /// The folder of the session is removed, and it is shown only on request.
    Delete,
}

impl Cleanup {
    /// True if the session stays, which the record need not say.
    pub fn is_keep(&self) -> bool {
        *self == Self::Keep
    }
}

/// The format of a command's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputFormat {
    /// As text.
    #[default]
    Text,
    /// As JSON where it is an object or an array, else as text.
    Json,
}

/// A named value for a child.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextEntry {
    /// The name the child knows it by: any text up to 200 characters.
    pub name: Arc<str>,
    /// The value.
    pub value: VariableRef,
}

/// The amount to reserve for a child. Absent means the configured share of what is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BudgetRequest {
    /// Tokens of all four kinds together.
    pub tokens: Option<u64>,
    /// The money in dollars.
    pub usd: Option<MicroUsd>,
}

/// The runs that a wait waits for: all of them, or one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitMode {
    /// Until each has ended.
    #[default]
    All,
    /// Until one has.
    Any,
}
