//! Tables that are passed through to a runtime without being understood.

use std::ops::Deref;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Scalar;
use crate::node::Node;

/// A table whose keys belong to whoever receives it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FreeForm(Map<String, Value>);

impl Deref for FreeForm {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Map<String, Value> {
        &self.0
    }
}

impl Scalar for FreeForm {
    fn allowed() -> String {
        "a table".into()
    }

    fn from_node(node: &Node) -> Option<Self> {
        let entries = node.table()?;
        Some(Self(entries.iter().map(|(key, value)| (key.name.clone(), value.to_json())).collect()))
    }

    fn schema() -> Value {
        json!({ "type": "object" })
    }

    fn example() -> Value {
        json!({})
    }
}
