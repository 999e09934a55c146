//! The schema of a tool's arguments, in words that every client and model takes: `type`, `properties`, `required`, `items`,
//! `enum` and `description`.
//!
//! It is made of the type that reads the arguments, so both say the same. What is left out is what some clients refuse or
//! drop: references, alternatives, lists of types, formats of numbers.

use rmcp::model::JsonObject;
use rmcp::schemars::JsonSchema;
use rmcp::schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// The schema of these arguments.
pub(crate) fn plain<A: JsonSchema>() -> JsonObject {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<A>();
    let mut plain = reduced(schema.as_value());
    // The words for the whole are those of the tool.
    plain.remove("description");
    plain.entry("properties").or_insert_with(|| json!({}));
    plain
}

fn reduced(schema: &Value) -> JsonObject {
    let mut plain = JsonObject::new();
    let alternatives = ["anyOf", "oneOf"].into_iter().find_map(|key| schema[key].as_array());
    match alternatives {
        // Names, each with words of its own.
        Some(names) if names.iter().all(|name| name["const"].is_string()) => {
            let names: Vec<_> = names.iter().map(|name| name["const"].clone()).collect();
            plain.insert("type".into(), json!("string"));
            plain.insert("enum".into(), names.into());
        }
        // Something that may be absent: absent is how to say so.
        Some(several) => {
            let present = several.iter().find(|one| one["type"] != "null");
            plain = reduced(present.expect("an argument is not always absent"));
        }
        None => {
            let present = match &schema["type"] {
                Value::Array(several) => several.iter().find(|one| *one != "null"),
                one => Some(one),
            };
            plain.insert("type".into(), present.expect("an argument has a type").clone());
            for key in ["enum", "required"] {
                plain.extend(schema.get(key).map(|value| (key.to_owned(), value.clone())));
            }
        }
    }
    // Text in parentheses is for readers of the code and left out: each word costs tokens.
    match schema["description"].as_str().map(|words| words.replace('\n', " ")) {
        Some(words) if !words.starts_with('(') => {
            drop(plain.insert("description".into(), words.into()))
        }
        Some(_) => drop(plain.remove("description")),
        None => {}
    }
    if let Some(items) = schema.get("items") {
        let mut items = reduced(items);
        // The words for the list are those for each of it.
        items.remove("description");
        plain.insert("items".into(), items.into());
    }
    if let Some(properties) = schema["properties"].as_object() {
        let properties =
            properties.iter().map(|(name, value)| (name.clone(), reduced(value).into()));
        plain.insert("properties".into(), Value::Object(properties.collect()));
    }
    plain
}
