//! The folder in which an agent works.

use offshoot_model::Isolation;
use serde_json::{Value, json};

use super::Scalar;
use crate::node::Node;

impl Scalar for Isolation {
    fn allowed() -> String {
        format!("one of {}", Isolation::FORMS)
    }

    fn from_node(node: &Node) -> Option<Self> {
        node.text()?.parse().ok()
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^(none|copy|worktree(:[^-\\s][^\\s]*)?)$" })
    }

    fn example() -> Value {
        json!("worktree")
    }
}
