//! What a run used, in tokens.

use std::ops::Add;

use serde::{Deserialize, Serialize};

/// A count that may be unknown. Unknown is not zero: it stays unknown in every sum. In JSON: a number or null.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "Option<u64>", into = "Option<u64>")]
pub enum TokenCount {
    /// Reported by the runtime.
    Known(u64),
    /// Nobody said.
    Unknown,
}

/// Token counts of one run or of a subtree. The default is a known zero: a command uses no tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Tokens read as prompt, without those served from a cache.
    pub input: TokenCount,
    /// Tokens written by the model.
    pub output: TokenCount,
    /// Prompt tokens served from a cache.
    pub cache_read: TokenCount,
    /// Prompt tokens written to a cache.
    pub cache_write: TokenCount,
}

impl TokenCount {
    /// The number, where it is known.
    pub const fn known(self) -> Option<u64> {
        match self {
            Self::Known(count) => Some(count),
            Self::Unknown => None,
        }
    }
}

impl Usage {
    /// Nobody said anything.
    pub const UNKNOWN: Self = Self {
        input: TokenCount::Unknown,
        output: TokenCount::Unknown,
        cache_read: TokenCount::Unknown,
        cache_write: TokenCount::Unknown,
    };

    /// All four together, which is what a token budget counts.
    pub fn total(&self) -> TokenCount {
        self.input + self.output + self.cache_read + self.cache_write
    }
}

impl Default for TokenCount {
    fn default() -> Self {
        Self::Known(0)
    }
}

impl Add for TokenCount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        match (self, other) {
            (Self::Known(a), Self::Known(b)) => Self::Known(a.saturating_add(b)),
            _ => Self::Unknown,
        }
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input: self.input + other.input,
            output: self.output + other.output,
            cache_read: self.cache_read + other.cache_read,
            cache_write: self.cache_write + other.cache_write,
        }
    }
}

impl From<Option<u64>> for TokenCount {
    fn from(count: Option<u64>) -> Self {
        count.map_or(Self::Unknown, Self::Known)
    }
}

impl From<TokenCount> for Option<u64> {
    fn from(count: TokenCount) -> Self {
        count.known()
    }
}
