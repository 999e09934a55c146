//! Lengths of time as providers write them: `1s`, `6m0s`, `1h2m3.5s`, `120ms`. Pure.

use std::time::Duration;

/// A length beyond this is a defect of whatever said it.
const MOST_SECONDS: f64 = 10.0 * 366.0 * 86_400.0;

/// A length from seconds; none where it cannot be one.
pub(super) fn seconds(seconds: f64) -> Option<Duration> {
    (0.0..=MOST_SECONDS).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

/// A length of numbers with units.
pub(super) fn parse(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut sum = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        let unit = &rest[digits..];
        let (factor, length) = match unit.as_bytes() {
            [b'm', b's', ..] => (0.001, 2),
            [b'd', ..] => (86_400.0, 1),
            [b'h', ..] => (3_600.0, 1),
            [b'm', ..] => (60.0, 1),
            [b's', ..] => (1.0, 1),
            _ => return None,
        };
        sum += number * factor;
        rest = &unit[length..];
    }
    seconds(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_units() {
        for (text, expected) in [
            ("1s", Some(1_000)),
            ("6m0s", Some(360_000)),
            ("1h2m3.5s", Some(3_723_500)),
            ("120ms", Some(120)),
            ("2d", Some(172_800_000)),
            ("", None),
            ("5", None),
            ("s", None),
            ("1x", None),
            ("-1s", None),
            ("1é", None),
            ("99999999d", None),
        ] {
            assert_eq!(parse(text).map(|length| length.as_millis()), expected, "{text}");
        }
        assert_eq!(seconds(f64::NAN), None);
    }
}
