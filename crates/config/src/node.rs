//! One tree for every notation, in which each key and value knows its place in the text.
//!
//! TOML, JSON5, environment variables and flags all become this tree, so there is one validator and one set of
//! messages. Text from the environment or a flag has no type of its own; it is [`NodeValue::Raw`] and becomes what the
//! asked-for type needs.

mod json5;
mod toml;
mod yaml;

use std::borrow::Cow;

use serde_json::{Number, Value};

pub(crate) use self::json5::parse_file as parse_json5;
pub(crate) use self::toml::parse as parse_toml;

/// A value and where it begins, in bytes of the text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) value: NodeValue,
    pub(crate) offset: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NodeValue {
    Null,
    Bool(bool),
    Integer(i128),
    /// As it was written, or as short as it can be written: no float is kept.
    Float(String),
    Text(String),
    Date(String),
    List(Vec<Node>),
    Table(Vec<(Key, Node)>),
    /// Text without a type.
    Raw(String),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) offset: usize,
    /// Names of environment variables are compared without regard to case.
    pub(crate) any_case: bool,
}

/// A text that is not TOML or JSON5.
#[derive(Debug, PartialEq)]
pub(crate) struct SyntaxError {
    pub(crate) message: String,
    pub(crate) offset: usize,
}

/// Parses YAML that begins at this place of its file.
pub(crate) fn parse_front_matter(text: &str, at: usize) -> Result<Node, SyntaxError> {
    let mut node =
        yaml::parse(text).map_err(|error| SyntaxError { offset: error.offset + at, ..error })?;
    node.move_to(&mut |offset| offset + at);
    Ok(node)
}

impl Key {
    pub(crate) fn is(&self, known: &str) -> bool {
        self.name == known || (self.any_case && self.name.eq_ignore_ascii_case(known))
    }
}

impl Node {
    pub(crate) fn new(value: NodeValue, offset: usize) -> Self {
        Self { value, offset }
    }

    /// The value behind a name, as a table.
    pub(crate) fn behind(self, name: &str, any_case: bool) -> Self {
        let key = Key { name: name.to_owned(), offset: 0, any_case };
        Self::new(NodeValue::Table(vec![(key, self)]), 0)
    }

    /// Gives it and all in it another place, in the order of writing: a value, then within a table each key before its value.
    fn move_to(&mut self, place: &mut impl FnMut(usize) -> usize) {
        self.offset = place(self.offset);
        match &mut self.value {
            NodeValue::List(items) => items.iter_mut().for_each(|item| item.move_to(place)),
            NodeValue::Table(entries) => entries.iter_mut().for_each(|(key, value)| {
                key.offset = place(key.offset);
                value.move_to(place);
            }),
            _ => {}
        }
    }

    /// Untyped text as JSON5, all of it in the place of the text.
    fn parse_raw(&self, text: &str) -> Option<NodeValue> {
        let mut node = json5::parse(text).ok()?;
        node.move_to(&mut |_| self.offset);
        Some(node.value)
    }

    /// A value that a program handed in. Text keeps its type open, as in a flag.
    pub(crate) fn from_json(value: &Value) -> Self {
        let value = match value {
            Value::Null => NodeValue::Null,
            Value::Bool(value) => NodeValue::Bool(*value),
            Value::Number(number) => {
                let text = number.to_string();
                text.parse().map_or(NodeValue::Float(text), NodeValue::Integer)
            }
            Value::String(text) => NodeValue::Raw(text.clone()),
            Value::Array(items) => NodeValue::List(items.iter().map(Self::from_json).collect()),
            Value::Object(entries) => {
                let key = |name: &String| Key { name: name.clone(), offset: 0, any_case: false };
                let entries = entries.iter();
                let entries = entries.map(|(name, value)| (key(name), Self::from_json(value)));
                NodeValue::Table(entries.collect())
            }
        };
        Self::new(value, 0)
    }

    pub(crate) fn bool(&self) -> Option<bool> {
        match &self.value {
            NodeValue::Bool(value) => Some(*value),
            NodeValue::Raw(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// Returns a text with a duration as its number of seconds, rounded up: `90s`, `1h30m`.
    pub(crate) fn seconds(&self) -> Option<Self> {
        let (NodeValue::Text(text) | NodeValue::Raw(text)) = &self.value else { return None };
        let seconds = offshoot_model::parse_seconds(text)?;
        Some(Self::new(NodeValue::Integer(seconds.into()), self.offset))
    }

    /// True for what can only be a text.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self.value, NodeValue::Text(_))
    }

    pub(crate) fn integer(&self) -> Option<i128> {
        match &self.value {
            NodeValue::Integer(value) => Some(*value),
            NodeValue::Raw(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// A number as decimal text without an exponent.
    pub(crate) fn decimal(&self) -> Option<String> {
        let text = match &self.value {
            NodeValue::Integer(value) => return Some(value.to_string()),
            NodeValue::Float(text) | NodeValue::Raw(text) => text,
            _ => return None,
        };
        if text.contains(['e', 'E']) {
            // The shortest decimals that mean the same float, which is what was written.
            return text.parse::<f64>().ok().map(|number| number.to_string());
        }
        Some(text.clone())
    }

    pub(crate) fn text(&self) -> Option<Cow<'_, str>> {
        match &self.value {
            NodeValue::Text(text) | NodeValue::Raw(text) => Some(Cow::Borrowed(text)),
            _ => None,
        }
    }

    /// A list; in untyped text either a JSON5 list or words between commas.
    pub(crate) fn list(&self) -> Option<Cow<'_, [Self]>> {
        match &self.value {
            NodeValue::List(items) => Some(Cow::Borrowed(items)),
            NodeValue::Raw(text) if text.trim_start().starts_with('[') => {
                let NodeValue::List(items) = self.parse_raw(text)? else { return None };
                Some(Cow::Owned(items))
            }
            NodeValue::Raw(text) => Some(Cow::Owned(
                text.split(',')
                    .map(str::trim)
                    .filter(|word| !word.is_empty())
                    .map(|word| Self::new(NodeValue::Raw(word.to_owned()), self.offset))
                    .collect(),
            )),
            _ => None,
        }
    }

    /// A table; in untyped text a JSON5 object.
    pub(crate) fn table(&self) -> Option<Cow<'_, [(Key, Self)]>> {
        match &self.value {
            NodeValue::Table(entries) => Some(Cow::Borrowed(entries)),
            NodeValue::Raw(text) if text.trim_start().starts_with('{') => {
                let NodeValue::Table(entries) = self.parse_raw(text)? else { return None };
                Some(Cow::Owned(entries))
            }
            _ => None,
        }
    }

    /// As JSON, for what is passed through without being understood.
    pub(crate) fn to_json(&self) -> Value {
        match &self.value {
            NodeValue::Null => Value::Null,
            NodeValue::Bool(value) => Value::Bool(*value),
            NodeValue::Integer(value) => Number::from_i128(*value).into(),
            NodeValue::Float(text) => text.parse().ok().and_then(Number::from_f64).into(),
            NodeValue::Text(text) | NodeValue::Date(text) | NodeValue::Raw(text) => {
                Value::String(text.clone())
            }
            NodeValue::List(items) => Value::Array(items.iter().map(Self::to_json).collect()),
            NodeValue::Table(entries) => Value::Object(
                entries.iter().map(|(key, value)| (key.name.clone(), value.to_json())).collect(),
            ),
        }
    }

    /// Returns the value for a message: short, and never more than a line.
    pub(crate) fn found(&self) -> String {
        const LONGEST: usize = 60;
        match &self.value {
            NodeValue::Null => "null".into(),
            NodeValue::Bool(value) => value.to_string(),
            NodeValue::Integer(value) => value.to_string(),
            NodeValue::Float(text) | NodeValue::Date(text) => text.clone(),
            NodeValue::Text(text) | NodeValue::Raw(text) => {
                let short: String = text.chars().take(LONGEST).collect();
                let more = if short.len() < text.len() { "…" } else { "" };
                format!("{short:?}{more}")
            }
            NodeValue::List(_) => "a list".into(),
            NodeValue::Table(_) => "a table".into(),
        }
    }
}
