//! The answer no.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::JsonText;

/// A refused request. A refusal is an answer to the caller, not a failure of the program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, JsonSchema)]
#[error("{message}")]
#[schemars(from = "Wire")]
pub struct Refusal {
    /// The rule, for programs.
    pub code: RefusalCode,
    /// The rule, for people and models.
    pub message: String,
    /// Advice on what to do next.
    pub hint: Option<String>,
    /// The setting that decided. Boxed, so that an answer without one stays small.
    pub governed_by: Option<Box<GovernedBy>>,
    /// The field of the request that is wrong; only with [`RefusalCode::InvalidRequest`].
    pub field: Option<String>,
}

/// The rules of admission, in the order in which they are asked.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RefusalCode {
    /// The request is wrong in itself.
    InvalidRequest,
    /// The connection belongs to a supervisor, but to no run of it.
    UnknownCaller,
    /// The caller's session is over.
    CallerEnded,
    /// A sub-agent asks, and recursion is off.
    RecursionDisabled,
    /// The caller stands at the deepest level already.
    DepthLimit,
    /// The caller's definition forbids it any spawn.
    CannotDelegate,
    /// No such agent.
    UnknownAgent,
    /// There is such an agent, but not for this caller.
    AgentNotAllowed,
    /// The chain returns to an agent with another in between.
    Cycle,
    /// The same agent, task and context stand above too often.
    RepeatLimit,
    /// Too many live children of one session.
    ChildrenLimit,
    /// Too many spawns in the life of the tree.
    SpawnLimit,
    /// Too many spawns in a minute.
    SpawnRate,
    /// The request asks for rights that the caller lacks.
    ToolsNotGrantable,
    /// The reservation does not fit.
    BudgetExhausted,
    /// A budget in dollars, and a runtime whose cost has no bound.
    CostUnbounded,
    /// Too many runtime faults in a row.
    BreakerOpen,
    /// No free slot, and the caller does not want to wait.
    Busy,
    /// The operator has stopped admission for now.
    Paused,
    /// No rule of admission: the plugin that the request names is not there, or cannot be used in this tree.
    PluginUnusable,
}

/// The setting behind a refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GovernedBy {
    /// The key, as written in a configuration file.
    pub key: String,
    /// The agent whose setting it is; absent for the defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The value.
    pub value: JsonText,
    /// The place where it was set.
    pub origin: String,
}

impl Refusal {
    /// A refusal that no setting governs.
    pub fn new(code: RefusalCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, governed_by: None, field: None }
    }

    /// A request that is wrong in itself.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: Some(field.into()), ..Self::new(RefusalCode::InvalidRequest, message) }
    }

    /// With something to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// With the setting that decided.
    #[must_use]
    pub fn governed_by(mut self, setting: GovernedBy) -> Self {
        self.governed_by = Some(Box::new(setting));
        self
    }
}

impl RefusalCode {
    /// The word in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::UnknownCaller => "unknown_caller",
            Self::CallerEnded => "caller_ended",
            Self::RecursionDisabled => "recursion_disabled",
            Self::DepthLimit => "depth_limit",
            Self::CannotDelegate => "cannot_delegate",
            Self::UnknownAgent => "unknown_agent",
            Self::AgentNotAllowed => "agent_not_allowed",
            Self::Cycle => "cycle",
            Self::RepeatLimit => "repeat_limit",
            Self::ChildrenLimit => "children_limit",
            Self::SpawnLimit => "spawn_limit",
            Self::SpawnRate => "spawn_rate",
            Self::ToolsNotGrantable => "tools_not_grantable",
            Self::BudgetExhausted => "budget_exhausted",
            Self::CostUnbounded => "cost_unbounded",
            Self::BreakerOpen => "breaker_open",
            Self::Busy => "busy",
            Self::Paused => "paused",
            Self::PluginUnusable => "plugin_unusable",
        }
    }
}

impl fmt::Display for RefusalCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The shape on the wire: `status` says whether the request was refused or wrong in itself.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Wire {
    status: WireStatus,
    code: RefusalCode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    governed_by: Option<Box<GovernedBy>>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum WireStatus {
    Forbidden,
    Error,
}

impl Serialize for Refusal {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let status = match self.code {
            RefusalCode::InvalidRequest => WireStatus::Error,
            _ => WireStatus::Forbidden,
        };
        Wire {
            status,
            code: self.code,
            field: self.field.clone(),
            message: self.message.clone(),
            hint: self.hint.clone(),
            governed_by: self.governed_by.clone(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Refusal {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Wire { status: _, code, field, message, hint, governed_by } =
            Wire::deserialize(deserializer)?;
        Ok(Self { code, message, hint, governed_by, field })
    }
}
