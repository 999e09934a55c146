//! Groups of processes that a plugin starts: the operation `group` of `Host`.
//!
//! The host's keeper ends these groups if the host is killed, and the host leaves them alone otherwise. So it is told
//! before a process starts, and again when it has: until then a child that the host does not know may be the one.

use offshoot_model::ProcessIdentity;
use serde::{Deserialize, Serialize};

use super::{V, from_json, to_json, versioned};
use crate::AbiError;

/// What becomes of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// A process is about to be started. `Started` or `NotStarted` follows.
    Starting,
    /// It was, and leads a group of its own.
    Started(ProcessIdentity),
    /// It was not.
    NotStarted,
    /// Its group is gone and its leader is about to be reaped.
    Ended(ProcessIdentity),
}

/// The document of a change.
pub fn encode(change: Change) -> String {
    to_json(&Document { v: V, change }, "group").expect("words and numbers are always JSON")
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
    v: u32,
    change: Change,
}

versioned!(Document);
