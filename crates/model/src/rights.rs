//! The rights of an agent.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tools that no sub-agent gets, whatever is configured: they act on the whole system and not on a task.
pub const NEVER_FOR_SUB_AGENTS: [&str; 7] = [
    "agents_list",
    "cron",
    "gateway",
    "memory_get",
    "memory_search",
    "session_status",
    "whatsapp_login",
];

/// A set of rights: `read`, `write`, `exec`, `search`, `fetch`, `spawn`, `mcp:{server}/{tool}` and a runtime's own
/// names. Down a chain of agents rights only shrink: see [`Rights::narrowed_by`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Rights {
    /// The only ones permitted; `None` permits all that are not denied.
    pub allow: Option<BTreeSet<String>>,
    /// Never permitted, whatever `allow` says.
    pub deny: BTreeSet<String>,
}

impl Rights {
    /// Returns all rights.
    pub fn all() -> Self {
        Self::default()
    }

    /// True if this right is held.
    pub fn permits(&self, right: &str) -> bool {
        !self.deny.contains(right) && self.allow.as_ref().is_none_or(|allow| allow.contains(right))
    }

    /// Returns the rights that both permit. Never more than either.
    #[must_use]
    pub fn narrowed_by(&self, other: &Self) -> Self {
        let allow = match (&self.allow, &other.allow) {
            (Some(a), Some(b)) => Some(a.intersection(b).cloned().collect()),
            (Some(one), None) | (None, Some(one)) => Some(one.clone()),
            (None, None) => None,
        };
        Self { allow, deny: self.deny.union(&other.deny).cloned().collect() }
    }
}
