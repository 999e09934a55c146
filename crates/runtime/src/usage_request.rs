//! Requests for what a run has used up to this moment: made before a child is admitted, so that money that is spent already is
//! not promised again.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};

/// The side that asks. Cheap to clone; one per run.
#[derive(Clone, Debug, Default)]
pub struct UsageProbe(Arc<Listening>);

/// The runtime's side of one run. A runtime that tells what it uses as it uses it need not listen.
#[derive(Debug)]
pub struct UsageRequests(Arc<Listening>);

/// Requests of one run, in order. Whoever drops it answers all of them.
#[derive(Debug)]
pub struct UsageListener(mpsc::UnboundedReceiver<UsageRequest>);

/// A request. It is answered when it is dropped: by then the run has told what it used until it was asked.
#[derive(Debug)]
#[must_use = "a request that is dropped is answered"]
pub struct UsageRequest(
    #[expect(dead_code, reason = "dropping it is the answer")] oneshot::Sender<()>,
);

/// Most runs have no listener: a channel would take a kilobyte of each.
///
/// There is no bound, because each request is made by somebody who waits for its answer.
#[derive(Debug, Default)]
struct Listening(Mutex<Option<mpsc::UnboundedSender<UsageRequest>>>);

impl UsageProbe {
    /// The runtime's side.
    pub fn requests(&self) -> UsageRequests {
        UsageRequests(Arc::clone(&self.0))
    }

    /// Waits until the run has told what it has used up to now; no time at all where nothing listens.
    pub async fn ask(&self) {
        let (answer, answered) = oneshot::channel();
        let sent = {
            let listener = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
            listener.as_ref().is_some_and(|tx| tx.send(UsageRequest(answer)).is_ok())
        };
        if sent {
            // Dropping the sender is the answer, so there is never a value.
            let _ = answered.await;
        }
    }
}

impl UsageRequests {
    /// Listens from now on.
    pub fn listen(self) -> UsageListener {
        let (tx, rx) = mpsc::unbounded_channel();
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(tx);
        UsageListener(rx)
    }
}

impl UsageListener {
    /// The next request. Never answers where nobody asks any more. Dropping the future loses nothing.
    pub async fn asked(&mut self) -> UsageRequest {
        match self.0.recv().await {
            Some(request) => request,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_request_is_answered_when_it_is_dropped() {
        let probe = UsageProbe::default();
        assert_eq!(probe.ask().now_or_never(), Some(()), "nothing listens");
        let mut listener = probe.requests().listen();
        let mut asking = Box::pin(probe.ask());
        assert_eq!((&mut asking).now_or_never(), None);
        let request = listener.asked().await;
        assert_eq!((&mut asking).now_or_never(), None);
        drop(request);
        asking.await;
        let waiting = probe.ask();
        tokio::join!(biased; waiting, async { drop(listener) });
        assert_eq!(probe.ask().now_or_never(), Some(()), "it listens no more");
    }
}
