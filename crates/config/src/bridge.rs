//! The bridge to the crate `config`: a layer from there, and the result back.

use ::config::{ConfigError, Map, Source, Value, ValueKind};
use indexmap::IndexMap;
use serde_json::Value as Json;

use crate::config::Config;
use crate::field::{Listing, Unset};
use crate::loader::Loader;
use crate::node::{Key, Node, NodeValue};
use crate::origin::{Origin, Valued};
use crate::section::Section;

impl Loader {
    /// Takes a table of the crate `config` as a layer, with the origin of each value: above all files, and below the environment
    /// and flags. Names are compared without regard to case, since that crate writes those of variables small; text is read as the
    /// key's type needs. A table of that crate has no order: give `preferredSubagents` as a list.
    #[must_use]
    pub fn layer(mut self, table: Map<String, Value>) -> Self {
        let mut origins = Vec::new();
        let node = node(Value::new(None, table), &mut origins);
        self.layers.push((node, origins));
        self
    }
}

/// A value as a node, whose offset is the number of its origin.
fn node(value: Value, origins: &mut Vec<Origin>) -> Node {
    let offset = origins.len();
    origins.push(Origin::Layer { name: value.origin().map(str::to_owned) });
    let value = match value.kind {
        ValueKind::Nil => NodeValue::Null,
        ValueKind::Boolean(value) => NodeValue::Bool(value),
        ValueKind::I64(number) => NodeValue::Integer(number.into()),
        ValueKind::I128(number) => NodeValue::Integer(number),
        ValueKind::U64(number) => NodeValue::Integer(number.into()),
        ValueKind::U128(number) => {
            number.try_into().map_or(NodeValue::Float(number.to_string()), NodeValue::Integer)
        }
        ValueKind::Float(number) => NodeValue::Float(number.to_string()),
        ValueKind::String(text) => NodeValue::Raw(text),
        ValueKind::Array(items) => {
            NodeValue::List(items.into_iter().map(|item| node(item, origins)).collect())
        }
        ValueKind::Table(table) => {
            let mut entries: Vec<_> = table.into_iter().collect();
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            let entry = |(name, value)| {
                let value = node(value, origins);
                (Key { name, offset: value.offset, any_case: true }, value)
            };
            NodeValue::Table(entries.into_iter().map(entry).collect())
        }
    };
    Node::new(value, offset)
}

/// The values that hold, as a file would have them, each with its origin: what is set, and the built-in values of the defaults.
/// Ceilings are not among them: they have had their effect. Nor are bounds of the computer, which no layer may set.
impl Source for Config {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, Value>, ConfigError> {
        let document = self.document();
        let agents = self.agents().map(|agent| table(agent, Unset::Omitted));
        let list: Vec<Value> = agents.collect();
        let defaults = table(&document.agents.defaults, Unset::BuiltIn);
        let agents = [("defaults", defaults), ("list", list.into())].map(named);
        let sections = [
            ("agents", Map::from_iter(agents).into()),
            ("runtimes", tables(&document.runtimes)),
            ("plugins", table(&document.plugins, Unset::Omitted)),
            ("audit", table(&document.audit, Unset::Omitted)),
            ("logs", table(&document.logs, Unset::Omitted)),
            ("notify", table(&document.notify, Unset::Omitted)),
            ("prices", tables(&document.prices)),
        ];
        Ok(sections.map(named).into())
    }
}

fn named((name, value): (&str, Value)) -> (String, Value) {
    (name.to_owned(), value)
}

fn tables(sections: &IndexMap<String, impl Section>) -> Value {
    let one = |(name, section): (&String, _)| (name.clone(), table(section, Unset::Omitted));
    sections.iter().map(one).collect::<Map<_, _>>().into()
}

fn table(section: &impl Section, unset: Unset) -> Value {
    let mut table = Map::new();
    for (key, Valued { value: json, origin }) in Listing::of(section, "", unset) {
        put(&mut table, &key, value(&json, &origin.to_string()));
    }
    table.into()
}

/// Puts a value behind a dotted key.
fn put(table: &mut Map<String, Value>, key: &str, value: Value) {
    let Some((first, rest)) = key.split_once('.') else {
        table.insert(key.to_owned(), value);
        return;
    };
    let inner = table.entry(first.to_owned()).or_insert_with(|| Map::<String, Value>::new().into());
    if let ValueKind::Table(inner) = &mut inner.kind {
        put(inner, rest, value);
    }
}

fn value(json: &Json, origin: &String) -> Value {
    let kind = match json {
        Json::Null => ValueKind::Nil,
        Json::Bool(value) => ValueKind::Boolean(*value),
        Json::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(number), ..) => ValueKind::U64(number),
            (_, Some(number), _) => ValueKind::I64(number),
            (.., number) => ValueKind::Float(number.expect("a number is an integer or a float")),
        },
        Json::String(text) => ValueKind::String(text.clone()),
        Json::Array(items) => {
            items.iter().map(|item| value(item, origin)).collect::<Vec<_>>().into()
        }
        Json::Object(entries) => {
            let entry = |(name, inner): (&String, _)| (name.clone(), value(inner, origin));
            entries.iter().map(entry).collect::<Map<_, _>>().into()
        }
    };
    Value::new(Some(origin), kind)
}
