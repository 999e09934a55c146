//! The failures of a call.

use std::error::Error;
use std::time::Duration;

use offshoot_model::{Reason, error_chain};

use crate::chunk::ServiceError;
use crate::sse;

/// The reason why a call brought no answer.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The endpoint does not listen, or the connection failed.
    #[error("{endpoint} cannot be reached")]
    Unreachable {
        /// The address.
        endpoint: String,
        /// The error of the connection.
        source: reqwest::Error,
    },
    /// The service refused the call.
    #[error("the service answered {status}: {}", error.message)]
    Refused {
        /// The status.
        status: u16,
        /// The error of the service.
        error: ServiceError,
        /// After which to come again, where it said so.
        after: Option<Duration>,
    },
    /// The service said in the middle of an answer that it cannot go on.
    #[error("the service gave up in the middle of its answer: {}", error.message)]
    GaveUp {
        /// The error of the service.
        error: ServiceError,
    },
    /// The answer ended before its end.
    #[error("the answer broke off")]
    Cut {
        /// The error of the connection; none where it was closed in order.
        source: Option<reqwest::Error>,
    },
    /// Nothing came for too long.
    #[error("nothing came for {} s", after.as_secs())]
    Silent {
        /// The length of the silence.
        after: Duration,
    },
    /// The answer is none of a chat.
    #[error("{endpoint} sent what is no answer of a chat: {beginning:?}")]
    Garbage {
        /// The address, or words for the service behind the meter.
        endpoint: String,
        /// The beginning of the answer.
        beginning: String,
    },
    /// The answer ended in order, and nothing had come.
    #[error("the service ended its answer before it had begun")]
    Nothing,
    /// An answer that does not end.
    #[error("the answer is too long to be one")]
    TooLong,
    /// One event of it does not end.
    #[error(transparent)]
    EventTooLong(#[from] sse::TooLong),
    /// The model may write no more.
    #[error("the model came to the end of its tokens before that of its answer")]
    Length,
    /// The service will not show what the model said.
    #[error("the service held the answer back")]
    Filtered,
}

/// Words for what will be the same the next time, though its status promises otherwise.
const LASTING: &[&str] =
    &["insufficient_quota", "billing_not_active", "billing_hard_limit_reached"];

/// Words for what is over soon, where no status says it.
const PASSING: &[&str] = &["rate_limit", "overloaded", "server_error", "unavailable", "timeout"];

impl Failure {
    /// True if another attempt may end otherwise.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unreachable { source, .. } => !is_mistrust(source),
            Self::Cut { .. } | Self::Silent { .. } | Self::Nothing => true,
            Self::Refused { status, error, .. } => passes(Some(*status), error),
            Self::GaveUp { error } => passes(error.status, error),
            Self::Garbage { .. }
            | Self::TooLong
            | Self::EventTooLong(_)
            | Self::Length
            | Self::Filtered => false,
        }
    }

    /// True if another model may answer where this one has not: it is not there, or stays overloaded.
    pub fn is_of_the_model(&self) -> bool {
        let missing = matches!(self, Self::Refused { status: 404, .. });
        missing || self.is_retryable() && !matches!(self, Self::Unreachable { .. })
    }

    /// True if the service refuses all calls of the account for longer than this, because a quota is used up.
    pub fn is_wall(&self, longest: Duration) -> bool {
        matches!(self, Self::Refused { status: 429, after: Some(after), .. } if *after > longest)
    }

    /// Returns the quota that is used up, in the words of the service: `tokens`, `requests_per_day`. None where it says only that one is.
    pub fn window(&self) -> Option<String> {
        let Self::Refused { error, .. } = self else { return None };
        let is_word = |kind: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            kind.len() <= 40 && kind.chars().all(plain)
        };
        let is_window = |kind: &&String| {
            is_word(kind) && !kind.contains("rate_limit") && !kind.contains("quota")
        };
        error.kinds.iter().find(is_window).cloned()
    }

    /// True if the conversation has grown beyond what the model can read.
    pub fn is_overflow(&self) -> bool {
        let (Self::Refused { error, .. } | Self::GaveUp { error }) = self else { return false };
        let kinds = ["context_length_exceeded", "exceed_context_size_error"];
        error.kinds.iter().any(|kind| kinds.contains(&kind.as_str()))
    }

    /// True if the service has more to do than it can, which concerns every run that calls it.
    pub fn is_pressure(&self) -> bool {
        matches!(self, Self::Refused { status: 429 | 503 | 529, .. }) && self.is_retryable()
    }

    /// True if the service is not there.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }

    /// Returns the time after which the service wants to be asked again.
    pub fn after(&self) -> Option<Duration> {
        match self {
            Self::Refused { after, .. } => *after,
            _ => None,
        }
    }

    /// True if it ended the call before the model began to work on it.
    pub fn is_before_work(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Refused { .. })
    }

    /// The failure as the reason of an ending.
    pub fn reason(&self) -> Reason {
        Reason::RuntimeError { message: error_chain(self), retryable: self.is_retryable() }
    }

    /// Returns the kind of the failure in a word, without anything that the service said.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "unreachable",
            Self::Refused { .. } => "refused",
            Self::GaveUp { .. } => "gave_up",
            Self::Cut { .. } => "cut",
            Self::Silent { .. } => "silent",
            Self::Garbage { .. } => "garbage",
            Self::Nothing => "nothing",
            Self::TooLong | Self::EventTooLong(_) => "too_long",
            Self::Length => "length",
            Self::Filtered => "filtered",
        }
    }

    /// Returns the status with which the service refused the call.
    pub const fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }
}

/// True if the certificate of the service is not trusted. The next attempt would end in the same way.
fn is_mistrust(error: &(dyn Error + 'static)) -> bool {
    let tls = |error: &(dyn Error + 'static)| {
        matches!(error.downcast_ref(), Some(rustls::Error::InvalidCertificate(_)))
    };
    // The error inside an I/O error is not its source.
    let carried = error.downcast_ref::<std::io::Error>().and_then(|error| error.get_ref());
    tls(error)
        || carried.is_some_and(|error| is_mistrust(error))
        || error.source().is_some_and(is_mistrust)
}

fn passes(status: Option<u16>, error: &ServiceError) -> bool {
    if error.kinds.iter().any(|kind| LASTING.contains(&kind.as_str())) {
        return false;
    }
    match status {
        Some(status) => matches!(status, 408 | 409 | 425 | 429 | 500..=599),
        None => error.kinds.iter().any(|kind| PASSING.iter().any(|word| kind.contains(word))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(kinds: &[&str]) -> ServiceError {
        let kinds = kinds.iter().map(ToString::to_string).collect();
        ServiceError { message: "m".into(), kinds, status: None }
    }

    #[test]
    fn only_what_passes_is_tried_again() {
        for (status, kinds, expected) in [
            (429, &[][..], true),
            (429, &["insufficient_quota"], false),
            (500, &[], true),
            (503, &[], true),
            (529, &["overloaded_error"], true),
            (408, &[], true),
            (400, &["rate_limit"], false),
            (401, &[], false),
            (404, &["model_not_found"], false),
            (307, &[], false),
        ] {
            let failure = Failure::Refused { status, error: error(kinds), after: None };
            assert_eq!(failure.is_retryable(), expected, "{failure:?}");
        }
        for (kinds, expected) in [
            (&["server_error"][..], true),
            (&["unavailable_error"], true),
            (&["x"], false),
            (&[], false),
        ] {
            let failure = Failure::GaveUp { error: error(kinds) };
            assert_eq!(failure.is_retryable(), expected, "{failure:?}");
        }
        assert!(Failure::Cut { source: None }.is_retryable());
        assert!(!Failure::Length.is_retryable());
    }

    #[test]
    fn a_refusal_that_lasts_is_a_wall() {
        let refused = |status, kinds: &[&str], seconds: Option<u64>| {
            let after = seconds.map(Duration::from_secs);
            Failure::Refused { status, error: error(kinds), after }
        };
        let minute = Duration::from_secs(60);
        for (failure, is_wall, window) in [
            (refused(429, &["tokens", "rate_limit_exceeded"], Some(61)), true, Some("tokens")),
            (refused(429, &["insufficient_quota"], Some(3_600)), true, None),
            (refused(429, &["a b"], Some(3_600)), true, None),
            (refused(429, &[], Some(60)), false, None),
            (refused(429, &["insufficient_quota"], None), false, None),
            (refused(503, &[], Some(3_600)), false, None),
            (Failure::Cut { source: None }, false, None),
        ] {
            assert_eq!(failure.is_wall(minute), is_wall, "{failure:?}");
            assert_eq!(failure.window().as_deref(), window, "{failure:?}");
        }
    }

    #[test]
    fn pressure_concerns_all() {
        for (status, expected) in [(429, true), (503, true), (500, false), (400, false)] {
            let failure = Failure::Refused { status, error: error(&[]), after: None };
            assert_eq!(failure.is_pressure(), expected, "{status}");
        }
    }
}
