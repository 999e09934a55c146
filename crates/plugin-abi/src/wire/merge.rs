//! The description of one result of a merge, beside its value: the second argument of `push`.

use std::path::PathBuf;
use std::sync::Arc;

use offshoot_model::{RunStatus, ValueKind, path_text};
use serde::{Deserialize, Serialize};

use super::{Must, Version, from_json, to_json, word};
use crate::AbiError;

/// A result, without its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// The name of the piece or the child.
    pub key: Arc<str>,
    /// The status of its run. Where it did not complete, the value is its envelope.
    pub status: RunStatus,
    /// A file that holds the value, where it is too large to be handed over; the value itself is then `null`.
    pub file: Option<File>,
}

/// A value in a file, for reading only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// The path, which is absolute.
    #[serde(with = "path_text")]
    pub path: PathBuf,
    /// The kind of value that the file holds.
    #[serde(deserialize_with = "word::kind")]
    pub kind: ValueKind,
    /// The size in bytes.
    pub size: u64,
}

/// The document of a result's description.
///
/// # Errors
/// [`AbiError::INVALID`] where it cannot be written.
pub fn encode(meta: Meta) -> Result<String, AbiError> {
    let Meta { key, status, file } = meta;
    to_json(&Document { v: Version, must: Must, key, status, file }, "result")
}

/// The description of a document.
///
/// # Errors
/// [`AbiError::INVALID`] where it is none.
pub fn decode(json: &str) -> Result<Meta, AbiError> {
    let Document { key, status, file, .. } = from_json(json, "result")?;
    Ok(Meta { key, status, file })
}

#[derive(Serialize, Deserialize)]
struct Document {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    key: Arc<str>,
    #[serde(deserialize_with = "word::status")]
    status: RunStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<File>,
}
