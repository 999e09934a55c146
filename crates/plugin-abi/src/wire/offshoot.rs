//! The path of the command `offshoot`: the answer of an operation of the host.

use std::path::{Path, PathBuf};

use offshoot_model::path_text;
use serde::{Deserialize, Serialize};

use super::{Must, Version, from_json, to_json};
use crate::AbiError;

/// The document of a path. None where the host is no part of the command.
///
/// # Errors
/// [`AbiError::INVALID`] where it cannot be written.
pub fn encode(path: Option<&Path>) -> Result<String, AbiError> {
    let path = path.map(Path::to_owned);
    to_json(&Document { v: Version, must: Must, path }, "offshoot")
}

/// The path of a document.
///
/// # Errors
/// [`AbiError::INVALID`] where it is none.
pub fn decode(json: &str) -> Result<Option<PathBuf>, AbiError> {
    from_json::<Document>(json, "offshoot").map(|document| document.path)
}

#[derive(Serialize, Deserialize)]
struct Document {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    #[serde(default, with = "path_text")]
    path: Option<PathBuf>,
}
