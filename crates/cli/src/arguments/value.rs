//! Values of options: what reads each, and what is said of one that cannot be read.
//!
//! Each reader names what is allowed and a value that works; `crate::usage` makes the message of them.

use std::error::Error;
use std::ffi::OsStr;
use std::fmt::{self, Display};
use std::ops::Bound::Included;
use std::ops::RangeBounds;
use std::os::unix::ffi::OsStrExt;
use std::str::FromStr;
use std::time::Duration;

use offshoot_config::MaxDepth;
use offshoot_model::{MicroUsd, parse_duration, parse_seconds};

/// A value that an option does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WrongValue {
    /// The value as it was written.
    pub(crate) found: String,
    /// The values that the option takes, as the end of the sentence "allowed is".
    pub(crate) allowed: String,
    /// A value that the option takes.
    pub(crate) example: String,
}

impl WrongValue {
    fn new(found: &str, allowed: impl Display, example: impl Display) -> Self {
        let (allowed, example) = (allowed.to_string(), example.to_string());
        Self { found: found.to_owned(), allowed, example }
    }
}

impl Display for WrongValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { found, allowed, .. } = self;
        write!(f, "found {found:?}, allowed is {allowed}")
    }
}

impl Error for WrongValue {}

/// Returns the reader of a whole number in a range. One that ends is told with its end: a value may be larger by a slip.
pub(crate) fn whole<T: FromStr + PartialOrd + Display>(
    range: impl RangeBounds<T> + Clone,
    example: &'static str,
) -> impl Fn(&str) -> Result<T, WrongValue> + Clone {
    move |text| {
        text.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| {
            let allowed = match (range.start_bound(), range.end_bound()) {
                (Included(least), Included(most)) => {
                    format!("a whole number from {least} to {most}")
                }
                (Included(least), _) => format!("a whole number of at least {least}"),
                _ => "a whole number".to_owned(),
            };
            WrongValue::new(text, allowed, example)
        })
    }
}

/// Returns the reader of a value that is read from text by its type.
pub(crate) fn value<T: FromStr>(
    allowed: &'static str,
    example: &'static str,
) -> impl Fn(&str) -> Result<T, WrongValue> + Clone {
    move |text| text.parse().map_err(|_| WrongValue::new(text, allowed, example))
}

/// Returns the same reader, with the text as it was written in place of what it means.
pub(crate) fn written<T>(
    read: impl Fn(&str) -> Result<T, WrongValue> + Clone,
) -> impl Fn(&str) -> Result<String, WrongValue> + Clone {
    move |text| read(text).map(|_| text.to_owned())
}

/// Reads a number of levels below a root.
pub(crate) fn max_depth(text: &str) -> Result<String, WrongValue> {
    let depth = text.parse().ok().and_then(MaxDepth::new);
    depth.map(|depth| depth.to_string()).ok_or_else(|| {
        let (least, most) = (MaxDepth::MIN, MaxDepth::MAX);
        WrongValue::new(text, format_args!("a whole number from {least} to {most}"), "3")
    })
}

/// Reads an exit code.
pub(crate) fn exit_code(text: &str) -> Result<i32, WrongValue> {
    let allowed = "an exit code from 0 to 255, or several with commas between them";
    text.parse::<u8>().map(i32::from).map_err(|_| WrongValue::new(text, allowed, "0,1"))
}

/// Reads an amount in dollars.
pub(crate) fn usd(text: &str) -> Result<MicroUsd, WrongValue> {
    text.parse().map_err(|_| {
        let allowed =
            format_args!("an amount in dollars up to {}, with at most six decimals", MicroUsd::MAX);
        WrongValue::new(text, allowed, "0.25")
    })
}

/// Reads a duration: `90s`, `1m`, `1h30m`, `2d`, `3w`, or a plain number of seconds such as `0.5`. A day has 24 hours.
pub(crate) fn duration(text: &str) -> Result<Duration, WrongValue> {
    let allowed = "a duration such as 90s, 1m, 1h30m, 2d, 3w, or 0.5 for half a second";
    parse_duration(text).ok_or_else(|| WrongValue::new(text, allowed, "90s"))
}

/// Reads a duration whose unit is written out, for what cannot be undone.
pub(crate) fn duration_with_unit(text: &str) -> Result<Duration, WrongValue> {
    let is_number = text.parse::<f64>().is_ok_and(|number| number.is_sign_positive());
    if is_number && parse_duration(&format!("{text}d")).is_some() {
        let allowed = format_args!(
            "a duration with its unit: {text}s for seconds, {text}h for hours or {text}d for days"
        );
        return Err(WrongValue::new(text, allowed, format_args!("{text}d")));
    }
    duration(text)
}

/// Reads the duration of a limit, in whole seconds, as limits are recorded. A part of a second counts as a whole one.
pub(crate) fn seconds(text: &str) -> Result<u64, WrongValue> {
    let allowed = "a duration such as 90s, 1m, 1h30m, 2d or 3w";
    parse_seconds(text).ok_or_else(|| WrongValue::new(text, allowed, "90s"))
}

/// Reads the same, as the text that the configuration takes.
pub(crate) fn seconds_text(text: &str) -> Result<String, WrongValue> {
    seconds(text).map(|seconds| seconds.to_string())
}

/// Reads the time that something has from now on: no time at all would end it at once.
pub(crate) fn seconds_from_now(text: &str) -> Result<u64, WrongValue> {
    match seconds(text)? {
        0 => Err(WrongValue::new(text, "a duration that is not 0", "2h")),
        seconds => Ok(seconds),
    }
}

/// Reads a pair such as `NAME=FILE`, of which neither part is empty. The file may have any name, the value has one that is UTF-8.
pub(crate) fn named_file(pair: &OsStr) -> Result<(&str, &OsStr), WrongValue> {
    let bytes = pair.as_bytes();
    let at = bytes.iter().position(|byte| *byte == b'=');
    let split = at.map(|at| (&bytes[..at], &bytes[at + 1..]));
    split
        .and_then(|(name, file)| Some((str::from_utf8(name).ok()?, OsStr::from_bytes(file))))
        .filter(|(name, file)| !name.is_empty() && !file.is_empty())
        .ok_or_else(|| {
            let found = pair.to_string_lossy();
            WrongValue::new(&found, "a name, `=` and a file", "plan=plan.md")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_second_counts_as_a_whole_one() {
        for (text, expected) in [("0", 0), ("1", 1), ("2m", 120), ("0.5", 1), ("1001ms", 2)] {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
        assert_eq!(seconds_from_now("2h"), Ok(7_200));
        for text in ["0", "0s"] {
            let refused = seconds_from_now(text).expect_err("no time at all").to_string();
            assert!(refused.ends_with("a duration that is not 0"), "{refused}");
        }
        let refused = seconds("soon").expect_err("no duration").to_string();
        assert!(refused.starts_with("found \"soon\", allowed is a duration such as 90s"));
    }

    #[test]
    fn numbers_have_their_bounds() {
        let check = |read: Result<u32, WrongValue>, expected: Result<u32, &str>| {
            let read = read.map_err(|wrong| wrong.to_string());
            assert_eq!(
                read.as_ref().map_err(|wrong| &**wrong),
                expected.as_ref().map_err(|it| *it)
            );
        };
        let number = whole(1..=u32::MAX, "3");
        check(number("7"), Ok(7));
        let all = "allowed is a whole number from 1 to 4294967295";
        for wrong in ["0", "-1", "x", "", "4294967296", "1.5"] {
            check(number(wrong), Err(&format!("found {wrong:?}, {all}")));
        }
        assert_eq!(written(whole(0_u64.., "3"))("007"), Ok("007".to_owned()));
        assert_eq!(exit_code("255"), Ok(255));
        for wrong in ["256", "-1", "abc", "0;1"] {
            exit_code(wrong).expect_err(wrong);
        }
        assert_eq!(duration_with_unit("-3").expect_err("no duration").example, "90s");
        assert_eq!(duration_with_unit("3").expect_err("no unit").example, "3d");
    }
}
