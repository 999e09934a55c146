//! Turns after the first, and letters.
//!
//! ```text
//!   host ── Run.call("letter") ─────────▶ plugin       taken in before the call comes back
//!   host ◀── RunHost.call("turn_ended") ── plugin      with the answer, and how many letters it has taken
//!   host ── its answer: end, or go on ──▶ plugin       letters that came meanwhile are sent on first
//! ```

use std::sync::Arc;

use offshoot_runtime::Ruling;
use serde::{Deserialize, Serialize};

use super::{Must, Version, from_json, to_json};
use crate::AbiError;

/// A turn that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The answer of the turn.
    pub answer: Option<Arc<str>>,
    /// The number of letters that the run has taken so far.
    pub letters_taken: u32,
}

/// The document of a turn that is over.
pub fn encode(ended: Ended) -> String {
    let Ended { answer, letters_taken } = ended;
    to_json(&Document { v: Version, must: Must, answer, letters_taken }, "turn")
        .expect("text and a number")
}

/// The turn of a document.
///
/// # Errors
/// [`AbiError::INVALID`] where it is none.
pub fn decode(json: &str) -> Result<Ended, AbiError> {
    let Document { answer, letters_taken, .. } = from_json(json, "turn")?;
    Ok(Ended { answer, letters_taken })
}

/// The document of how the run goes on: `{ "v", "go", "results"? }`.
pub fn encode_answer(ruling: Ruling) -> String {
    let (go, results) = match ruling {
        Ruling::End => (false, None),
        Ruling::Go(results) => (true, results),
    };
    to_json(&AnswerDocument { v: Version, must: Must, go, results }, "answer to a turn")
        .expect("text is JSON")
}

/// Reads how the run goes on.
///
/// # Errors
/// [`AbiError::INVALID`] where it is none.
pub fn decode_answer(json: &str) -> Result<Ruling, AbiError> {
    let AnswerDocument { go, results, .. } = from_json(json, "answer to a turn")?;
    Ok(if go { Ruling::Go(results) } else { Ruling::End })
}

/// The document of a letter.
pub fn encode_letter(letter: Arc<str>) -> String {
    to_json(&Letter { v: Version, must: Must, text: letter }, "letter").expect("text is JSON")
}

/// The letter of a document.
///
/// # Errors
/// [`AbiError::INVALID`] where it is none.
pub fn decode_letter(json: &str) -> Result<Arc<str>, AbiError> {
    from_json::<Letter>(json, "letter").map(|letter| letter.text)
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    #[serde(default)]
    answer: Option<Arc<str>>,
    letters_taken: u32,
}

#[derive(Serialize, Deserialize)]
struct AnswerDocument {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    go: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    results: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Letter {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    text: Arc<str>,
}
