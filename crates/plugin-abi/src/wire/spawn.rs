//! A request for a child, and its answer: `RunHost::spawn`.

use offshoot_model::{Refusal, RunId, SpawnRequest};
use serde::{Deserialize, Serialize};

use super::{Must, Version, from_json, to_json, word};
use crate::AbiError;

/// The document of a request.
pub fn encode(request: SpawnRequest) -> String {
    to_json(&Document { v: Version, must: Must, request }, "spawn")
        .expect("a request is text and numbers")
}

/// The request of a document.
///
/// # Errors
/// [`AbiError::INVALID`] where it is none.
pub fn decode(json: &str) -> Result<SpawnRequest, AbiError> {
    from_json::<Document>(json, "spawn").map(|document| document.request)
}

/// The document of an answer: `{ "v", "run" }` or `{ "v", "refusal" }`.
pub fn encode_answer(answer: Result<RunId, Refusal>) -> String {
    let (run, refusal) = match answer {
        Ok(run) => (Some(run), None),
        Err(refusal) => (None, Some(refusal)),
    };
    to_json(&AnswerDocument { v: Version, must: Must, run, refusal }, "answer to spawn")
        .expect("a refusal is text and numbers")
}

/// The answer of a document.
///
/// # Errors
/// [`AbiError::INVALID`] where it is neither a run nor a refusal.
pub fn decode_answer(json: &str) -> Result<Result<RunId, Refusal>, AbiError> {
    const WHAT: &str = "answer to spawn";
    match from_json(json, WHAT)? {
        AnswerDocument { refusal: Some(refusal), .. } => Ok(Err(refusal)),
        AnswerDocument { run: Some(run), .. } => Ok(Ok(run)),
        AnswerDocument { run: None, refusal: None, .. } => {
            Err(AbiError::new(AbiError::INVALID, format!("{WHAT}: neither a run nor a refusal")))
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Document {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    request: SpawnRequest,
}

#[serde_with::skip_serializing_none]
#[derive(Serialize, Deserialize)]
struct AnswerDocument {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    run: Option<RunId>,
    #[serde(default, deserialize_with = "word::refusal_if_any")]
    refusal: Option<Refusal>,
}
