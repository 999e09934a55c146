//! What a run cost, in money.

use std::fmt;
use std::ops::Add;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// US dollars in millionths. Integers, so that sums add up to the last digit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MicroUsd(u64);

/// A cost that keeps apart what is known, what is estimated and how many runs said nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cost {
    /// Reported by runtimes.
    pub known_usd: MicroUsd,
    /// Computed by us from token counts and the configured prices.
    pub estimated_usd: MicroUsd,
    /// Runs that cost something nobody can name.
    pub unknown_runs: u32,
}

/// A text that is not an amount of dollars.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an amount in dollars, such as 0.25")]
pub struct ParseUsdError {
    text: String,
}

const MICROS: u64 = 1_000_000;

impl MicroUsd {
    /// From millionths of a dollar.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Millionths of a dollar.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// From a float that a vendor reported; rounded to the nearest millionth, negative and absurd values to `None`.
    pub fn from_f64(dollars: f64) -> Option<Self> {
        let micros = (dollars * MICROS as f64).round();
        // 2^53: above it a float no longer counts single millionths, and no bill of nine billion dollars is real.
        (0.0..9_007_199_254_740_992.0).contains(&micros).then_some(Self(micros as u64))
    }
}

impl Cost {
    /// Nothing spent, and known to be so: an operator's command.
    pub const NONE: Self =
        Self { known_usd: MicroUsd(0), estimated_usd: MicroUsd(0), unknown_runs: 0 };

    /// One run whose runtime reported this amount.
    pub const fn known(amount: MicroUsd) -> Self {
        Self { known_usd: amount, ..Self::NONE }
    }

    /// One run that nobody can price.
    pub const fn unknown() -> Self {
        Self { unknown_runs: 1, ..Self::NONE }
    }

    /// Whether there is anything to tell.
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }
}

impl Add for MicroUsd {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            known_usd: self.known_usd + other.known_usd,
            estimated_usd: self.estimated_usd + other.estimated_usd,
            unknown_runs: self.unknown_runs.saturating_add(other.unknown_runs),
        }
    }
}

impl fmt::Display for MicroUsd {
    /// Dollars with at least two and at most six decimals: `0.04`, `1.000001`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:06}", self.0 / MICROS, self.0 % MICROS);
        let cut = text.trim_end_matches('0').len().max(text.len() - 4);
        f.pad(&text[..cut])
    }
}

impl FromStr for MicroUsd {
    type Err = ParseUsdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseUsdError { text: text.to_owned() };
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || decimals.len() > 6 || !digits(whole) || !digits(decimals) {
            return Err(error());
        }
        let whole: u64 = whole.parse().map_err(|_| error())?;
        let micros: u64 = format!("{decimals:0<6}").parse().map_err(|_| error())?;
        whole
            .checked_mul(MICROS)
            .and_then(|sum| sum.checked_add(micros))
            .map(Self)
            .ok_or_else(error)
    }
}

impl Serialize for MicroUsd {
    /// A JSON number in dollars, as people write prices.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0 as f64 / MICROS as f64)
    }
}

impl<'de> Deserialize<'de> for MicroUsd {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        Self::from_f64(dollars).ok_or_else(|| {
            serde::de::Error::custom("an amount of dollars cannot be negative or that large")
        })
    }
}
