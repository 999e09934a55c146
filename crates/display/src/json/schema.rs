//! The schema of an event in version 2: that of the types, changed as the text of an event is.

use serde_json::{Value, json};

/// The JSON Schema of one line of `offshoot events --json`.
pub fn event_schema() -> Value {
    let mut schema = offshoot_model::event_schema().to_value();
    schema["properties"]["kind"]["description"] =
        "The kind of the event: its `type`, with the fields of this kind beside it.".into();
    schema["description"] = "One line of `offshoot events --json`, in version 2 of its form. New kinds and fields may be added; pass over what you do not know.".into();
    let definitions = &mut schema["$defs"];
    definitions["Timestamp"] = json!({
        "type": "string",
        "format": "date-time",
        "description": "A moment by the clock of the machine that recorded it: RFC 3339, in UTC.",
    });
    for reason in variants(&mut definitions["Reason"]) {
        let fields = take(reason, "properties");
        let renamed = fields.into_iter().map(|(name, field)| match name.as_str() {
            "kind" => ("type".to_owned(), field),
            _ => (name, field),
        });
        reason["properties"] = renamed.collect();
        reason["required"][0] = "type".into();
    }
    variants(&mut definitions["EventKind"]).for_each(|kind| *kind = tagged(kind));
    schema
}

/// A kind with its word as a field beside the others.
fn tagged(kind: &mut Value) -> Value {
    let (word, mut inner) = match take(kind, "properties").into_iter().next() {
        Some((word, inner)) => (word.into(), inner),
        None => (kind["const"].take(), json!({ "type": "object" })),
    };
    let fields = take(&mut inner, "properties");
    let required = match inner["required"].take() {
        Value::Array(required) => required,
        _ => Vec::new(),
    };
    let tag = [("type".to_owned(), json!({ "type": "string", "const": word }))];
    inner["properties"] = tag.into_iter().chain(fields).collect();
    inner["required"] = std::iter::once("type".into()).chain(required).collect();
    inner["description"] = kind["description"].take();
    inner
}

fn variants(definition: &mut Value) -> impl Iterator<Item = &mut Value> {
    definition["oneOf"].as_array_mut().into_iter().flatten()
}

/// The fields of an object, taken out of it.
fn take(value: &mut Value, name: &str) -> serde_json::Map<String, Value> {
    match value.get_mut(name).map(Value::take) {
        Some(Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    }
}
