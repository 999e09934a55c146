//! The form of an event in JSON, as the record has it.
//!
//! Promise: what is described here stays. New kinds of event and new fields may come; a reader passes over what it does not
//! know.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde_json::Value;

use super::Event;

/// The JSON Schema of an event as it is recorded: version 1 of what `offshoot events --json` prints.
pub fn event_schema() -> Schema {
    // A version to come may put a field beside any that is described here.
    let patient = |schema: &mut Schema| {
        schema.remove("additionalProperties");
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = text.replace('\n', " ");
        }
    };
    let settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(patient));
    let mut schema = settings.into_generator().into_root_schema_for::<Event>();
    schema.insert("title".to_owned(), "offshoot event".into());
    let description = "An event, as it is recorded. New kinds and fields may be added; pass over what you do not know.";
    schema.insert("description".to_owned(), description.into());
    schema
}
