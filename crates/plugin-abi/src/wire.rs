//! The JSON that crosses, and the types of this side that it stands for.
//!
//! Each module is one document, with `encode` and `decode`; host and plugin use the same. A document is an object with a
//! number `"v"`. Readers pass over fields that they do not know, and take one that is absent for null, empty or false;
//! writers may leave such a field out.
//!
//! What a later version may add, and what becomes of it here:
//! - a higher `"v"`: a field has changed its meaning. The document is refused.
//! - `"must"`, a list of words: what a reader has to know to read the document. One that is not known here refuses it, by name.
//! - a word in a document that tells what happened (an ending, a status, a refusal, the kind of a value): it is read as what
//!   promises least, and the word is kept in the text that goes with it.
//! - a word in a document that asks for something (an input, a wait, a change of a group): the document is refused, by name.

pub mod delegate;
pub mod event;
pub mod finished;
pub mod group;
pub mod launch;
pub mod line;
pub mod manifest;
pub mod merge;
pub mod offshoot;
pub mod orphans;
pub mod probe;
pub mod refused;
pub mod shutdown;
pub mod spawn;
pub mod turn;
mod version;
pub mod wait;
mod word;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::AbiError;
use version::{Must, Version};

/// The answer of an operation that has nothing to say.
pub const NOTHING: &str = r#"{"v":1}"#;

/// Operations that cross by name.
pub mod op {
    /// `RunHost`: waits for children. See [`wait`](super::wait).
    pub const WAIT: &str = "wait";
    /// `RunHost`: hands a task on. See [`delegate`](super::delegate).
    pub const DELEGATE: &str = "delegate";
    /// `RunHost`: is over with a task that it did itself. See [`delegate`](super::delegate).
    pub const OBSERVED: &str = "observed";
    /// `RunHost`: a turn is over. See [`turn`](super::turn).
    pub const TURN_ENDED: &str = "turn_ended";
    /// `Run`: a letter to it. See [`turn`](super::turn).
    pub const LETTER: &str = "letter";
    /// `Host`: a group of processes. See [`group`](super::group).
    pub const GROUP: &str = "group";
    /// `Host`: children that no part of the host has started. See [`orphans`](super::orphans).
    pub const ORPHANS: &str = "orphans";
    /// `Host`: the path of the command. See [`offshoot`](super::offshoot).
    pub const OFFSHOOT: &str = "offshoot";
}

fn to_json(document: &impl Serialize, what: &str) -> Result<String, AbiError> {
    let mut json = Vec::with_capacity(USUAL);
    serde_json::to_writer(&mut json, document)
        .map_err(|error| AbiError::new(AbiError::INVALID, format!("{what}: {error}")))?;
    Ok(String::from_utf8(json).expect("JSON is text"))
}

/// The bytes of most documents. Growing to them from nothing would take longer than writing them.
const USUAL: usize = 768;

fn from_json<T: DeserializeOwned>(json: &str, what: &str) -> Result<T, AbiError> {
    serde_json::from_str(json)
        .map_err(|error| AbiError::new(AbiError::INVALID, format!("{what}: {error}")))
}

#[cfg(test)]
mod tests;
