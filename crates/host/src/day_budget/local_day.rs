//! Days in the time zone of the computer.

use std::time::Duration;

use jiff::Zoned;
use jiff::tz::TimeZone;
use offshoot_model::Timestamp;

/// The length of a day that no change of the clocks makes longer or shorter.
pub(super) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn zoned(now: Timestamp) -> Zoned {
    let micros = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
    let at = jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::MAX);
    at.to_zoned(TimeZone::system())
}

/// Returns a time that is so much earlier.
pub(super) fn earlier(now: Timestamp, duration: Duration) -> Timestamp {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_sub(micros))
}

/// Returns the time that is left of the local day; at the end of all time, one day.
pub(super) fn until_midnight(now: Timestamp) -> Duration {
    let now = zoned(now);
    let midnight = now.tomorrow().and_then(|tomorrow| tomorrow.start_of_day());
    midnight.map_or(DAY, |midnight| now.duration_until(&midnight).unsigned_abs())
}

/// Returns the day in the time zone of the computer, as `20261127`.
pub(super) fn local_day(now: Timestamp) -> u32 {
    let day = zoned(now).date();
    u32::from(day.year().unsigned_abs()) * 10_000
        + u32::from(day.month().unsigned_abs()) * 100
        + u32::from(day.day().unsigned_abs())
}
