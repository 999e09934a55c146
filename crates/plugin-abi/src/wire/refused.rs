//! A refusal as the error of an operation: what `RunHost::call` answers where the host said no.
//!
//! A side that does not know this document still has the code and the text of the error.

use offshoot_model::{Refusal, RefusalCode};
use serde::{Deserialize, Serialize};

use super::{Must, Version, from_json, to_json, word};
use crate::AbiError;

/// The error that carries a refusal: its text, and `{ "v", "refusal" }` as details.
pub fn encode(refusal: Refusal) -> AbiError {
    let code = match refusal.code {
        RefusalCode::CallerEnded => AbiError::CANCELLED,
        RefusalCode::InvalidRequest => AbiError::INVALID,
        _ => AbiError::FAILED,
    };
    let mut error = AbiError::new(code, &*refusal.message);
    let details = to_json(&Document { v: Version, must: Must, refusal }, "refusal");
    error.detail_json = details.expect("a refusal is text and numbers").into();
    error
}

/// The refusal that an error carries, if it carries one.
pub fn decode(error: &AbiError) -> Option<Refusal> {
    from_json::<Document>(&error.detail_json, "refusal").ok().map(|document| document.refusal)
}

#[derive(Serialize, Deserialize)]
struct Document {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    #[serde(deserialize_with = "word::refusal")]
    refusal: Refusal,
}
