//! Numbers as people read them.

use std::time::Duration;

use crate::{Account, Cost, MicroUsd, Timestamp, TokenCount, Usage};

/// Formats a number as `12,340`.
pub fn count(number: u64) -> String {
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

/// ` (12,340 times)`; nothing where something happened once.
pub fn times(times: Option<u64>) -> String {
    times.map_or_else(String::new, |times| format!(" ({} times)", count(times)))
}

/// `3 results`; `1 result`.
pub fn many(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", count(number))
}

/// `3 faults in a row`; `1 fault`.
pub fn faults(faults: u32) -> String {
    match faults {
        1 => "1 fault".to_owned(),
        _ => format!("{} faults in a row", count(faults.into())),
    }
}

/// `12 ms`, `4.1 s`, `1 min 5 s`, `2 h 3 min`, `3 d 4 h`. Never rounded up: nothing looks longer than it was.
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    let two = |large: u64, unit: &str, small: u64, rest: &str| match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {rest}"),
    };
    match seconds {
        0 if time < Duration::from_millis(100) => format!("{} ms", time.as_millis()),
        0..60 => format!("{seconds}.{} s", time.subsec_millis() / 100),
        60..3600 => two(seconds / 60, "min", seconds % 60, "s"),
        3600..86_400 => two(seconds / 3600, "h", seconds / 60 % 60, "min"),
        _ => two(seconds / 86_400, "d", seconds / 3600 % 24, "h"),
    }
}

/// The same of a number of milliseconds.
pub fn milliseconds(number: u64) -> String {
    duration(Duration::from_millis(number))
}

/// `512 B`, `1.5 MiB`. Never rounded up.
pub fn bytes(size: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if size < 1024 {
        return format!("{size} B");
    }
    let step = (size.ilog2() / 10) as usize;
    let unit = 1_u128 << (10 * step);
    let tenths = u128::from(size) * 10 / unit;
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[step - 1])
}

/// `12,340 tokens`; `≥ 12,340 tokens` for a lower bound, `~ 12,340 tokens` for an estimate, and words where nothing is known, which is not none.
pub fn tokens(count_: TokenCount) -> String {
    match count_ {
        TokenCount::AtLeast(bound) => format!("≥ {}", tokens(TokenCount::Known(bound))),
        TokenCount::Estimated(most) => format!("~ {}", tokens(TokenCount::Known(most))),
        TokenCount::Known(1) => "1 token".to_owned(),
        TokenCount::Known(known) => format!("{} tokens", count(known)),
        TokenCount::Unknown => "tokens not reported".to_owned(),
    }
}

/// `$0.04`: to the nearest cent, and smaller amounts as they are.
pub fn dollars(amount: MicroUsd) -> String {
    const CENT: u64 = 10_000;
    let micros = amount.as_micros();
    if micros < CENT {
        return format!("${amount}");
    }
    // Halves go up. Saturating, because an amount at the end of 64 bits is not worth a panic.
    let cents = micros.saturating_add(CENT / 2) / CENT;
    format!("${}.{:02}", count(cents / 100), cents % 100)
}

/// `$0.0365`: to the millionth, without zeros behind the cents. For amounts that are compared with each other.
pub fn exact_dollars(amount: MicroUsd) -> String {
    format!("${amount}")
}

/// `$0.04`; `$0.04 metered` where the meter has counted it; `≈ $0.04` where part of it is our estimate; `≥ $0.04` where some runs reported nothing, and words where
/// none did. A lower bound is never rounded up.
pub fn cost(cost: &Cost) -> String {
    const CENT: u64 = 10_000;
    let sum = cost.dollars();
    if cost.unknown_runs > 0 {
        return match sum.as_micros() {
            0 => "cost not reported".to_owned(),
            micros if micros < CENT => format!("≥ {}", dollars(sum)),
            micros => format!("≥ {}", dollars(MicroUsd::from_micros(micros / CENT * CENT))),
        };
    }
    let sign = if cost.estimated_usd > MicroUsd::default() { "≈ " } else { "" };
    let metered = match cost.metered_usd {
        metered if metered.is_zero() => String::new(),
        metered if metered == sum => " metered".to_owned(),
        metered => format!(", {} of it metered", dollars(metered)),
    };
    format!("{sign}{}{metered}", dollars(sum))
}

/// `a quota (five_hour) is used up`, or `4 % of a quota (five_hour) are left, and kept`, of millionths.
pub fn quota(window: Option<&str>, left: Option<u32>) -> String {
    let window = window.map_or_else(String::new, |window| format!(" ({window})"));
    match left {
        None => format!("a quota{window} is used up"),
        Some(left) => format!("{} % of a quota{window} are left, and kept", left / 10_000),
    }
}

/// `at most 4 runs of claude at once, until more are answered`, or that there is no bound any more.
pub fn pace(account: &Account, most: Option<u32>) -> String {
    match most {
        Some(most) => format!("at most {most} runs of {account} at once, until more are answered"),
        None => format!("any number of runs of {account} at once"),
    }
}

/// `worked for 12.3 s of CPU time while it waited for 1 min`, of milliseconds.
pub fn busy(cpu_ms: u64, wait_ms: u64) -> String {
    let [cpu, wait] = [cpu_ms, wait_ms].map(milliseconds);
    format!("worked for {cpu} of CPU time while it waited for {wait}")
}

/// `340 tokens and $0.0015`, of tokens and millionths of a dollar; only one of them where the other is zero.
pub fn amounts(tokens_: u64, micro_usd: u64) -> String {
    let in_tokens = tokens(TokenCount::Known(tokens_));
    let in_dollars = dollars(MicroUsd::from_micros(micro_usd));
    match (tokens_, micro_usd) {
        (0, 1..) => in_dollars,
        (_, 0) => in_tokens,
        (1.., 1..) => format!("{in_tokens} and {in_dollars}"),
    }
}

/// The words of [`used`] where neither tokens nor money are known.
pub const NOT_REPORTED: &str = "usage not reported";

/// Tokens and money, where there is anything to tell: a command of the operator's own uses neither.
pub fn used(usage: &Usage, money: &Cost) -> Option<String> {
    let unknown_cost =
        money.unknown_runs > 0 && *money == Cost { unknown_runs: money.unknown_runs, ..Cost::NONE };
    if usage.total() == TokenCount::Unknown && unknown_cost {
        return Some(NOT_REPORTED.to_owned());
    }
    let tokens = (*usage != Usage::default()).then(|| tokens(usage.total()));
    let money = (!money.is_none()).then(|| cost(money));
    match (tokens, money) {
        (Some(tokens), Some(money)) => Some(format!("{tokens}  {money}")),
        (tokens, money) => tokens.or(money),
    }
}

/// `2025-08-01T12:00:00.001Z`: always as wide, so that lines stand below each other.
pub fn moment(at: Timestamp) -> String {
    let micros = at.as_micros();
    let second = Timestamp::from_micros(micros - micros % 1_000_000).to_string();
    match second.strip_suffix('Z') {
        Some(second) => format!("{second}.{:03}Z", micros / 1000 % 1000),
        None => second,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        for (number, expected) in
            [(0, "0"), (999, "999"), (1000, "1,000"), (12_340, "12,340"), (1_234_567, "1,234,567")]
        {
            assert_eq!(count(number), expected);
        }
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn durations() {
        for (milliseconds, expected) in [
            (0, "0 ms"),
            (99, "99 ms"),
            (100, "0.1 s"),
            (4_199, "4.1 s"),
            (59_999, "59.9 s"),
            (60_000, "1 min"),
            (65_000, "1 min 5 s"),
            (3_600_000, "1 h"),
            (7_399_000, "2 h 3 min"),
            (86_400_000, "1 d"),
            (273_600_000, "3 d 4 h"),
        ] {
            assert_eq!(duration(Duration::from_millis(milliseconds)), expected, "{milliseconds}");
        }
    }

    #[test]
    fn sizes() {
        for (size, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1_572_864, "1.5 MiB"),
            (1_048_575, "1023.9 KiB"),
            (1 << 30, "1.0 GiB"),
            (u64::MAX, "15.9 EiB"),
        ] {
            assert_eq!(bytes(size), expected);
        }
    }

    #[test]
    fn unknown_is_not_zero() {
        assert_eq!(tokens(TokenCount::Known(0)), "0 tokens");
        assert_eq!(tokens(TokenCount::Known(1)), "1 token");
        assert_eq!(tokens(TokenCount::Known(12_340)), "12,340 tokens");
        assert_eq!(tokens(TokenCount::AtLeast(1_000)), "≥ 1,000 tokens");
        assert_eq!(tokens(TokenCount::Estimated(1_000)), "~ 1,000 tokens");
        assert_eq!(tokens(TokenCount::Unknown), "tokens not reported");
        let used = |usage: &Usage, cost: &Cost| used(usage, cost).unwrap_or_default();
        assert_eq!(used(&Usage::UNKNOWN, &Cost::unknown()), "usage not reported");
        assert_eq!(used(&Usage::UNKNOWN, &Cost::NONE), "tokens not reported");
        assert_eq!(used(&Usage::default(), &Cost::unknown()), "cost not reported");
        assert_eq!(used(&Usage::default(), &Cost::NONE), "");
        let check = |known: u64, estimated: u64, unknown_runs: u32, expected: &str| {
            let amounts = Cost {
                known_usd: MicroUsd::from_micros(known),
                estimated_usd: MicroUsd::from_micros(estimated),
                unknown_runs,
                ..Cost::NONE
            };
            assert_eq!(cost(&amounts), expected);
        };
        check(0, 0, 0, "$0.00");
        check(36_500, 0, 0, "$0.04");
        check(1_200, 0, 0, "$0.0012");
        check(9_995_000, 0, 0, "$10.00");
        check(1_234_560_000, 0, 0, "$1,234.56");
        check(30_000, 10_000, 0, "≈ $0.04");
        check(48_000, 0, 1, "≥ $0.04");
        check(30_000, 10_000, 2, "≥ $0.04");
        check(500, 0, 1, "≥ $0.0005");
        check(0, 0, 1, "cost not reported");
        check(u64::MAX, 0, 0, "$1,000,000,000.00");
        let metered = Cost::metered(MicroUsd::from_micros(36_500));
        assert_eq!(cost(&metered), "$0.04 metered");
        let beside = Cost::known(MicroUsd::from_micros(20_000));
        assert_eq!(cost(&(metered + beside)), "$0.06, $0.04 of it metered");
    }

    #[test]
    fn moments() {
        assert_eq!(
            moment(Timestamp::from_micros(1_754_049_600_001_999)),
            "2025-08-01T12:00:00.001Z"
        );
        assert_eq!(moment(Timestamp::EPOCH), "1970-01-01T00:00:00.000Z");
        assert!(moment(Timestamp::from_micros(u64::MAX)).ends_with(" µs"));
    }
}
