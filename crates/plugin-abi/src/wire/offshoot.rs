//! The path of the command `offshoot`: the answer of an operation of the host.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Must, Version, from_json, text_path, to_json};
use crate::AbiError;

/// The document of a path. None where the host is no part of the command.
///
/// # Errors
/// [`AbiError::INVALID`] where the path is not UTF-8.
pub fn encode(path: Option<&Path>) -> Result<String, AbiError> {
    path.iter().try_for_each(|path| text_path("the command", path))?;
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
    #[serde(default)]
    path: Option<PathBuf>,
}
