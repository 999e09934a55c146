//! An agent in a few words, for one that may start it.

use std::sync::Arc;

use offshoot_session_key::AgentId;
use serde::{Deserialize, Serialize};

/// An agent that a session may start.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentSummary {
    /// The name of the agent.
    pub id: AgentId,
    /// The description in its definition.
    pub description: Option<Arc<str>>,
    /// The reason for which the session's own agent prefers it; none where it does not.
    pub why: Option<Arc<str>>,
}
