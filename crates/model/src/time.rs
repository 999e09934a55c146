//! A moment, as the record keeps it.

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Microseconds since the Unix epoch. Taken from a clock that is handed in; the record is read on other
/// machines and days, so it is wall time, and differences saturate where a clock was set back.
// One more than the microseconds, so that a moment that may be missing takes no more room: queues hold many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(from = "u64", into = "u64")]
#[schemars(with = "u64")]
pub struct Timestamp(NonZeroU64);

impl Timestamp {
    /// The epoch itself, for tests and defaults.
    pub const EPOCH: Self = Self::from_micros(0);

    /// From microseconds since the epoch. The last moment of all is the one before [`u64::MAX`].
    pub const fn from_micros(micros: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(micros))
    }

    /// Microseconds since the epoch.
    pub const fn as_micros(self) -> u64 {
        self.0.get() - 1
    }

    /// Returns the time since `earlier`; zero where the clock was set back.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.get().saturating_sub(earlier.0.get()))
    }

    /// Returns this moment plus a duration.
    #[must_use]
    pub fn plus(self, while_: Duration) -> Self {
        let micros = u64::try_from(while_.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(micros))
    }
}

impl Default for Timestamp {
    fn default() -> Self {
        Self::EPOCH
    }
}

impl From<u64> for Timestamp {
    fn from(micros: u64) -> Self {
        Self::from_micros(micros)
    }
}

impl From<Timestamp> for u64 {
    fn from(at: Timestamp) -> Self {
        at.as_micros()
    }
}

/// Serialises a moment in RFC 3339, or null where there is none.
///
/// # Errors
/// Fails as the serializer does.
pub fn rfc3339<S: Serializer>(
    at: &(impl Into<Option<Timestamp>> + Copy),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    (*at).into().map(|at| at.to_string()).serialize(serializer)
}

/// Reads a moment from RFC 3339.
///
/// # Errors
/// Fails where the text is no moment since the epoch.
pub fn from_rfc3339<'de, D: Deserializer<'de>, T: From<Timestamp>>(
    deserializer: D,
) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    let at: jiff::Timestamp = text.parse().map_err(D::Error::custom)?;
    let micros = u64::try_from(at.as_microsecond()).map_err(D::Error::custom)?;
    Ok(T::from(Timestamp::from_micros(micros)))
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC. Moments no calendar knows are shown as the number of microseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match i64::try_from(self.as_micros())
            .ok()
            .and_then(|us| jiff::Timestamp::from_microsecond(us).ok())
        {
            Some(at) => at.fmt(f),
            None => write!(f, "{} µs", self.as_micros()),
        }
    }
}
