//! The usage of a run, in tokens.

use std::borrow::Cow;
use std::ops::Add;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Cost;

/// A count of tokens, as far as it is known. Unknown is not zero: a sum with a part that is unknown is a lower bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenCount {
    /// Reported by the runtime.
    Known(u64),
    /// Reported before the run was cut off, or the known part of a sum. Never zero: that would say nothing.
    AtLeast(u64),
    /// Not reported, and set by us so that it is rather too much than too little. Never zero.
    Estimated(u64),
    /// Not reported.
    Unknown,
}

/// Token counts of one run or of a subtree. The default is a known zero: a command uses no tokens.
///
/// In JSON each count is a number or null; `atLeast` names the numbers that are lower bounds, and `estimated` those that are
/// estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Document", into = "Document")]
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

/// The JSON form of a usage.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Document {
    input: Option<u64>,
    output: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    at_least: Vec<Cow<'static, str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    estimated: Vec<Cow<'static, str>>,
}

impl TokenCount {
    /// The largest count that is believed: 10^15, more than any model reads in a lifetime. A program in any language can
    /// hold it exactly, and a sum of thousands still fits.
    pub const MAX: u64 = 1_000_000_000_000_000;

    /// A count that comes from outside. One beyond [`TokenCount::MAX`] is a defect of whatever reported it.
    pub const fn reported(count: u64) -> Self {
        if count > Self::MAX { Self::Unknown } else { Self::Known(count) }
    }

    /// The exact number, where it is known.
    pub const fn known(self) -> Option<u64> {
        match self {
            Self::Known(count) => Some(count),
            Self::AtLeast(_) | Self::Estimated(_) | Self::Unknown => None,
        }
    }

    /// The number that it is not below.
    pub const fn lower_bound(self) -> u64 {
        match self {
            Self::Known(count) | Self::AtLeast(count) => count,
            Self::Estimated(_) | Self::Unknown => 0,
        }
    }

    /// The number that a budget counts for it. Of a count that is not known it is the part that was told.
    pub const fn charged(self) -> u64 {
        match self {
            Self::Known(count) | Self::AtLeast(count) | Self::Estimated(count) => count,
            Self::Unknown => 0,
        }
    }

    /// True if a budget has nothing more to count for it than [`charged`](Self::charged).
    pub const fn is_settled(self) -> bool {
        matches!(self, Self::Known(_) | Self::Estimated(_))
    }

    /// An estimate of a count that was not reported.
    pub const fn estimated(count: u64) -> Self {
        if count == 0 { Self::Unknown } else { Self::Estimated(count) }
    }

    /// Returns this count as a lower bound: what was reported of a run that was cut off.
    #[must_use]
    pub const fn cut_off(self) -> Self {
        Self::bounded_by(self.charged())
    }

    /// Returns this count, or a report that came behind it where that says more.
    fn at_least(self, report: Self) -> Self {
        let count = self.charged().max(report.charged());
        match self {
            _ if count > self.charged() && matches!(report, Self::Estimated(_)) => report,
            Self::Known(_) => Self::Known(count),
            Self::Estimated(_) => Self::Estimated(count),
            Self::AtLeast(_) | Self::Unknown => Self::bounded_by(count),
        }
    }

    const fn bounded_by(count: u64) -> Self {
        if count == 0 { Self::Unknown } else { Self::AtLeast(count) }
    }

    /// Returns this count, or unknown for a number that cannot be believed.
    const fn believed(self) -> Self {
        if self.charged() > Self::MAX { Self::Unknown } else { self }
    }
}

impl Usage {
    /// Nothing was reported.
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

    /// Returns the number of tokens that were reported, without those that are estimated.
    pub fn reported(self) -> u64 {
        let Self { input, output, cache_read, cache_write } = self;
        [input, output, cache_read, cache_write]
            .into_iter()
            .fold(0, |sum, count| sum.saturating_add(count.lower_bound()))
    }

    /// Returns these counts as lower bounds: what was reported of a run that was cut off.
    #[must_use]
    pub fn cut_off(self) -> Self {
        self.each(TokenCount::cut_off)
    }

    /// Returns what a run that was cut off has told, as lower bounds. Of one that has told nothing nothing is said: it may be a program that
    /// costs nothing.
    pub fn told_before_the_end(self, cost: Cost) -> (Self, Cost) {
        match self == Self::default() && cost.is_none() {
            true => (self, cost),
            false => (self.cut_off(), cost.cut_off()),
        }
    }

    /// Returns these counts as they come from outside: those that cannot be believed are unknown.
    #[must_use]
    pub fn believed(self) -> Self {
        self.each(TokenCount::believed)
    }

    /// Returns these counts, or those of a report that came behind them where it says more: nothing spent is ever unspent.
    #[must_use]
    pub fn at_least(self, report: Self) -> Self {
        self.with(report, TokenCount::at_least)
    }

    fn with(self, other: Self, both: fn(TokenCount, TokenCount) -> TokenCount) -> Self {
        Self {
            input: both(self.input, other.input),
            output: both(self.output, other.output),
            cache_read: both(self.cache_read, other.cache_read),
            cache_write: both(self.cache_write, other.cache_write),
        }
    }

    fn each(self, change: fn(TokenCount) -> TokenCount) -> Self {
        let Self { input, output, cache_read, cache_write } = self;
        Self {
            input: change(input),
            output: change(output),
            cache_read: change(cache_read),
            cache_write: change(cache_write),
        }
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
        let sum = self.charged().saturating_add(other.charged());
        match (self, other) {
            (Self::Known(_), Self::Known(_)) => Self::Known(sum),
            (Self::Estimated(_) | Self::Known(_), Self::Estimated(_) | Self::Known(_)) => {
                Self::Estimated(sum)
            }
            _ => Self::bounded_by(sum),
        }
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.with(other, Add::add)
    }
}

impl From<Document> for Usage {
    fn from(document: Document) -> Self {
        let Document { input, output, cache_read, cache_write, at_least, estimated } = document;
        let count = |name: &str, number: Option<u64>| match number {
            None => TokenCount::Unknown,
            Some(number) if estimated.iter().any(|estimate| estimate == name) => {
                TokenCount::estimated(number)
            }
            Some(number) if at_least.iter().any(|bound| bound == name) => {
                TokenCount::bounded_by(number)
            }
            Some(number) => TokenCount::Known(number),
        };
        Self {
            input: count("input", input),
            output: count("output", output),
            cache_read: count("cacheRead", cache_read),
            cache_write: count("cacheWrite", cache_write),
        }
    }
}

impl From<Usage> for Document {
    fn from(usage: Usage) -> Self {
        let Usage { input, output, cache_read, cache_write } = usage;
        let number = |count: TokenCount| (count != TokenCount::Unknown).then(|| count.charged());
        let names = ["input", "output", "cacheRead", "cacheWrite"];
        let counts = [input, output, cache_read, cache_write];
        let named = |is: fn(TokenCount) -> bool| {
            let named = names.into_iter().zip(counts).filter(|(_, count)| is(*count));
            named.map(|(name, _)| name.into()).collect()
        };
        let at_least = named(|count| matches!(count, TokenCount::AtLeast(_)));
        let estimated = named(|count| matches!(count, TokenCount::Estimated(_)));
        Self {
            input: number(input),
            output: number(output),
            cache_read: number(cache_read),
            cache_write: number(cache_write),
            at_least,
            estimated,
        }
    }
}
