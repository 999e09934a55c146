//! Durations, as all flags take them.

use std::time::Duration;

use offshoot_model::{parse_duration, parse_seconds};

/// Reads a duration: `90s`, `1m`, `1h30m`, `2d`, `3w`, or a plain number of seconds such as `0.5`. A day has 24 hours.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| {
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

/// Reads the duration of a limit, in whole seconds, as limits are recorded.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    if let Some(seconds) = parse_seconds(text) {
        return Ok(seconds);
    }
    let above = duration(text)?.as_secs().saturating_add(1);
    Err(format!(
        "`{text}` is no whole number of seconds, which is what a limit is kept in: write {above}s or more"
    ))
}

/// Reads the same, as the text that the configuration takes.
pub(super) fn seconds_text(text: &str) -> Result<String, String> {
    seconds(text).map(|seconds| seconds.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_second_is_refused_by_name() {
        for (text, expected) in [("0", Ok(0)), ("1", Ok(1)), ("2m", Ok(120))] {
            assert_eq!(seconds(text), expected, "{text}");
        }
        for (text, expected) in [("0.5", "write 1s"), ("500ms", "write 1s"), ("1.001s", "write 2s")]
        {
            let refused = seconds(text).expect_err("a part of a second");
            assert!(refused.contains(text) && refused.contains(expected), "{refused}");
        }
        assert!(seconds("soon").is_err_and(|refused| refused.contains("is no duration")));
    }
}
