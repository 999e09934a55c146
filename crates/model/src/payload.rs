//! The value of an answer or a task.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::{ValueKind, VariableRef};

/// A result from end to end: text stays text and JSON stays the bytes it came as; what is large or no
/// UTF-8 is named, not carried. Equal means equal as recorded; equality by JSON value is a question for a merge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Payload {
    /// UTF-8 text.
    Text(Arc<str>),
    /// One JSON value, unparsed.
    Json(JsonText),
    /// In the store.
    Stored(VariableRef),
}

/// One JSON value that stays the text it came as. Cheap to clone; equal where the text is equal.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct JsonText(#[schemars(with = "serde_json::Value")] Arc<RawValue>);

impl Payload {
    /// A text.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Text(text.into())
    }

    /// A JSON value that is already text. Fails where it is not JSON.
    pub fn json(text: String) -> Result<Self, serde_json::Error> {
        JsonText::parse(text).map(Self::Json)
    }

    /// Returns the text of a value that is at hand, or the reference to one that stays in the store.
    pub fn at_hand(&self) -> Result<&str, &VariableRef> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Json(json) => Ok(json.as_str()),
            Self::Stored(reference) => Err(reference),
        }
    }

    /// Size in bytes of the value itself.
    pub fn size(&self) -> u64 {
        self.at_hand().map_or_else(|reference| reference.size, |text| text.len() as u64)
    }

    /// Returns the kind of the value.
    pub fn kind(&self) -> ValueKind {
        match self {
            Self::Text(_) => ValueKind::Text,
            Self::Json(_) => ValueKind::Result,
            Self::Stored(reference) => reference.kind,
        }
    }
}

impl Payload {
    /// Returns the value as JSON shows it: a text as a string, JSON as itself, and `{"ref": …}` for what stays in the store.
    pub fn to_json(&self) -> JsonText {
        match self {
            Self::Json(json) => json.clone(),
            other => JsonText::of(&Plain(other)).expect("texts and references are plain data"),
        }
    }

    /// Serialises a value as JSON shows it.
    ///
    /// # Errors
    /// Fails as the serializer does.
    pub fn serialize_plain<S: Serializer>(
        data: &Option<Self>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        data.as_ref().map(Plain).serialize(serializer)
    }
}

/// A value that serialises as JSON shows it.
struct Plain<'a>(&'a Payload);

impl Serialize for Plain<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Payload::Text(text) => serializer.serialize_str(text),
            Payload::Json(json) => json.serialize(serializer),
            Payload::Stored(reference) => serializer.collect_map([("ref", reference)]),
        }
    }
}

impl JsonText {
    /// Takes text that is one JSON value.
    pub fn parse(text: String) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text).map(|raw| Self(raw.into()))
    }

    /// From anything that serialises.
    pub fn of(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(|raw| Self(raw.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for JsonText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for JsonText {}
