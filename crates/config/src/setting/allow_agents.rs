//! `allowAgents`: which agents may be spawned.

use offshoot_session_key::AgentId;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::{Scalar, Setting, read_items};
use crate::node::Node;
use crate::reader::Reader;

/// The agents that may be spawned. Where no list is set, only the agent itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowAgents {
    /// Every defined agent: `["*"]`.
    Any,
    /// The listed agents and no other; none at all if empty.
    List(Vec<AgentId>),
}

impl AllowAgents {
    /// True if this list allows nothing that the other one does not.
    pub fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Any) => true,
            (Self::Any, Self::List(_)) => false,
            (Self::List(ids), Self::List(others)) => ids.iter().all(|id| others.contains(id)),
        }
    }

    /// True if this agent is allowed. [`AllowAgents::Any`] allows defined agents, which the caller checks.
    pub fn allows(&self, agent: &AgentId) -> bool {
        match self {
            Self::Any => true,
            Self::List(ids) => ids.contains(agent),
        }
    }

    /// With these agents too.
    pub(crate) fn join<'a>(&mut self, agents: impl IntoIterator<Item = &'a AgentId>) {
        if let Self::List(ids) = self {
            for agent in agents {
                if !ids.contains(agent) {
                    ids.push(agent.clone());
                }
            }
        }
    }
}

impl Serialize for AllowAgents {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Any => serializer.collect_seq(["*"]),
            Self::List(ids) => serializer.collect_seq(ids.iter().map(AgentId::as_str)),
        }
    }
}

impl Setting for AllowAgents {
    fn read(node: &Node, cx: &mut Reader<'_>) -> Option<Self> {
        let ids = read_items(node, cx, "a list of agent ids, or [\"*\"]", |item, cx| {
            if item.text().as_deref() == Some("*") {
                return Some(None);
            }
            <AgentId as Setting>::read(item, cx).map(Some)
        })?;
        // A star among names allows what the star allows.
        Some(ids.into_iter().collect::<Option<_>>().map_or(Self::Any, Self::List))
    }

    fn schema() -> Value {
        json!({
            "type": "array",
            "items": { "anyOf": [{ "const": "*" }, <AgentId as Scalar>::schema()] },
        })
    }

    fn example() -> Value {
        json!(["*"])
    }

    fn trusted_words(&self) -> Vec<&str> {
        Vec::new()
    }
}
