//! The strategies that merge results into one answer.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde_with::{DeserializeFromStr, SerializeDisplay};

use crate::on_failure::OnFailure;

/// A way to merge, as written after `--merge` and `--strategy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, SerializeDisplay, DeserializeFromStr)]
pub enum Strategy {
    /// The texts, joined with a line of three dashes.
    #[default]
    Concatenate,
    /// One JSON object from key to value.
    Structured,
    /// The same, with answers that are not UTF-8 as an object with their Base64.
    StructuredBase64,
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
    #[error("unknown merge strategy `{0}`; known are {names}", names = Strategy::NAMES.join(", "))]
    Unknown(String),
    /// The name is reserved for what plugins make.
    #[error(
        "merge strategy `{0}` is made by a plugin, and named `plugin:NAME`; known are {names}",
        names = Strategy::NAMES.join(", ")
    )]
    NotHere(String),
    /// A quorum without a usable number.
    #[error("`{0}` needs a number from 1 after the colon, such as quorum:3")]
    Quorum(String),
}

impl ParseStrategyError {
    /// Returns the name that nothing has, where that is what is wrong.
    pub fn unknown(&self) -> Option<&str> {
        match self {
            Self::Unknown(name) => Some(name),
            Self::NotHere(_) | Self::Quorum(_) => None,
        }
    }
}

/// Reserved, so that no plugin takes these names before they mean what people expect.
const NOT_HERE: [&str; 1] = ["custom"];

impl Strategy {
    /// True if a result that did not complete can be treated so: a sum has no place for the envelope of a failure.
    pub const fn takes(self, on_failure: OnFailure) -> bool {
        !matches!((self, on_failure), (Self::Sum, OnFailure::Include))
    }

    /// True if the answer can stand before all results are in.
    pub const fn may_end_early(self) -> bool {
        matches!(self, Self::First | Self::Quorum(_))
    }
}

/// The one list of names: written, read, and told in help and in errors. A number belongs to those with a placeholder.
macro_rules! names {
    ($($name:literal => $strategy:ident;)* counted $($counted:literal, $placeholder:literal => $with:ident;)*) => {
        impl Strategy {
            /// The names as they are written, with a placeholder where a number belongs to one: `quorum:N`.
            pub const NAMES: &[&str] = &[$($name,)* $(concat!($counted, ":", $placeholder)),*];

            fn named(name: &str, number: Option<&str>) -> Option<Result<Self, ParseStrategyError>> {
                match (name, number) {
                    $( ($name, None) => Some(Ok(Self::$strategy)), )*
                    $( ($counted, number) => {
                        let count = number.and_then(|number| number.parse().ok()).map(Self::$with);
                        let written = || [&[name], number.as_slice()].concat().join(":");
                        Some(count.ok_or_else(|| ParseStrategyError::Quorum(written())))
                    } )*
                    _ => None,
                }
            }
        }

        impl fmt::Display for Strategy {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $( Self::$strategy => f.pad($name), )*
                    $( Self::$with(number) => write!(f, concat!($counted, ":{}"), number), )*
                }
            }
        }
    };
}

names! {
    "concatenate" => Concatenate;
    "structured" => Structured;
    "structured:base64" => StructuredBase64;
    "vote" => Vote;
    "summarize" => Summarize;
    "sum" => Sum;
    "first" => First;
    counted
    "quorum", "N" => Quorum;
}

impl FromStr for Strategy {
    type Err = ParseStrategyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, argument) = match text.split_once(':') {
            Some((name, argument)) => (name, Some(argument)),
            None => (text, None),
        };
        match Self::named(text, None).or_else(|| Self::named(name, argument)) {
            Some(strategy) => strategy,
            None if NOT_HERE.contains(&name) => Err(ParseStrategyError::NotHere(name.to_owned())),
            None => Err(ParseStrategyError::Unknown(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for name in
            Strategy::NAMES.iter().flat_map(|name| ["1", "12"].map(|n| name.replace('N', n)))
        {
            let strategy: Strategy = name.parse().expect(&name);
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
        check(
            "",
            "unknown merge strategy ``; known are concatenate, structured, structured:base64, vote",
        );
        check("concat", "unknown merge strategy `concat`; known are concatenate");
        check("vote:2", "unknown merge strategy `vote:2`");
        check("custom", "merge strategy `custom` is made by a plugin");
        check("structured:hex", "unknown merge strategy `structured:hex`");
        for text in ["quorum", "quorum:", "quorum:0", "quorum:-1", "quorum:x"] {
            check(text, &format!("`{text}` needs a number from 1"));
        }
    }
}
