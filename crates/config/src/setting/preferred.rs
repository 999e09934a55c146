//! `preferredSubagents`: the agents to which an agent prefers to hand work, each with the reason.

use indexmap::IndexMap;
use offshoot_session_key::AgentId;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Scalar, Setting, is_agent_id};
use crate::node::{Key, Node, NodeValue};
use crate::problem::ProblemKind;
use crate::reader::Reader;

/// Agents in order of preference, each with what it is good for. In a file a list of `{ name: "why" }`, or one table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreferredSubagents(IndexMap<AgentId, String>);

impl PreferredSubagents {
    /// The agents alone.
    pub fn agents(&self) -> impl Iterator<Item = &AgentId> {
        self.0.keys()
    }

    /// The agents with the reason for which each is preferred.
    pub fn reasons(&self) -> impl Iterator<Item = (&AgentId, &str)> {
        self.0.iter().map(|(agent, why)| (agent, why.as_str()))
    }

    fn read_entries(&mut self, entries: &[(Key, Node)], cx: &mut Reader<'_>) -> bool {
        cx.no_duplicates(entries);
        let mut right = true;
        for (key, value) in entries {
            right &= cx.at_key(&key.name, |cx| {
                let Some(id) = AgentId::parse(&key.name).ok().filter(|_| is_agent_id(&key.name))
                else {
                    let found = format!("{:?}", key.name);
                    let allowed = <AgentId as Scalar>::allowed();
                    cx.report(key.offset, ProblemKind::WrongValue { found, allowed });
                    return false;
                };
                let why = <String as Setting>::read(value, cx);
                why.map(|why| self.0.insert(id, why)).is_some()
            });
        }
        right
    }
}

impl Serialize for PreferredSubagents {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // A list, because in JSON the order of a table says nothing.
        serializer.collect_seq(self.0.iter().map(|(id, why)| {
            Map::from_iter([(id.as_str().to_owned(), Value::String(why.clone()))])
        }))
    }
}

impl Setting for PreferredSubagents {
    fn read(node: &Node, cx: &mut Reader<'_>) -> Option<Self> {
        let mut preferred = Self::default();
        if let Some(entries) = node.table() {
            return preferred.read_entries(&entries, cx).then_some(preferred);
        }
        super::read_items(node, cx, "a list of { name = \"why\" }", |item, cx| {
            let right = match &item.value {
                NodeValue::Table(entries) => preferred.read_entries(entries, cx),
                _ => <AgentId as Setting>::read(item, cx)
                    .map(|id| preferred.0.entry(id).or_default())
                    .is_some(),
            };
            right.then_some(())
        })?;
        Some(preferred)
    }

    fn schema() -> Value {
        let id = <AgentId as Scalar>::schema();
        let table = json!({
            "type": "object",
            "propertyNames": id,
            "additionalProperties": <String as Scalar>::schema(),
        });
        json!({ "anyOf": [table, { "type": "array", "items": { "anyOf": [table, id] } }] })
    }

    fn example() -> Value {
        json!([{ "scout": "finds where a thing is defined" }])
    }

    fn trusted_words(&self) -> Vec<&str> {
        Vec::new()
    }
}
