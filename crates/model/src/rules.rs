//! What is counted while a session spawns, and how high the count may go.

use serde::{Deserialize, Serialize};

/// The limits that a session's spawns are held to. Recorded with each root, and with a run that lives under other rules
/// than its parent, so that whoever reads the record later can count again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rules {
    /// Runs of the whole tree that may hold a slot at once. The root's holds for everybody.
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
    /// Whether the end of the session cancels what is below it.
    pub cascade: bool,
}
