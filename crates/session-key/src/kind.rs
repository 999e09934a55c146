//! The three kinds of key.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The kinds of session that a key addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyKind {
    /// The main session of an agent, `agent:{id}:main`. A root.
    Main,
    /// A session that another one asked for. The only kind with a depth.
    Subagent,
    /// A run, a channel, or whatever else has a session of its own. A root.
    Other,
}

impl KeyKind {
    /// The word used in output: `main`, `subagent` or `other`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Subagent => "subagent",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
