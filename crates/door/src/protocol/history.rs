//! What happened in a session.

use offshoot_model::SessionKey;
use serde::{Deserialize, Serialize};

use super::{EntryKind, RunName};

/// `history`: the lines of one session that the caller may see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct History {
    /// Whose.
    pub run: RunName,
    /// Only what came after this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// At most so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// The answer to `history`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryPage {
    /// In order.
    pub entries: Vec<HistoryEntry>,
    /// Whether there is more after the last of them.
    #[serde(default)]
    pub more: bool,
}

/// One line of a history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// Its number; rising, not without gaps.
    pub seq: u64,
    /// When, RFC 3339.
    pub at: String,
    /// What it is.
    pub kind: EntryKind,
    /// Who said it, where that is another session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<SessionKey>,
    /// What was said, or what happened in words.
    pub text: String,
}
