//! Durations as people write them: one grammar for flags, tasks and configuration.

use std::time::Duration;

use jiff::{SignedDuration, Span, SpanRelativeTo};

/// Reads a duration: `90s`, `1m`, `1h30m`, `2d`, `3w`, or a plain number of seconds such as `0.5`. A day has 24 hours.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_number {
        return text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    }
    let span = text.parse::<Span>().ok()?;
    let signed: SignedDuration = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    signed.try_into().ok()
}

/// Reads the duration of a limit, which is recorded in whole seconds: a part of a second counts as a whole one, so that no limit becomes 0,
/// which is none.
pub fn parse_seconds(text: &str) -> Option<u64> {
    let read = parse_duration(text)?;
    read.as_secs().checked_add(u64::from(read.subsec_nanos() > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_understood() {
        #[track_caller]
        fn check(text: &str, expected: Option<u64>) {
            let found = parse_duration(text).map(|found| found.as_millis() as u64);
            assert_eq!(found, expected, "{text}");
        }
        check("0", Some(0));
        check("0s", Some(0));
        check("90", Some(90_000));
        check("0.5", Some(500));
        check(".5", Some(500));
        check("250ms", Some(250));
        check("90s", Some(90_000));
        check("1m", Some(60_000));
        check("1.5h", Some(5_400_000));
        check("1h30m", Some(5_400_000));
        check("30d", Some(2_592_000_000));
        check("2w", Some(1_209_600_000));
        let wrong = ["", ".", "d", "-5d", "-5", "1e3", "inf", "2 months", "5日", "1.2.3", "2h ago"];
        for wrong in wrong.into_iter().chain(["99999999999999999999d", "99999999999999999999999"]) {
            check(wrong, None);
        }
    }

    #[test]
    fn a_part_of_a_second_is_a_second_of_a_limit() {
        for (text, expected) in [
            ("0", Some(0)),
            ("0.5", Some(1)),
            ("500ms", Some(1)),
            ("1", Some(1)),
            ("1.001s", Some(2)),
            ("1.5m", Some(90)),
            ("1000ms", Some(1)),
        ] {
            assert_eq!(parse_seconds(text), expected, "{text}");
        }
    }
}
