//! Agent ids, and other names that follow their rule.

use offshoot_session_key::AgentId;
use serde_json::{Value, json};

use super::Scalar;
use crate::node::Node;

/// Names of runtimes follow the rule of agent ids too: they stand in the same places.
pub(crate) fn is_agent_id(text: &str) -> bool {
    // The parser trims and lower-cases; a file says what it means.
    AgentId::parse(text).is_ok_and(|id| id.as_str() == text)
}

impl Scalar for AgentId {
    fn allowed() -> String {
        "an agent id: a lower-case letter or digit, then up to 63 of a-z, 0-9, _ and -".into()
    }

    fn from_node(node: &Node) -> Option<Self> {
        let text = node.text()?;
        is_agent_id(&text).then(|| Self::parse(&text).ok())?
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,63}$" })
    }

    fn example() -> Value {
        json!("scout")
    }
}
