//! The result of a shutdown: the answer of `shutdown`.

use serde::{Deserialize, Serialize};

use super::{Must, Version, from_json, to_json};
use crate::AbiError;

/// The document of a shutdown after which so many runs and merges had to be ended by force.
pub fn encode(forced: usize) -> String {
    to_json(&Document { v: Version, must: Must, forced }, "shutdown")
        .expect("numbers are always JSON")
}

/// Reads the number of runs and merges that had to be ended by force.
///
/// # Errors
/// [`AbiError::INVALID`] where it is none.
pub fn decode(json: &str) -> Result<usize, AbiError> {
    from_json::<Document>(json, "shutdown").map(|document| document.forced)
}

#[derive(Serialize, Deserialize)]
struct Document {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    #[serde(default)]
    forced: usize,
}
