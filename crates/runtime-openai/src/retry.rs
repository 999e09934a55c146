//! The times at which a call is repeated. Pure.

use std::time::Duration;

use jiff::fmt::rfc2822;
use serde::Deserialize;

/// The number of repetitions of a call that may end otherwise, and their times.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Retries {
    /// So many times after the first.
    pub count: u32,
    /// Before the first of them, in seconds; twice as long before each further one.
    pub backoff_seconds: f64,
    /// The longest wait, in seconds. A service that asks for more is not waited for.
    pub longest_seconds: f64,
}

impl Default for Retries {
    /// Half a minute together, which most overloads do not outlast.
    fn default() -> Self {
        Self { count: 5, backoff_seconds: 1.0, longest_seconds: 60.0 }
    }
}

impl Retries {
    /// Returns the longest wait between two calls.
    pub fn longest(&self) -> Duration {
        seconds(self.longest_seconds)
    }

    /// Returns the wait before the attempt after the `failed`-th, which failed and may end otherwise; none where it was the last.
    /// `after` is the wait that the service asked for, `chance` a number from 0 to 1.
    ///
    /// Up to a fifth is added by chance, so that runs that were refused together do not come back together.
    pub fn wait(&self, failed: u32, after: Option<Duration>, chance: f64) -> Option<Duration> {
        let longest = self.longest();
        if failed > self.count || after.is_some_and(|after| after > longest) {
            return None;
        }
        let doubled = self.backoff_seconds * 2f64.powi(failed.saturating_sub(1).min(30) as i32);
        let wait = after.unwrap_or_else(|| seconds(doubled)).min(longest);
        Some(wait.mul_f64(1.0 + 0.2 * chance.clamp(0.0, 1.0)))
    }
}

/// Returns the wait that a service asks for: `header` looks one up by its name.
///
/// A date is read against the service's own clock, which stands in the same answer.
pub fn after<'h>(header: impl Fn(&str) -> Option<&'h str>) -> Option<Duration> {
    if let Some(millis) = header("retry-after-ms").and_then(number) {
        return Some(seconds(millis / 1000.0));
    }
    let Some(after) = header("retry-after") else { return reset(header) };
    if let Some(after) = number(after) {
        return Some(seconds(after));
    }
    let then = rfc2822::parse(after.trim()).ok()?.timestamp();
    let now = rfc2822::parse(header("date")?.trim()).ok()?.timestamp();
    // One that lies behind us is over.
    Some(then.duration_since(now).try_into().unwrap_or_default())
}

/// The time until a limit that is used up is reset, in the words of services that name each limit; the longest of several.
fn reset<'h>(header: impl Fn(&str) -> Option<&'h str>) -> Option<Duration> {
    let of = |limit: &str| {
        let is_used_up = header(&format!("x-ratelimit-remaining-{limit}"))?.trim() == "0";
        span(header(&format!("x-ratelimit-reset-{limit}"))?).filter(|_| is_used_up)
    };
    ["requests", "tokens"].into_iter().filter_map(of).max()
}

/// Reads a length of time as `6m0s`, `1.5s`, `200ms` or `90`.
fn span(text: &str) -> Option<Duration> {
    if let Some(number) = number(text) {
        return Some(seconds(number));
    }
    let mut rest = text.trim();
    let mut sum = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
        let count = number(&rest[..end])?;
        let unit_end = rest[end..].find(|c: char| !c.is_ascii_alphabetic());
        let unit_end = unit_end.map_or(rest.len(), |length| end + length);
        sum += count
            * match &rest[end..unit_end] {
                "d" => 86_400.0,
                "h" => 3_600.0,
                "m" => 60.0,
                "s" => 1.0,
                "ms" => 0.001,
                _ => return None,
            };
        rest = &rest[unit_end..];
    }
    Some(seconds(sum))
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wait_is_twice_the_last() {
        let retries = Retries { count: 4, backoff_seconds: 1.0, longest_seconds: 5.0 };
        let waits = |chance| [1, 2, 3, 4, 5].map(|failed| retries.wait(failed, None, chance));
        let whole = |n| Some(Duration::from_secs(n));
        assert_eq!(waits(0.0), [whole(1), whole(2), whole(4), whole(5), None]);
        assert_eq!(
            waits(1.0)[..2],
            [Some(Duration::from_millis(1200)), Some(Duration::from_millis(2400))]
        );
        let never = Retries { count: 0, ..retries };
        assert_eq!(never.wait(1, None, 0.0), None);
    }

    #[test]
    fn the_service_knows_best_up_to_a_limit() {
        let retries = Retries::default();
        let asked = |seconds| retries.wait(1, Some(Duration::from_secs(seconds)), 0.0);
        assert_eq!(asked(0), Some(Duration::ZERO));
        assert_eq!(asked(60), Some(Duration::from_secs(60)));
        assert_eq!(asked(61), None);
    }

    #[test]
    fn what_services_say() {
        #[track_caller]
        fn check(headers: &[(&str, &str)], expected: Option<u64>) {
            let header =
                |name: &str| headers.iter().find(|(n, _)| *n == name).map(|(_, value)| *value);
            assert_eq!(after(header), expected.map(Duration::from_millis), "{headers:?}");
        }
        const NOW: (&str, &str) = ("date", "Wed, 21 Oct 2015 07:28:00 GMT");
        check(&[], None);
        check(&[("retry-after", "3")], Some(3000));
        check(&[("retry-after", " 0.5 ")], Some(500));
        check(&[("retry-after", "-1")], Some(0));
        check(&[("retry-after", "3"), ("retry-after-ms", "250")], Some(250));
        check(&[("retry-after", "Wed, 21 Oct 2015 07:28:07 GMT"), NOW], Some(7000));
        check(&[("retry-after", "Wed, 21 Oct 2015 07:27:00 GMT"), NOW], Some(0));
        check(&[("retry-after", "Wed, 21 Oct 2015 07:28:07 GMT")], None);
        check(&[("retry-after", "soon"), NOW], None);
        const SPENT: (&str, &str) = ("x-ratelimit-remaining-requests", "0");
        let resets = |text| ("x-ratelimit-reset-requests", text);
        check(&[SPENT, resets("6m0s")], Some(360_000));
        check(&[SPENT, resets("1h1.5s")], Some(3_601_500));
        check(&[SPENT, resets("200ms")], Some(200));
        check(&[SPENT, resets("90")], Some(90_000));
        check(&[SPENT, resets("soon")], None);
        check(&[SPENT, resets("5x")], None);
        check(&[("x-ratelimit-remaining-requests", "7"), resets("6m0s")], None);
        check(&[SPENT, resets("6m0s"), ("retry-after", "3")], Some(3000));
        let tokens = [("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "10m0s")];
        check(&[SPENT, resets("6m0s"), tokens[0], tokens[1]], Some(600_000));
    }
}
