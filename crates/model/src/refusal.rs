//! The answer no.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::JsonText;

/// A refused request. A refusal is an answer to the caller, not a failure of the program.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize, JsonSchema)]
#[error("{message}")]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    status: RefusalStatus,
    /// The rule, for programs.
    pub code: RefusalCode,
    /// The field of the request that is wrong; only with [`RefusalCode::InvalidRequest`].
    pub field: Option<String>,
    /// The rule, for people and models.
    pub message: String,
    /// Advice on what to do next.
    pub hint: Option<String>,
    // Boxed, so that an answer without one stays small.
    /// The setting that decided.
    pub governed_by: Option<Box<GovernedBy>>,
}

/// The kind of a refusal, which follows from its code: refused, or wrong in itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum RefusalStatus {
    Forbidden,
    Error,
}

/// The rules of admission, in the order in which they are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display, strum::AsRefStr)]
#[strum(serialize_all = "snake_case")]
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

impl fmt::Display for GovernedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, agent, value, origin } = self;
        write!(f, "{key} = {}", value.as_str())?;
        match agent {
            Some(agent) => write!(f, " of the agent `{agent}` ({origin})"),
            None => write!(f, " ({origin})"),
        }
    }
}

impl Refusal {
    /// A refusal that no setting governs.
    pub fn new(code: RefusalCode, message: impl Into<String>) -> Self {
        let status = match code {
            RefusalCode::InvalidRequest => RefusalStatus::Error,
            _ => RefusalStatus::Forbidden,
        };
        let message = message.into();
        Self { status, code, field: None, message, hint: None, governed_by: None }
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

    /// With the setting that decided, where there is one.
    #[must_use]
    pub fn governed_by(mut self, setting: Option<Box<GovernedBy>>) -> Self {
        self.governed_by = setting;
        self
    }
}
