//! Groups of processes that a plugin starts: the operation `group` of `Host`.
//!
//! The host's keeper ends these groups if the host is killed, and the host leaves them alone otherwise. So it is told
//! before a process starts, and again when it has: until then a child that the host does not know may be the one.

use offshoot_model::ProcessIdentity;
use serde::{Deserialize, Serialize};

use super::{Must, Version, from_json, to_json};
use crate::AbiError;

/// The change of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// A process is about to be started. `Started` or `NotStarted` follows.
    Starting,
    /// The program was started, and leads a group of its own.
    Started(ProcessIdentity),
    /// The program was not started.
    NotStarted,
    /// The group is gone and its leader is about to be reaped.
    Ended(ProcessIdentity),
}

/// The document of a change.
pub fn encode(change: Change) -> String {
    to_json(&Document { v: Version, must: Must, change }, "group")
        .expect("words and numbers are always JSON")
}

/// The document of an answer: `{ "v", "mark"? }`.
pub fn encode_answer(mark: Option<String>) -> String {
    to_json(&AnswerDocument { v: Version, must: Must, mark }, "answer to group")
        .expect("text is JSON")
}

/// The mark of a process that is about to be started, in its environment, so that the host finds it wherever it goes:
/// the answer to [`Change::Starting`].
///
/// # Errors
/// [`AbiError::INVALID`] where it is none.
pub fn decode_answer(json: &str) -> Result<Option<String>, AbiError> {
    from_json::<AnswerDocument>(json, "answer to group").map(|document| document.mark)
}

/// The change of a document.
///
/// # Errors
/// [`AbiError::INVALID`] where it is none.
pub fn decode(json: &str) -> Result<Change, AbiError> {
    from_json::<Document>(json, "group").map(|document| document.change)
}

#[derive(Serialize, Deserialize)]
struct Document {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    change: Change,
}

#[derive(Serialize, Deserialize)]
struct AnswerDocument {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mark: Option<String>,
}
