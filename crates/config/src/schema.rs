//! `config schema`: the JSON Schema of a configuration file, made from the types that read it.

use serde_json::{Map, Value, json};

use crate::document::Document;
use crate::section::{Section, object_schema};

/// The JSON Schema (draft 2020-12) of a configuration file, for editors and for other programs.
///
/// What it refuses, the reader refuses. The reader refuses more: duplicate agents, values above a ceiling.
pub fn schema() -> Value {
    let mut definitions = Map::new();
    let document = object_schema::<Document>(Document::properties(&mut definitions));
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of offshoot",
    });
    for (key, value) in document.as_object().into_iter().flatten() {
        schema[key] = value.clone();
    }
    schema["$defs"] = Value::Object(definitions);
    schema
}
