//! `retries.on`: endings after which a run begins again.

use offshoot_model::RetryOn;
use serde_json::{Value, json};

use super::Scalar;
use crate::node::Node;

impl Scalar for RetryOn {
    fn allowed() -> String {
        "endings, separated by commas: exit:CODE, exit, signal, timeout, idle".into()
    }

    fn from_node(node: &Node) -> Option<Self> {
        match node.list() {
            Some(words) => {
                let words: Option<Vec<_>> = words.iter().map(Node::text).collect();
                words?.join(",").parse().ok()
            }
            None => node.text()?.parse().ok(),
        }
    }

    fn schema() -> Value {
        let words =
            json!({ "type": "string", "pattern": "^(exit(:[0-9]{1,3})?|signal|timeout|idle)$" });
        json!({ "anyOf": [{ "type": "string" }, { "type": "array", "items": words }] })
    }

    fn example() -> Value {
        json!(["exit:75", "timeout"])
    }
}
