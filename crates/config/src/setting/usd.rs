//! Amounts in dollars, read from their decimals so that no float is kept.

use offshoot_model::MicroUsd;
use serde_json::{Value, json};

use super::Scalar;
use crate::node::Node;

impl Scalar for MicroUsd {
    fn allowed() -> String {
        format!("an amount in dollars up to {}, with at most six decimals, such as 0.25", Self::MAX)
    }

    fn from_node(node: &Node) -> Option<Self> {
        node.decimal()?.parse().ok()
    }

    fn schema() -> Value {
        json!({ "type": "number", "minimum": 0, "maximum": Self::MAX.as_micros() / 1_000_000 })
    }

    fn example() -> Value {
        json!(2.5)
    }
}
