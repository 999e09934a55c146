//! A moment, as the record keeps it.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Microseconds since the Unix epoch. Taken from a clock that is handed in; the record is read on other
/// machines and days, so it is wall time, and differences saturate where a clock was set back.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The epoch itself, for tests and defaults.
    pub const EPOCH: Self = Self(0);

    /// From microseconds since the epoch.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the epoch.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Returns the time since `earlier`; zero where the clock was set back.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// Returns this moment plus a duration.
    #[must_use]
    pub fn plus(self, while_: Duration) -> Self {
        let micros = u64::try_from(while_.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(micros))
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC. Moments no calendar knows are shown as the number of microseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match i64::try_from(self.0).ok().and_then(|us| jiff::Timestamp::from_microsecond(us).ok()) {
            Some(at) => at.fmt(f),
            None => write!(f, "{} µs", self.0),
        }
    }
}
