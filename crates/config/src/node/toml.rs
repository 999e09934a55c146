//! TOML into the tree. The parser brings every place itself.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Key, Node, NodeValue, SyntaxError};

/// Parses a whole file.
pub(crate) fn parse(text: &str) -> Result<Node, Vec<SyntaxError>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(Node::new(entries(table.get_ref()), 0));
    }
    let syntax_error = |error: &toml::de::Error| {
        let span = error.span().unwrap_or_default();
        let twice = (error.message() == DUPLICATE).then(|| set_twice(text, &span)).flatten();
        let message = twice.or_else(|| without_quotes(text, span.start));
        let message = message.unwrap_or_else(|| error.message().to_owned());
        SyntaxError { message, offset: span.start }
    };
    Err(errors.iter().map(syntax_error).collect())
}

/// Says what to write where a word without quotes stands for a value: the parser takes its first letter for that of a number or of
/// `true`.
fn without_quotes(text: &str, at: usize) -> Option<String> {
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let (key, _) = text.get(line..)?.lines().next()?.split_once('=')?;
    let start = line + key.len() + 1;
    let value = text.get(start..)?.lines().next()?.trim_start();
    let end = value.find(|it: char| !it.is_alphanumeric() && it != '-' && it != '_');
    let word = &value[..end.unwrap_or(value.len())];
    let rest = value[word.len()..].trim_start();
    let is_whole = rest.is_empty() || rest.starts_with('#');
    let is_value = ["true", "false", "nan", "inf"].contains(&word);
    let is_word = word.starts_with(char::is_alphabetic) && !is_value && is_whole && at >= start;
    is_word.then(|| format!("text stands in quotes: {} = \"{word}\"", key.trim()))
}

/// The parser's word for a key that stands twice.
const DUPLICATE: &str = "duplicate key";

/// Says which key stands twice, and where it stands first: the parser tells the second place alone. The key is renamed there, so
/// that it can be found again, and then the first one beside it.
fn set_twice(text: &str, second: &Range<usize>) -> Option<String> {
    let name = text.get(second.clone())?.trim_matches(['"', '\'']);
    let mut marker = "renamed".to_owned();
    while text.contains(&marker) {
        marker.push('-');
    }
    let renamed = [text.get(..second.start)?, &marker, text.get(second.end..)?].concat();
    let (table, _) = DeTable::parse_recoverable(&renamed);
    let (path, first) = beside(table.get_ref(), &marker, name)?;
    let line = 1 + renamed.get(..first)?.matches('\n').count();
    Some(format!("{path}: set twice, first in line {line}"))
}

/// Returns the key of this name in the table that has the other key too, as a path, and where it stands.
fn beside(table: &DeTable<'_>, other: &str, name: &str) -> Option<(String, usize)> {
    if table.contains_key(other) {
        let (key, _) = table.iter().find(|(key, _)| key.get_ref() == name)?;
        return Some((name.to_owned(), key.span().start));
    }
    table.iter().find_map(|(key, value)| {
        let key = key.get_ref();
        match value.get_ref() {
            DeValue::Table(table) => {
                let (path, first) = beside(table, other, name)?;
                Some((format!("{key}.{path}"), first))
            }
            DeValue::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
                let DeValue::Table(table) = item.get_ref() else { return None };
                let (path, first) = beside(table, other, name)?;
                Some((format!("{key}[{index}].{path}"), first))
            }),
            _ => None,
        }
    })
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
