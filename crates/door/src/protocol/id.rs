//! The number of a request, as its sender wrote it.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// A number or a string. Kept as written, so that an answer bears exactly the id of its request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, derive_more::Display)]
pub(crate) struct RequestId(Box<str>);

impl RequestId {
    pub(crate) fn number(number: u64) -> Self {
        Self(number.to_string().into())
    }

    pub(crate) fn as_number(&self) -> Option<u64> {
        self.0.parse().ok()
    }

    /// None for what can be no id: null, lists, objects, truth.
    fn of(raw: &RawValue) -> Option<Self> {
        let text = raw.get();
        let first = text.bytes().next()?;
        matches!(first, b'"' | b'-' | b'0'..=b'9').then(|| Self(text.into()))
    }
}

impl Serialize for RequestId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw = RawValue::from_string(self.0.as_ref().to_owned());
        raw.expect("it was JSON when it was read").serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <Box<RawValue>>::deserialize(deserializer)?;
        Self::of(&raw).ok_or_else(|| serde::de::Error::custom("an id is a number or a string"))
    }
}
