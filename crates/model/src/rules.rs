//! The limits that hold while a session spawns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The limits that a session's spawns are held to. Recorded with each root, and with a run that lives under other rules
/// than its parent, so that a later reader of the record can count again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rules {
    /// Runs below the session that may hold a slot at once, and runs of the whole tree where it is the root.
    pub max_concurrent: u32,
    /// The same for each depth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrent_per_level: Option<u32>,
    /// Live children of one session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_children: Option<u32>,
    /// Agents' spawns in the life of the tree.
    pub max_spawns: u32,
    /// Agents' spawns within a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_spawns_per_minute: Option<u32>,
    /// True if the end of the session cancels what is below it.
    pub cascade: bool,
    /// The deepest level, where a setting says it: nothing below may go deeper, whatever its own settings say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<u32>,
    /// The number of times that a chain of sessions may return to an agent with another in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_returns: Option<u32>,
    /// Attempts after the first, where a runtime had a fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// Faults in a row after which no run of that agent starts for a while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaker_failures: Option<u32>,
    /// The length of the cool-down, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaker_cooldown_seconds: Option<u64>,
    /// Seconds for all that is below the session, and for the whole tree where it is the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_seconds: Option<u64>,
    /// Seconds that a child may run; 0 is no limit. A child that was given less may give no more to its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_timeout_seconds: Option<u64>,
}
