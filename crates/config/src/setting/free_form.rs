//! Tables that are passed through to a runtime without being understood.

use std::ops::Deref;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Setting;
use crate::node::Node;
use crate::reader::Reader;

/// A table whose keys are known to its receiver alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FreeForm(Map<String, Value>);

impl Deref for FreeForm {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Map<String, Value> {
        &self.0
    }
}

impl Setting for FreeForm {
    fn read(node: &Node, cx: &mut Reader<'_>) -> Option<Self> {
        let Some(entries) = node.table() else {
            cx.wrong(node, "a table");
            return None;
        };
        Some(Self(entries.iter().map(|(key, value)| (key.name.clone(), value.to_json())).collect()))
    }

    fn schema() -> Value {
        json!({ "type": "object" })
    }

    fn example() -> Value {
        json!({})
    }

    /// The texts below `command` and `args`: so servers and hooks name their programs.
    fn programs(&self) -> Vec<&str> {
        let mut words = Vec::new();
        self.iter().for_each(|(key, value)| collect(key, value, false, &mut words));
        words
    }
}

fn collect<'a>(key: &str, value: &'a Value, of_command: bool, words: &mut Vec<&'a str>) {
    let of_command = of_command || matches!(key, "command" | "args");
    match value {
        // A command may be a line for a shell.
        Value::String(text) if of_command => words.extend(text.split_whitespace().chain([&**text])),
        Value::Array(items) => items.iter().for_each(|item| collect("", item, of_command, words)),
        Value::Object(table) => {
            table.iter().for_each(|(key, value)| collect(key, value, of_command, words));
        }
        _ => {}
    }
}
