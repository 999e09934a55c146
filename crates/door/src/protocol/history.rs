//! The history of a session.

use offshoot_model::SessionKey;
use serde::{Deserialize, Serialize};

use super::{EntryKind, RunName};

/// `history`: the lines of one session that the caller may see.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct History {
    /// The run.
    pub run: RunName,
    /// Only what came after this number.
    pub after: Option<u64>,
    /// At most so many.
    pub limit: Option<u32>,
}

/// The answer to `history`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryPage {
    /// In order.
    pub entries: Vec<HistoryEntry>,
    /// True if there is more after the last of them.
    #[serde(default)]
    pub more: bool,
}

/// One line of a history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// The number of the entry; rising, not without gaps.
    pub seq: u64,
    /// The time, RFC 3339.
    pub at: String,
    /// The kind of the entry.
    pub kind: EntryKind,
    /// The session that said it, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<SessionKey>,
    /// The text that was said, or the event in words.
    pub text: String,
}
