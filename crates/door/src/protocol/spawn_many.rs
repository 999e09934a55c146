//! Asking for several children at once.

use offshoot_model::{LoweredLimit, RunId, SessionKey};
use serde::{Deserialize, Serialize};

use super::{Spawn, Wait, Waited, WireRefusal};

/// `spawn_many`: children whose budgets are one share, divided. Either `children`, or `template` with `split`.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpawnMany {
    /// One request for each child.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Spawn>,
    /// The same request for each piece of a value.
    pub template: Option<Spawn>,
    /// The value and how it is cut; each child finds its piece under the value's name.
    pub split: Option<Split>,
    /// Wait for those that were admitted, in the same request: what `wait` takes, but for `runs`.
    pub wait: Option<Wait>,
}

/// A value in pieces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Split {
    /// The caller's name for the value.
    pub name: String,
    /// `lines:N`, `chunks:N`, `chunks:N@bytes`, `bytes:N`, `bytes:N@lines`, `paragraphs:N` or `jsonl:N`.
    pub by: String,
}

/// The answer to `spawn_many`, in the order of the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpawnedMany {
    /// One for each child that was asked for.
    pub children: Vec<ChildAnswer>,
    /// The result of the wait, where one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited: Option<Waited>,
}

/// The answer to one child's request: `runId` and `sessionKey`, or `refusal`.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChildAnswer {
    /// The child.
    pub run_id: Option<RunId>,
    /// The session key.
    pub session_key: Option<SessionKey>,
    /// The limits of which it got less than was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lowered: Vec<LoweredLimit>,
    /// The terms that are not as those of its parent, a line each, such as `children: down to depth 3 → none`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// The reason why there is none.
    pub refusal: Option<Box<WireRefusal>>,
}
