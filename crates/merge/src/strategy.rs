//! How results become one.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A way to merge, as written after `--merge` and `--strategy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Strategy {
    /// The texts, joined with a line of three dashes.
    #[default]
    Concatenate,
    /// One JSON object from key to value.
    Structured,
    /// The value given most often, with all counts.
    Vote,
    /// The texts, each under a heading that names its source. No model is asked.
    Summarize,
    /// Numbers, added exactly.
    Sum,
    /// The first result that completes; the others need not.
    First,
    /// The first value given this many times; the others need not.
    Quorum(NonZeroU32),
}

/// A text that names no strategy of this crate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseStrategyError {
    /// Nothing is called that.
    #[error("unknown merge strategy `{0}`; known are {KNOWN}")]
    Unknown(String),
    /// The name is reserved for a strategy that needs an agent or a plugin.
    #[error(
        "merge strategy `{0}` needs an agent or a plugin, which this version does not offer; known are {KNOWN}"
    )]
    NotHere(String),
    /// A quorum without a usable number.
    #[error("`{0}` needs a number from 1 after the colon, such as quorum:3")]
    Quorum(String),
}

const KNOWN: &str = "concatenate, structured, vote, summarize, sum, first, quorum:N";

/// Reserved, so that no plugin takes these names before they mean what people expect.
const NOT_HERE: [&str; 4] = ["custom", "summarize-with", "best-of", "reduce-with"];

impl Strategy {
    /// Whether the answer can stand before all results are in.
    pub const fn may_end_early(self) -> bool {
        matches!(self, Self::First | Self::Quorum(_))
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Concatenate => f.pad("concatenate"),
            Self::Structured => f.pad("structured"),
            Self::Vote => f.pad("vote"),
            Self::Summarize => f.pad("summarize"),
            Self::Sum => f.pad("sum"),
            Self::First => f.pad("first"),
            Self::Quorum(needed) => write!(f, "quorum:{needed}"),
        }
    }
}

impl FromStr for Strategy {
    type Err = ParseStrategyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, argument) = match text.split_once(':') {
            Some((name, argument)) => (name, Some(argument)),
            None => (text, None),
        };
        match (name, argument) {
            ("concatenate", None) => Ok(Self::Concatenate),
            ("structured", None) => Ok(Self::Structured),
            ("vote", None) => Ok(Self::Vote),
            ("summarize", None) => Ok(Self::Summarize),
            ("sum", None) => Ok(Self::Sum),
            ("first", None) => Ok(Self::First),
            ("quorum", number) => number
                .and_then(|number| number.parse().ok())
                .map(Self::Quorum)
                .ok_or_else(|| ParseStrategyError::Quorum(text.to_owned())),
            (name, _) if NOT_HERE.contains(&name) => {
                Err(ParseStrategyError::NotHere(name.to_owned()))
            }
            _ => Err(ParseStrategyError::Unknown(text.to_owned())),
        }
    }
}

impl TryFrom<String> for Strategy {
    type Error = ParseStrategyError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Strategy> for String {
    fn from(strategy: Strategy) -> Self {
        strategy.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for name in [
            "concatenate",
            "structured",
            "vote",
            "summarize",
            "sum",
            "first",
            "quorum:1",
            "quorum:12",
        ] {
            let strategy: Strategy = name.parse().expect(name);
            assert_eq!(strategy.to_string(), name);
            let json = serde_json::to_string(&strategy).expect("a string");
            assert_eq!(serde_json::from_str::<Strategy>(&json).expect("the same"), strategy);
        }
    }

    #[test]
    fn refused_names_are_explained() {
        let check = |text: &str, expected: &str| {
            let error = text.parse::<Strategy>().expect_err(text).to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
        };
        check("", "unknown merge strategy ``; known are concatenate, structured, vote");
        check("concat", "unknown merge strategy `concat`; known are concatenate");
        check("vote:2", "unknown merge strategy `vote:2`");
        check("best-of", "merge strategy `best-of` needs an agent or a plugin");
        check("reduce-with:4", "merge strategy `reduce-with` needs");
        check("custom", "merge strategy `custom` needs");
        check("summarize-with", "merge strategy `summarize-with` needs");
        for text in ["quorum", "quorum:", "quorum:0", "quorum:-1", "quorum:x"] {
            check(text, &format!("`{text}` needs a number from 1"));
        }
    }
}
