//! Tables that are passed through to a runtime without being understood.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Setting;
use crate::node::Node;
use crate::reader::Reader;

/// A table whose keys are known to its receiver alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, derive_more::Deref)]
pub struct FreeForm(Map<String, Value>);

impl Setting for FreeForm {
    fn read(node: &Node, cx: &mut Reader<'_>) -> Option<Self> {
        let entries = cx.or_wrong(node.table(), node, "a table")?;
        Some(Self(entries.iter().map(|(key, value)| (key.name.clone(), value.to_json())).collect()))
    }

    fn schema() -> Value {
        json!({ "type": "object" })
    }

    fn example() -> Value {
        json!({})
    }

    /// Returns all texts, as only the receiver knows which of them names a server, a hook, a helper or a key.
    fn trusted_words(&self) -> Vec<&str> {
        let mut words = Vec::new();
        self.values().for_each(|value| collect(value, &mut words));
        words
    }
}

fn collect<'a>(value: &'a Value, words: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => words.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, words)),
        Value::Object(table) => table.values().for_each(|value| collect(value, words)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
