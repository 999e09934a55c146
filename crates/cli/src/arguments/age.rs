//! An age: the time since something happened.

use std::str::FromStr;
use std::time::Duration;

/// A while, as people write one: `90s`, `15m`, `12h`, `30d`, `2w`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Age(pub(crate) Duration);

impl FromStr for Age {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no duration, such as 90s, 15m, 12h, 30d or 2w");
        let unit = text.chars().next_back().ok_or_else(wrong)?;
        let seconds: u64 = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 24 * 3600,
            'w' => 7 * 24 * 3600,
            _ => return Err(wrong()),
        };
        let number = &text[..text.len() - 1];
        let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let number: u64 = number.parse().ok().filter(|_| digits).ok_or_else(wrong)?;
        number.checked_mul(seconds).map(Duration::from_secs).map(Self).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_understood() {
        #[track_caller]
        fn check(text: &str, expected: Option<u64>) {
            let found = text.parse::<Age>().ok().map(|age| age.0.as_secs());
            assert_eq!(found, expected, "{text}");
        }
        check("0s", Some(0));
        check("90s", Some(90));
        check("15m", Some(900));
        check("12h", Some(43_200));
        check("30d", Some(2_592_000));
        check("2w", Some(1_209_600));
        for wrong in ["", "d", "5", "-5d", "+5d", "1.5h", "5 d", "5日", "99999999999999999999d"] {
            check(wrong, None);
        }
    }
}
