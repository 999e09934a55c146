//! TOML into the tree. The parser brings every place itself.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Key, Node, NodeValue, SyntaxError};

pub(super) fn parse(text: &str) -> Result<Node, Vec<SyntaxError>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(Node::new(entries(table.get_ref()), 0));
    }
    Err(errors
        .iter()
        .map(|error| SyntaxError {
            message: error.message().to_owned(),
            offset: error.span().map_or(0, |span| span.start),
        })
        .collect())
}

fn node(value: &Spanned<DeValue<'_>>) -> Node {
    let converted = match value.get_ref() {
        DeValue::String(text) => NodeValue::Text(text.to_string()),
        DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => NodeValue::Integer(number),
            // Beyond any bound of ours; as text it still shows in the message.
            Err(_) => NodeValue::Float(number.to_string()),
        },
        DeValue::Float(number) => NodeValue::Float(number.as_str().to_owned()),
        DeValue::Boolean(value) => NodeValue::Bool(*value),
        DeValue::Datetime(date) => NodeValue::Date(date.to_string()),
        DeValue::Array(items) => NodeValue::List(items.iter().map(node).collect()),
        DeValue::Table(table) => entries(table),
    };
    Node::new(converted, value.span().start)
}

fn entries(table: &DeTable<'_>) -> NodeValue {
    let mut entries: Vec<_> = table
        .iter()
        .map(|(key, value)| {
            let name = key.get_ref().to_string();
            (Key { name, offset: key.span().start, any_case: false }, node(value))
        })
        .collect();
    // The parser sorts by name; people read from the top.
    entries.sort_by_key(|(key, _)| key.offset);
    NodeValue::Table(entries)
}
