//! The second ear of every wait: a request to stop, softly or firmly.

use std::time::Duration;

use tokio::sync::watch;

/// How to stop.
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
pub struct StopHandle(watch::Sender<Option<Stop>>);

/// The side that listens. Cheap to clone; every clone hears every request.
#[derive(Clone, Debug)]
pub struct StopSignal(watch::Receiver<Option<Stop>>);

impl StopHandle {
    /// A handle and its signal.
    pub fn new() -> (Self, StopSignal) {
        let (tx, rx) = watch::channel(None);
        (Self(tx), StopSignal(rx))
    }

    /// Asks to stop. A softer request after a firm one changes nothing.
    pub fn stop(&self, request: Stop) {
        self.0.send_if_modified(|current| {
            let firmer = match (*current, request) {
                (None, _) | (Some(Stop::Soft { .. }), Stop::Firm) => true,
                (Some(Stop::Soft { grace: old }), Stop::Soft { grace }) => grace < old,
                (Some(Stop::Firm), _) => false,
            };
            if firmer {
                *current = Some(request);
            }
            firmer
        });
    }
}

impl StopSignal {
    /// The request as it stands.
    pub fn requested(&self) -> Option<Stop> {
        *self.0.borrow()
    }

    /// Waits for a request that this clone has not seen, and answers it. Never ends where nobody asks any more.
    pub async fn heard(&mut self) -> Stop {
        while self.0.changed().await.is_ok() {
            if let Some(stop) = *self.0.borrow_and_update() {
                return stop;
            }
        }
        // The asking side is gone, so no request can come.
        std::future::pending().await
    }
}
