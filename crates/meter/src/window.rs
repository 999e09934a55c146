//! Windows, walls and pressure: what a provider says of its limits in the headers of an answer. Pure.
//!
//! ```text
//!  anthropic-ratelimit-unified-{5h,7d}-{utilization,reset,status}   subscriptions
//!  anthropic-ratelimit-{requests,tokens,…}-{limit,remaining,reset}  keys
//!  x-ratelimit-{limit,remaining,reset}-{requests,tokens}            OpenAI and many others
//!  x-codex-{primary,secondary}-{used-percent,reset-…}               ChatGPT logins
//!  retry-after, retry-after-ms
//! ```
//!
//! Whatever cannot be read is as if it were not there: what a server writes into its headers makes nothing fail.

mod duration;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

/// The limits of an account, as an answer says them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowState {
    /// By name, such as `5h`, `7d`, `requests`, `tokens` or `primary`.
    pub windows: BTreeMap<String, Window>,
    /// The account is used up until then.
    pub wall: Option<Wall>,
    /// The provider asks for fewer requests, without being used up.
    pub pressure: Option<Pressure>,
}

/// One window: a limit over some time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    /// The part that is used, from 0; above 1 where more may be used for money.
    pub used: Option<f64>,
    /// The number that may be used.
    pub limit: Option<u64>,
    /// The number that is left.
    pub remaining: Option<u64>,
    /// The time at which all of it is there again.
    pub reset: Option<Reset>,
    /// The provider's word about it.
    pub status: Option<String>,
}

/// A time that a provider names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// Seconds since 1970.
    At(i64),
    /// So long after the answer.
    After(Duration),
}

/// A window that is used up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wall {
    /// The window, where it is named.
    pub window: Option<String>,
    /// The time from which requests are answered again, where it is told.
    pub reset: Option<Reset>,
}

/// A provider that cannot answer now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pressure {
    /// The status of its answer.
    pub status: u16,
    /// After how long it wants to be asked again.
    pub retry_after: Option<Duration>,
}

/// Resets that are further away than this are no pressure but a wall: nothing is gained by asking again and again.
const WALL: Duration = Duration::from_secs(120);

/// The contents of the headers besides the windows.
#[derive(Default)]
struct Said {
    retry: Option<Reset>,
    /// The account's word, over all windows.
    status: Option<String>,
    reset: Option<Reset>,
    /// The window that decides.
    claim: Option<String>,
}

impl WindowState {
    /// Reads the head of an answer.
    pub fn of<'h>(status: u16, headers: impl IntoIterator<Item = (&'h str, &'h str)>) -> Self {
        let mut state = Self::default();
        let mut said = Said::default();
        for (name, value) in headers {
            state.header(name, value.trim(), &mut said);
        }
        state.windows.retain(|_, window| *window != Window::default());
        state.judge(status, said);
        state
    }

    /// True if nothing was said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn header(&mut self, name: &str, value: &str, said: &mut Said) {
        let after = |length: Option<Duration>| length.map(Reset::After);
        match name {
            "retry-after" => {
                let read = after(value.parse().ok().and_then(duration::seconds));
                said.retry = said.retry.or(read).or_else(|| http_date(value));
            }
            // The finer one, which counts where both are there.
            "retry-after-ms" => {
                let millis: Option<f64> = value.parse().ok();
                let read = after(millis.and_then(|millis| duration::seconds(millis / 1000.0)));
                said.retry = read.or(said.retry);
            }
            "anthropic-ratelimit-unified-status" => said.status = Some(value.to_owned()),
            "anthropic-ratelimit-unified-reset" => said.reset = epoch(value),
            "anthropic-ratelimit-unified-representative-claim" => {
                said.claim = Some(short(value).to_owned());
            }
            _ => {
                let behind = |prefix| name.strip_prefix(prefix);
                let unified = behind("anthropic-ratelimit-unified-");
                // The window stands behind the field in the last of them, and before it in the others.
                let split = if let Some(rest) = unified.or(behind("anthropic-ratelimit-")) {
                    rest.rsplit_once('-')
                } else if let Some(rest) = behind("x-codex-") {
                    rest.split_once('-')
                } else {
                    let split = behind("x-ratelimit-").and_then(|rest| rest.split_once('-'));
                    split.map(|(field, window)| (window, field))
                };
                if let Some((window, field)) = split.filter(|(window, _)| window.len() <= MOST_NAME)
                    && (self.windows.contains_key(window) || self.windows.len() < MOST_WINDOWS)
                {
                    self.windows.entry(window.to_owned()).or_default().set(field, value);
                }
            }
        }
    }

    fn judge(&mut self, status: u16, said: Said) {
        let is_rejected = |window: &Window| window.status.as_deref() == Some("rejected");
        let rejected = self.windows.iter().find(|(_, window)| is_rejected(window));
        let rejected = rejected.map(|(name, _)| name.clone());
        let is_over = rejected.is_some() || said.status.as_deref() == Some("rejected");
        let far = match said.retry {
            Some(Reset::After(length)) => length > WALL,
            Some(Reset::At(_)) => true,
            None => false,
        };
        if is_over || (status == 429 && far) {
            let window = said.claim.or(rejected);
            let of_window = window.as_ref().and_then(|name| self.windows.get(name)?.reset);
            let reset = of_window.or(said.reset).or(said.retry);
            self.wall = Some(Wall { window, reset });
        } else if matches!(status, 429 | 503 | 529) {
            let retry_after = match said.retry {
                Some(Reset::After(length)) => Some(length),
                _ => None,
            };
            self.pressure = Some(Pressure { status, retry_after });
        }
    }
}

impl Window {
    fn set(&mut self, field: &str, value: &str) {
        let part = || value.parse::<f64>().ok().filter(|part| part.is_finite() && *part >= 0.0);
        match field {
            "utilization" => self.used = part(),
            "used-percent" => self.used = part().map(|percent| percent / 100.0),
            "limit" => self.limit = value.parse().ok(),
            "remaining" => self.remaining = value.parse().ok(),
            "status" => self.status = Some(value.chars().take(MOST_NAME).collect()),
            "reset" | "reset-at" => self.reset = epoch(value).or(self.reset),
            "reset-after-seconds" => {
                let length = value.parse().ok().and_then(duration::seconds);
                self.reset = self.reset.or(length.map(Reset::After));
            }
            _ => {}
        }
    }
}

/// Windows have short names, and no provider has many. A server that says otherwise fills no memory.
const MOST_NAME: usize = 64;
const MOST_WINDOWS: usize = 32;

/// The name of a window in headers, by the word that stands for it elsewhere.
fn short(claim: &str) -> &str {
    match claim {
        "five_hour" => "5h",
        "seven_day" => "7d",
        other => other,
    }
}

/// Seconds since 1970, a date with its time, or a length such as `6m0s`.
fn epoch(value: &str) -> Option<Reset> {
    if let Ok(seconds) = value.parse::<i64>() {
        // Small numbers are lengths: no reset was in 1970.
        return match seconds {
            1_000_000_000.. => Some(Reset::At(seconds)),
            0.. => Some(Reset::After(Duration::from_secs(seconds.unsigned_abs()))),
            _ => None,
        };
    }
    if let Ok(time) = value.parse::<Timestamp>() {
        return Some(Reset::At(time.as_second()));
    }
    duration::parse(value).map(Reset::After)
}

fn http_date(value: &str) -> Option<Reset> {
    let time = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(value).ok()?;
    Some(Reset::At(time.as_second()))
}

#[cfg(test)]
mod tests;
