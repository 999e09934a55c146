//! What somebody asks for.

use std::sync::Arc;

use offshoot_session_key::AgentId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{MicroUsd, Rights, VariableRef};

/// A request for one child. Who asks is known from elsewhere, never from here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SpawnRequest {
    /// What the child is to do. Must not be empty.
    pub task: Arc<str>,
    /// Which agent; the caller's own where absent.
    pub agent: Option<AgentId>,
    /// A short name for people, 1 to 100 characters without control characters.
    pub label: Option<Arc<str>>,
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
    /// Whether to wait for a slot (the default) or be refused `busy`.
    pub no_queue: bool,
    /// What becomes of its session afterwards; what the caller's terms say where absent. Whatever is below one that
    /// somebody asked to keep stays too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleanup: Option<Cleanup>,
}

/// What becomes of a session once its result was handed over. The record of it stays either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cleanup {
    /// It stays.
    #[default]
    Keep,
    /// Its own folder is removed, and it is shown only to whoever asks for everything.
    Delete,
}

impl Cleanup {
    /// Whether it stays, which the record need not say.
    pub fn is_keep(&self) -> bool {
        *self == Self::Keep
    }
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

/// How much to reserve for a child. Absent means the configured share of what is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BudgetRequest {
    /// Tokens of all four kinds together.
    pub tokens: Option<u64>,
    /// Money.
    pub usd: Option<MicroUsd>,
}
