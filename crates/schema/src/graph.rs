//! The parts of a schema and how they lead into each other.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::SchemaError;

/// More parts than this are no form that a person or a model has written.
const PARTS: usize = 4096;

/// So many parts may lead into each other without going into the value.
const IN_PLACE: usize = 48;

/// So many parts in a row may be nested or referred to.
const DEEP: usize = 400;

/// The parts of a value that a part of a schema is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Into<'a> {
    /// The value itself.
    Same,
    /// The property of this name.
    Property(&'a str),
    /// All of its properties.
    Properties,
    /// All of its items.
    Items,
    /// No part, but a name or nothing.
    Nothing,
}

/// An edge to another part.
pub(crate) struct Part<'a> {
    pub(crate) into: Into<'a>,
    pub(crate) schema: &'a Value,
    path: String,
}

/// Checks sizes, depths and references.
pub(crate) fn check(root: &Value) -> Result<(), SchemaError> {
    let mut numbers: HashMap<*const Value, usize> = HashMap::from([(std::ptr::from_ref(root), 0)]);
    let mut paths = vec![String::new()];
    let mut deep = vec![0];
    let mut in_place: Vec<Vec<usize>> = Vec::new();
    let mut todo = std::collections::VecDeque::from([root]);
    while let Some(schema) = todo.pop_front() {
        let number = in_place.len();
        let mut same = Vec::new();
        for part in parts(root, schema, &paths[number])? {
            let next = numbers.len();
            let found = *numbers.entry(part.schema).or_insert_with(|| {
                paths.push(part.path.clone());
                deep.push(deep[number] + 1);
                todo.push_back(part.schema);
                next
            });
            if part.into == Into::Same {
                same.push(found);
            }
        }
        if numbers.len() > PARTS {
            return Err(SchemaError::whole(format!("it has more than {PARTS} parts")));
        }
        if deep[number] > DEEP {
            let message = format!("more than {DEEP} parts lead here, one into the other");
            return Err(SchemaError::new(&paths[number], message));
        }
        in_place.push(same);
    }
    rank(&in_place, &paths)
}

/// Checks that no part leads back to itself without going into the value, and that few lead into each other.
fn rank(in_place: &[Vec<usize>], paths: &[String]) -> Result<(), SchemaError> {
    let mut pending = vec![0_usize; in_place.len()];
    in_place.iter().flatten().for_each(|&to| pending[to] += 1);
    let mut depth = vec![0_usize; in_place.len()];
    let mut free: Vec<usize> = (0..pending.len()).filter(|&part| pending[part] == 0).collect();
    while let Some(part) = free.pop() {
        if depth[part] > IN_PLACE {
            let message =
                format!("more than {IN_PLACE} parts lead here without going into the value");
            return Err(SchemaError::new(&paths[part], message));
        }
        for &to in &in_place[part] {
            depth[to] = depth[to].max(depth[part] + 1);
            pending[to] -= 1;
            if pending[to] == 0 {
                free.push(to);
            }
        }
    }
    match pending.iter().position(|&pending| pending > 0) {
        None => Ok(()),
        Some(part) => {
            let message = "it leads back to itself without going into the value";
            Err(SchemaError::new(&paths[part], message))
        }
    }
}

/// Keywords whose value is a part about the same value, or an array or a table of such.
const SAME: [(&str, Shape); 9] = [
    ("allOf", Shape::List),
    ("anyOf", Shape::List),
    ("oneOf", Shape::List),
    ("not", Shape::One),
    ("if", Shape::One),
    ("then", Shape::One),
    ("else", Shape::One),
    ("dependentSchemas", Shape::Table),
    ("dependencies", Shape::Table),
];

/// Keywords about parts of the value.
const WITHIN: [(&str, Shape, Into<'static>); 12] = [
    ("patternProperties", Shape::Table, Into::Properties),
    ("additionalProperties", Shape::One, Into::Properties),
    ("unevaluatedProperties", Shape::One, Into::Properties),
    ("propertyNames", Shape::One, Into::Nothing),
    ("items", Shape::OneOrList, Into::Items),
    ("prefixItems", Shape::List, Into::Items),
    ("additionalItems", Shape::One, Into::Items),
    ("unevaluatedItems", Shape::One, Into::Items),
    ("contains", Shape::One, Into::Items),
    ("contentSchema", Shape::One, Into::Nothing),
    ("$defs", Shape::Table, Into::Nothing),
    ("definitions", Shape::Table, Into::Nothing),
];

/// The form of a keyword's value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    One,
    List,
    OneOrList,
    Table,
}

/// Returns the parts that a part leads into. Keywords of the wrong form are left for the library to name.
pub(crate) fn parts<'a>(
    root: &'a Value,
    schema: &'a Value,
    path: &str,
) -> Result<Vec<Part<'a>>, SchemaError> {
    let fields = match schema {
        Value::Bool(_) => return Ok(Vec::new()),
        Value::Object(fields) => fields,
        _ => return Err(SchemaError::new(path, "a schema is an object, true or false")),
    };
    let mut parts = Vec::new();
    let same = SAME.iter().map(|&(name, shape)| (name, shape, Into::Same));
    for (name, shape, into) in same.chain(WITHIN) {
        let Some(value) = fields.get(name) else { continue };
        each(shape, value, &mut |key, schema| {
            let path = match key {
                Some(key) => format!("{path}/{name}/{key}"),
                None => format!("{path}/{name}"),
            };
            parts.push(Part { into, schema, path });
        });
    }
    if let Some(Value::Object(properties)) = fields.get("properties") {
        parts.extend(properties.iter().map(|(name, schema)| Part {
            into: Into::Property(name),
            schema,
            path: format!("{path}/properties/{}", escaped(name)),
        }));
    }
    if let Some((schema, to)) = reference(root, fields, path)? {
        parts.push(Part { into: Into::Same, schema, path: to });
    }
    Ok(parts)
}

fn each<'a>(shape: Shape, value: &'a Value, with: &mut impl FnMut(Option<String>, &'a Value)) {
    match (shape, value) {
        (Shape::List | Shape::OneOrList, Value::Array(items)) => {
            for (at, item) in items.iter().enumerate() {
                with(Some(at.to_string()), item);
            }
        }
        (Shape::Table, Value::Object(table)) => {
            // Of `dependencies` only those that are schemas.
            for (name, item) in table.iter().filter(|(_, item)| !item.is_array()) {
                with(Some(escaped(name)), item);
            }
        }
        (Shape::One | Shape::OneOrList, value) => with(None, value),
        (Shape::List | Shape::Table, _) => {}
    }
}

/// Returns the part that `$ref` names, with its path.
fn reference<'a>(
    root: &'a Value,
    fields: &Map<String, Value>,
    path: &str,
) -> Result<Option<(&'a Value, String)>, SchemaError> {
    for keyword in ["$dynamicRef", "$recursiveRef"] {
        if fields.contains_key(keyword) {
            return Err(SchemaError::new(path, format!("`{keyword}` is not possible here")));
        }
    }
    if fields.contains_key("$id") && !path.is_empty() {
        return Err(SchemaError::new(path, "`$id` stands at the root alone"));
    }
    let Some(reference) = fields.get("$ref") else { return Ok(None) };
    let wrong =
        |what: &str| SchemaError::new(format!("{path}/$ref"), format!("{reference} {what}"));
    let target = reference.as_str().ok_or_else(|| wrong("is no text"))?;
    let pointer = target.strip_prefix('#').filter(|to| to.is_empty() || to.starts_with('/'));
    let pointer =
        pointer.ok_or_else(|| wrong("leads out of the document: only `#/…` is possible"))?;
    if pointer.contains('%') {
        return Err(wrong("is written with `%`"));
    }
    match root.pointer(pointer) {
        Some(schema) => Ok(Some((schema, pointer.to_owned()))),
        None => Err(wrong("leads to nothing")),
    }
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
