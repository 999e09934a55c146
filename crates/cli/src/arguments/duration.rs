//! Durations, as all flags take them.

use std::time::Duration;

use jiff::{SignedDuration, Span, SpanRelativeTo};

/// Reads a duration: `90s`, `1m`, `1h30m`, `2d`, `3w`, or a plain number of seconds such as `0.5`. A day has 24 hours.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let read = if is_number {
        text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    } else {
        let span = text.parse::<Span>().ok();
        let signed =
            span.and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()).ok());
        signed.and_then(|signed: SignedDuration| signed.try_into().ok())
    };
    read.ok_or_else(|| {
        format!("`{text}` is no duration, such as 90s, 1m, 1h30m, 2d, 3w, or 0.5 for half a second")
    })
}

/// Reads a duration whose unit is written out, for what cannot be undone.
pub(super) fn duration_with_unit(text: &str) -> Result<Duration, String> {
    if text.parse::<f64>().is_ok() {
        return Err(format!("`{text}` has no unit: write {text}s for seconds, {text}h or {text}d"));
    }
    duration(text)
}

/// Reads the duration of a limit, in whole seconds. A part of a second counts as one: limits are recorded in seconds.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    let duration = duration(text)?;
    Ok(duration.as_secs() + u64::from(duration.subsec_nanos() > 0))
}

/// Reads the same, as the text that the configuration takes.
pub(super) fn seconds_text(text: &str) -> Result<String, String> {
    seconds(text).map(|seconds| seconds.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_understood() {
        #[track_caller]
        fn check(text: &str, expected: Option<u64>) {
            let found = duration(text).ok().map(|found| found.as_millis() as u64);
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
    fn a_part_of_a_second_counts_as_one() {
        for (text, expected) in [("0", 0), ("0.5", 1), ("1", 1), ("1.001s", 2), ("2m", 120)] {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
    }
}
