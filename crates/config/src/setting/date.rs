//! A calendar date.

use serde::Serialize;
use serde_json::{Value, json};

use super::Scalar;
use crate::node::{Node, NodeValue};

/// A day as `2026-01-31`. Kept as text: it is shown, never computed with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, derive_more::Display)]
pub struct Date(String);

impl Date {
    /// Year, month and day with dashes.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Scalar for Date {
    fn allowed() -> String {
        "a date such as 2026-01-31".into()
    }

    fn from_node(node: &Node) -> Option<Self> {
        let text = match &node.value {
            NodeValue::Date(text) | NodeValue::Text(text) | NodeValue::Raw(text) => text,
            _ => return None,
        };
        // TOML's own notion of a date knows the length of every month.
        let date: toml::value::Datetime = text.parse().ok()?;
        (date.date.is_some() && date.time.is_none()).then(|| Self(text.clone()))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$" })
    }

    fn example() -> Value {
        json!("2026-01-31")
    }
}
