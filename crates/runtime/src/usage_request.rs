//! Requests for what a run has used up to this moment: made before a child is admitted, so that money that is spent already is
//! not promised again.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

/// The side that asks. Cheap to clone; one per run.
#[derive(Clone, Debug, Default)]
pub struct UsageProbe(Arc<Listening>);

/// The runtime's side of one run. A runtime that tells what it uses as it uses it need not listen.
#[derive(Debug)]
pub struct UsageRequests(Arc<Listening>);

/// Requests of one run, in order. Dropping the listener answers all of them.
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
/// There is no bound, because the maker of each request waits for its answer.
#[derive(Debug, Default)]
struct Listening(Mutex<Option<mpsc::UnboundedSender<UsageRequest>>>);

impl UsageProbe {
    /// The runtime's side.
    pub fn requests(&self) -> UsageRequests {
        UsageRequests(Arc::clone(&self.0))
    }

    /// Waits until the run has told what it has used up to now; no time at all where nothing listens.
    pub async fn ask(&self) {
        let listener = self.0.0.lock().clone();
        let Some(listener) = listener else { return };
        let (answer, answered) = oneshot::channel();
        if listener.send(UsageRequest(answer)).is_ok() {
            tokio::select! {
                // Dropping the sender is the answer, so there is never a value.
                _ = answered => {}
                // A request that is sent while the listener is dropped may stay in the channel.
                () = listener.closed() => {}
            }
        }
    }
}

impl UsageRequests {
    /// Listens from now on.
    pub fn listen(self) -> UsageListener {
        let (tx, rx) = mpsc::unbounded_channel();
        *self.0.0.lock() = Some(tx);
        UsageListener(rx)
    }
}

impl UsageListener {
    /// The next request. Never answers where no handle is left. Dropping the future loses nothing.
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
    async fn requests_that_are_made_while_the_listener_is_dropped_are_answered() {
        for round in 0..2_000 {
            let probe = UsageProbe::default();
            let listener = probe.requests().listen();
            let at_once = Arc::new(std::sync::Barrier::new(2));
            let both = Arc::clone(&at_once);
            let dropping = std::thread::spawn(move || {
                both.wait();
                // The two sides come to their point at varying distances.
                (0..round % 100 * 20).for_each(|_| std::hint::spin_loop());
                drop(listener);
            });
            at_once.wait();
            let asked = futures_util::future::join_all((0..64).map(|_| probe.ask()));
            let told = tokio::time::timeout(std::time::Duration::from_secs(10), asked).await;
            told.expect("each is answered");
            dropping.join().expect("dropping does not panic");
        }
    }

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
