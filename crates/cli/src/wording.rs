//! Times and amounts in the words that several commands share.

use offshoot_model::Timestamp;
use serde::Serializer;

/// `0.3 s`, `4.1 s`, `2 min 5 s`.
pub(crate) fn milliseconds(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    match seconds {
        0..60 => format!("{}.{} s", seconds, milliseconds % 1000 / 100),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// A number of things, with commas: `12,340`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A moment to the second, in UTC: `2026-01-31T12:00:00Z`.
pub(crate) fn second(at: Timestamp) -> String {
    const SECOND: u64 = 1_000_000;
    Timestamp::from_micros(at.as_micros() / SECOND * SECOND).to_string()
}

/// A moment as JSON shows it.
pub(crate) fn rfc3339<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(at)
}

/// The same, where there may be none.
pub(crate) fn maybe_rfc3339<S: Serializer>(
    at: &Option<Timestamp>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => serializer.collect_str(at),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_counts_are_short() {
        for (given, expected) in [
            (0, "0.0 s"),
            (149, "0.1 s"),
            (59_999, "59.9 s"),
            (65_000, "1 min 5 s"),
            (3_660_000, "1 h 1 min"),
        ] {
            assert_eq!(milliseconds(given), expected);
        }
        for (given, expected) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")]
        {
            assert_eq!(count(given), expected);
        }
        assert_eq!(second(Timestamp::from_micros(1_999_999)), "1970-01-01T00:00:01Z");
    }
}
