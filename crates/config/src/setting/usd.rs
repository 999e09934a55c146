//! Amounts in dollars, read from their decimals so that no float is kept.

use offshoot_model::MicroUsd;
use serde_json::{Value, json};

use super::Scalar;
use crate::node::Node;

impl Scalar for MicroUsd {
    fn allowed() -> String {
        "an amount in dollars with at most six decimals, such as 0.25".into()
    }

    fn from_node(node: &Node) -> Option<Self> {
        node.decimal()?.parse().ok()
    }

    fn schema() -> Value {
        json!({ "type": "number", "minimum": 0 })
    }

    fn example() -> Value {
        json!(2.5)
    }
}
