//! Children of the process that no part of it has started: the operation `orphans` of `Host`.
//!
//! A host may adopt what its children leave behind. Then what a plugin's program has left is found among these, by the side
//! that knows its mark: the plugin.

use serde::{Deserialize, Serialize};

use super::{Must, Version, from_json, to_json};
use crate::AbiError;

/// The processes that a host has adopted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphans {
    /// The process ids.
    pub pids: Vec<u32>,
    /// True if none of them can be a program that is just being started.
    pub quiet: bool,
}

/// The document of an answer; of a host that adopts no process where there is none.
pub fn encode_answer(orphans: Option<Orphans>) -> String {
    let (pids, quiet) = match orphans {
        Some(Orphans { pids, quiet }) => (Some(pids), quiet),
        None => (None, false),
    };
    to_json(&Document { v: Version, must: Must, pids, quiet }, "answer to orphans")
        .expect("numbers are always JSON")
}

/// The answer of a document.
///
/// # Errors
/// [`AbiError::INVALID`] where it is none.
pub fn decode_answer(json: &str) -> Result<Option<Orphans>, AbiError> {
    let Document { pids, quiet, .. } = from_json(json, "answer to orphans")?;
    Ok(pids.map(|pids| Orphans { pids, quiet }))
}

#[derive(Serialize, Deserialize)]
struct Document {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    #[serde(default)]
    pids: Option<Vec<u32>>,
    #[serde(default)]
    quiet: bool,
}
