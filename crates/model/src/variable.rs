//! A reference to a value in the store.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ContentHash;

/// The kind of a stored value, which decides how its file is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display, strum::AsRefStr)]
#[strum(serialize_all = "snake_case")]
pub enum ValueKind {
    /// UTF-8 text; the file is the value.
    Text,
    /// A JSON value; a run sees a file `{"ref": …, "value": …}`.
    Json,
    /// The answer of a run that is JSON.
    Result,
    /// Anything else; the file is the value.
    Bytes,
}

/// Names a value without carrying it: passing one on costs the same for a byte and for a gigabyte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VariableRef {
    /// The hash by which the store keeps it.
    pub hash: ContentHash,
    /// The size in bytes.
    pub size: u64,
    /// The kind of the value.
    pub kind: ValueKind,
}
