//! The limits that hold while a session spawns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::RetryOn;

/// The limits that a session's spawns are held to. Recorded with each root, and with a run that lives under other rules
/// than its parent, so that a later reader of the record can count again.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rules {
    /// Runs below the session that may hold a slot at once, and runs of the whole tree where it is the root.
    pub max_concurrent: u32,
    /// The same for each depth.
    pub max_concurrent_per_level: Option<u32>,
    /// Live children of one session.
    pub max_children: Option<u32>,
    /// Agents' spawns in the life of the tree.
    pub max_spawns: u32,
    /// Agents' spawns within a minute.
    pub max_spawns_per_minute: Option<u32>,
    /// True if the end of the session cancels what is below it.
    pub cascade: bool,
    /// The deepest level, where a setting says it: nothing below may go deeper, whatever its own settings say.
    pub max_depth: Option<u32>,
    /// The number of times that a chain of sessions may return to an agent with another in between.
    pub max_returns: Option<u32>,
    /// Attempts after the first, where a runtime had a fault.
    pub retries: Option<u32>,
    /// Endings after which a run has another attempt, besides such faults.
    #[serde(default)]
    pub retry_on: Option<RetryOn>,
    /// Faults in a row after which no run of that agent starts for a while.
    pub breaker_failures: Option<u32>,
    /// The length of the cool-down, in seconds.
    pub breaker_cooldown_seconds: Option<u64>,
    /// Seconds for all that is below the session, and for the whole tree where it is the root.
    pub deadline_seconds: Option<u64>,
    /// True if time in which an account is parked does not count for the deadline.
    #[serde(default)]
    pub deadline_spares_parked: Option<bool>,
    /// Seconds that a child may run; 0 is no limit. A child that was given less may give no more to its own.
    pub run_timeout_seconds: Option<u64>,
}
