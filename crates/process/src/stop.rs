//! Requests to stop, and how far up the ladder one had to go.

mod ladder;

pub(crate) use ladder::{Ladder, Move};

use std::future::{Future, pending};
use std::time::Duration;

use tokio::sync::watch;

/// The ways to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Ask the group, wait for so long, then kill it.
    Soft {
        /// Between asking and killing.
        grace: Duration,
    },
    /// Kill the group at once.
    Firm,
}

/// The furthest step that was needed to stop a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    /// The group was asked to end, by `SIGTERM`.
    Asked,
    /// The group was killed.
    Killed,
}

/// A source of requests to stop. Callers that have such a thing already implement it for theirs.
pub trait StopSignal: Send {
    /// The next request. The future may be dropped and made again without a request being lost. Where no request can come
    /// any more it never ends.
    fn heard(&mut self) -> impl Future<Output = Stop> + Send;
}

/// A source that never asks.
#[derive(Clone, Copy, Debug, Default)]
pub struct NeverStop;

/// The side that asks. Dropping it asks for nothing.
#[derive(Clone, Debug)]
pub struct StopHandle(watch::Sender<Option<Stop>>);

/// The side that listens. Each clone hears the last request.
#[derive(Clone, Debug)]
pub struct StopReceiver(watch::Receiver<Option<Stop>>);

impl StopHandle {
    /// A handle and its receiver.
    pub fn new() -> (Self, StopReceiver) {
        let (tx, rx) = watch::channel(None);
        (Self(tx), StopReceiver(rx))
    }

    /// Asks to stop. The listener takes the firmest of several requests.
    pub fn stop(&self, stop: Stop) {
        self.0.send_modify(|last| {
            // A listener that has not looked yet must not lose a firm request to a later soft one.
            if *last != Some(Stop::Firm) {
                *last = Some(stop);
            }
        });
    }
}

impl StopSignal for StopReceiver {
    async fn heard(&mut self) -> Stop {
        while self.0.changed().await.is_ok() {
            if let Some(stop) = *self.0.borrow_and_update() {
                return stop;
            }
        }
        pending().await
    }
}

impl StopSignal for NeverStop {
    fn heard(&mut self) -> impl Future<Output = Stop> + Send {
        pending()
    }
}
