//! The grant of a run at its admission.

mod terms;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AgentId, MicroUsd, Rights};

/// A budget reserved for one run and everything below it. `None` bounds nothing; zero is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetGrant {
    /// Tokens of all four kinds together.
    pub tokens: Option<u64>,
    /// The money in dollars.
    pub usd: Option<MicroUsd>,
}

impl BudgetGrant {
    /// Returns a budget of so many tokens and millionths of a dollar.
    pub fn new(tokens: Option<u64>, micro_usd: Option<u64>) -> Self {
        Self { tokens, usd: micro_usd.map(MicroUsd::from_micros) }
    }
}

/// The units in which a run draws from its parent's budget as it starts, and more while it runs. Nothing of these is
/// reserved at its admission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Pooled {
    /// True if the run draws tokens.
    pub tokens: bool,
    /// True if the run draws money.
    pub usd: bool,
}

impl Pooled {
    /// True if nothing is drawn.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// The terms a run lives under, fixed when it was admitted and recorded with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// The deepest level anything below this run may have.
    pub max_depth: u32,
    /// True if the run may ask for children at all.
    pub may_spawn: bool,
    /// The agents that it may name when it asks for one; empty where only its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub agents: Vec<AgentId>,
    /// The rights of the run.
    pub tools: Arc<Rights>,
    /// The reserved budget.
    pub budget: BudgetGrant,
    /// The dollars that all runs of the tree may cost together whose dollars no budget bounds: those of `budget` are a part of them. None
    /// where a budget bounds the run, and in records that do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_usd: Option<MicroUsd>,
    /// The units that it draws from its parent's budget as it starts; none in records that do not say it.
    #[serde(default, skip_serializing_if = "Pooled::is_none")]
    pub pooled: Pooled,
    /// Starting and running, not queued or waiting; 0 = none.
    pub run_timeout_seconds: u64,
    /// Without any sign of life while running; 0 = none.
    pub idle_timeout_seconds: u64,
    /// Between the request to stop and the kill.
    pub grace_seconds: u64,
    /// Bytes that it may answer with; 0 = no limit, as in records that do not say it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub max_output_bytes: u64,
    /// Bytes of memory; 0 = no limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub max_memory_bytes: u64,
    /// Files that one of its processes may have open; 0 = no limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub max_open_files: u64,
    /// Seconds of CPU time that one of its processes may use; 0 = no limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub max_cpu_seconds: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Grant {
    /// Terms that bound nothing but depth 1, for roots that only hold pieces and for tests.
    pub fn unbounded() -> Self {
        Self {
            max_depth: 1,
            may_spawn: true,
            agents: Vec::new(),
            tools: Arc::default(),
            budget: BudgetGrant::default(),
            default_usd: None,
            pooled: Pooled::default(),
            run_timeout_seconds: 0,
            idle_timeout_seconds: 0,
            grace_seconds: 5,
            max_output_bytes: 0,
            max_memory_bytes: 0,
            max_open_files: 0,
            max_cpu_seconds: 0,
        }
    }
}
