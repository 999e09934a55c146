//! The cost of a run, in money.

use std::fmt;
use std::ops::Add;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// US dollars in millionths, from zero to [`MicroUsd::MAX`]. Integers, so that sums add up to the last digit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(from = "f64")]
pub struct MicroUsd(u64);

/// A cost that keeps apart what is known, what is estimated and how many runs said nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cost {
    /// Counted by the meter, request by request, from what the provider reported and the configured prices.
    #[serde(default, skip_serializing_if = "MicroUsd::is_zero")]
    pub metered_usd: MicroUsd,
    /// Reported by runtimes.
    pub known_usd: MicroUsd,
    /// Computed by us from token counts and the configured prices, or the bound of a request whose use was not reported.
    pub estimated_usd: MicroUsd,
    /// The number of runs whose cost is not known.
    pub unknown_runs: u32,
}

/// The knowledge of the cost of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, strum::AsRefStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum CostKnowledge {
    /// Costs nothing: an operator's command.
    None,
    /// Counted by the meter: each request is reserved before it leaves, and charged when it is over.
    Metered,
    /// Reported while it runs or at its end.
    Reported,
    /// Not reported, but the runtime holds it under a bound that it is given.
    Bounded,
    /// The cost is not known.
    Unknown,
}

/// A text that is not an amount of dollars.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseUsdError {
    /// The text is no number with at most six decimals.
    #[error("`{text}` is not an amount in dollars, such as 0.25")]
    NoAmount {
        /// The text.
        text: String,
    },
    /// The amount is more than [`MicroUsd::MAX`].
    #[error("`{text}` is more than the largest amount, {most} dollars", most = MicroUsd::MAX)]
    TooLarge {
        /// The text.
        text: String,
    },
}

const MICROS: u64 = 1_000_000;

impl MicroUsd {
    /// The largest amount: a billion dollars. JSON carries amounts as numbers of dollars, and up to here a float tells
    /// single millionths apart.
    pub const MAX: Self = Self(1_000_000_000 * MICROS);

    /// From millionths of a dollar. More than the largest amount is the largest amount.
    pub const fn from_micros(micros: u64) -> Self {
        if micros > Self::MAX.0 { Self::MAX } else { Self(micros) }
    }

    /// Millionths of a dollar.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// True for no dollars.
    pub const fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// From a float that a vendor reported; rounded to the nearest millionth, negative and absurd values to `None`.
    pub fn from_f64(dollars: f64) -> Option<Self> {
        let micros = (dollars * MICROS as f64).round();
        (0.0..=Self::MAX.0 as f64).contains(&micros).then_some(Self(micros as u64))
    }
}

impl Cost {
    /// Nothing spent, and known to be so: an operator's command.
    pub const NONE: Self = Self {
        metered_usd: MicroUsd(0),
        known_usd: MicroUsd(0),
        estimated_usd: MicroUsd(0),
        unknown_runs: 0,
    };

    /// One run whose runtime reported this amount.
    pub const fn known(amount: MicroUsd) -> Self {
        Self { known_usd: amount, ..Self::NONE }
    }

    /// One run whose requests the meter has counted.
    pub const fn metered(amount: MicroUsd) -> Self {
        Self { metered_usd: amount, ..Self::NONE }
    }

    /// One run, or one request, of which this amount was computed because nothing was reported.
    pub const fn estimated(amount: MicroUsd) -> Self {
        Self { estimated_usd: amount, ..Self::NONE }
    }

    /// Returns all dollars, however they are known. A lower bound where the cost of some runs is not known.
    pub fn dollars(&self) -> MicroUsd {
        self.metered_usd + self.known_usd + self.estimated_usd
    }

    /// One run of unknown cost.
    pub const fn unknown() -> Self {
        Self { unknown_runs: 1, ..Self::NONE }
    }

    /// Returns this cost as a lower bound: what was reported of a run that was cut off.
    #[must_use]
    pub const fn cut_off(self) -> Self {
        Self { unknown_runs: if self.unknown_runs == 0 { 1 } else { self.unknown_runs }, ..self }
    }

    /// Returns this cost, or that of a report that came behind it where it says more: nothing spent is ever unspent.
    #[must_use]
    pub fn at_least(self, report: Self) -> Self {
        Self {
            metered_usd: self.metered_usd.max(report.metered_usd),
            known_usd: self.known_usd.max(report.known_usd),
            estimated_usd: self.estimated_usd.max(report.estimated_usd),
            unknown_runs: self.unknown_runs,
        }
    }

    /// Returns this cost of a run with that of one more of its requests. A run whose cost is not known stays one.
    #[must_use]
    pub fn with_request(self, request: Self) -> Self {
        let unknown_runs = self.unknown_runs.max(request.unknown_runs);
        Self { unknown_runs, ..self + request }
    }

    /// True if the cost is known to be zero.
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }
}

impl Add for MicroUsd {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self::from_micros(self.0.saturating_add(other.0))
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            metered_usd: self.metered_usd + other.metered_usd,
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
        let no_amount = || ParseUsdError::NoAmount { text: text.to_owned() };
        let too_large = || ParseUsdError::TooLarge { text: text.to_owned() };
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || decimals.len() > 6 || !digits(whole) || !digits(decimals) {
            return Err(no_amount());
        }
        // Digits alone fail to be a number only by their count.
        let whole: u64 = whole.parse().map_err(|_| too_large())?;
        let micros: u64 = format!("{decimals:0<6}").parse().map_err(|_| no_amount())?;
        let sum = whole.checked_mul(MICROS).and_then(|sum| sum.checked_add(micros));
        sum.filter(|&sum| sum <= Self::MAX.0).map(Self).ok_or_else(too_large)
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
        // An earlier version wrote larger amounts, and its records are to be read.
        if dollars > Self::MAX.0 as f64 / MICROS as f64 {
            return Ok(Self::MAX);
        }
        Self::from_f64(dollars)
            .ok_or_else(|| serde::de::Error::custom("an amount of dollars cannot be negative"))
    }
}
