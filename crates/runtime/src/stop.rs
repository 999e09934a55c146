//! Requests to stop a run, softly or firmly: the handle that makes them, and the signal that every wait listens to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// The ways to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// Ask, wait for so long, then kill.
    Soft {
        /// Between the request and the kill.
        grace: Duration,
    },
    /// Kill at once.
    Firm,
}

/// The side that asks. Dropping it asks for nothing. Cheap to clone.
#[derive(Clone, Debug)]
pub struct StopHandle(Arc<Request>);

/// The side that listens. Cheap to clone; every clone hears every request.
#[derive(Clone, Debug)]
pub struct StopSignal {
    request: Arc<Request>,
    /// The last request that this clone has heard.
    heard: u64,
}

/// The firmest request so far. Every run has one and most are never asked.
///
/// A request is a number, how many nanoseconds are left, so that the firmer one of two is the smaller.
#[derive(Debug)]
struct Request {
    left: AtomicU64,
    changed: Notify,
}

const NONE: u64 = u64::MAX;
const FIRM: u64 = 0;
/// Some six hundred years.
const SOFTEST: u64 = NONE - 1;

impl StopHandle {
    /// A handle and its signal.
    pub fn new() -> (Self, StopSignal) {
        let request = Arc::new(Request { left: AtomicU64::new(NONE), changed: Notify::new() });
        (Self(Arc::clone(&request)), StopSignal { request, heard: NONE })
    }

    /// Asks to stop. A softer request after a firm one changes nothing.
    pub fn stop(&self, request: Stop) {
        let left = match request {
            Stop::Firm => FIRM,
            Stop::Soft { grace } => {
                let nanoseconds = u64::try_from(grace.as_nanos()).unwrap_or(SOFTEST);
                nanoseconds.saturating_add(1).min(SOFTEST)
            }
        };
        if self.0.left.fetch_min(left, Ordering::AcqRel) > left {
            self.0.changed.notify_waiters();
        }
    }
}

impl StopSignal {
    /// The request as it stands.
    pub fn requested(&self) -> Option<Stop> {
        request_of(self.request.left.load(Ordering::Acquire))
    }

    /// Waits for a request that this clone has not heard, and answers it. Never ends where no handle is left.
    pub async fn heard(&mut self) -> Stop {
        loop {
            // Listening first: a request may come between the look and the wait.
            let changed = self.request.changed.notified();
            let left = self.request.left.load(Ordering::Acquire);
            if left != self.heard
                && let Some(stop) = request_of(left)
            {
                self.heard = left;
                return stop;
            }
            changed.await;
        }
    }
}

fn request_of(left: u64) -> Option<Stop> {
    match left {
        NONE => None,
        FIRM => Some(Stop::Firm),
        left => Some(Stop::Soft { grace: Duration::from_nanos(left - 1) }),
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const fn soft(seconds: u64) -> Stop {
        Stop::Soft { grace: Duration::from_secs(seconds) }
    }

    #[test]
    fn each_clone_hears_what_is_firmer_and_nothing_else() {
        let (handle, mut signal) = StopHandle::new();
        let mut late = signal.clone();
        assert_eq!((signal.requested(), signal.heard().now_or_never()), (None, None));
        for (request, heard) in [
            (soft(9), Some(soft(9))),
            (soft(9), None),
            (soft(10), None),
            (soft(0), Some(soft(0))),
            (Stop::Firm, Some(Stop::Firm)),
            (soft(1), None),
            (Stop::Firm, None),
        ] {
            handle.stop(request);
            assert_eq!(signal.heard().now_or_never(), heard, "{request:?}");
        }
        assert_eq!(late.heard().now_or_never(), Some(Stop::Firm), "the last says it all");
        assert_eq!(late.clone().heard().now_or_never(), None, "it was heard before the clone");
        drop(handle);
        assert_eq!(late.requested(), Some(Stop::Firm));
        assert_eq!(late.heard().now_or_never(), None);
    }

    #[test]
    fn an_endless_grace_is_a_request() {
        let (handle, mut signal) = StopHandle::new();
        handle.stop(Stop::Soft { grace: Duration::MAX });
        assert!(matches!(signal.heard().now_or_never(), Some(Stop::Soft { .. })));
    }

    #[tokio::test]
    async fn who_waits_is_woken() {
        let (handle, mut one) = StopHandle::new();
        let mut other = one.clone();
        // Polled in this order: both wait when it is asked.
        let ask = async { handle.stop(Stop::Firm) };
        let (one, other, ()) = tokio::join!(biased; one.heard(), other.heard(), ask);
        assert_eq!((one, other), (Stop::Firm, Stop::Firm));
    }
}
