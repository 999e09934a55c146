//! The requests that wait for the one thread that writes.
//!
//! ```text
//!  now ───▶ │ … requests, in order … │ ──▶ all of them, as soon as one is urgent, there are many,
//!  soon ──▶ │                        │     or the first has waited long enough
//! ```
//!
//! A thread with a channel would be woken for each request. This one is woken for the first, which may say that it can
//! wait, and then for one that cannot.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::row::Row;
use crate::StoreError;

/// The longest time for which a request that is not urgent waits for others. As long as it takes a few programs to start: their
/// first events go to the disk together.
pub(super) const COMMIT_DELAY: Duration = Duration::from_millis(5);

/// So many events are company enough.
const FULL_BATCH: usize = 64;

/// Requests between those who append and the one who writes. Shared by both; every hold of the lock is a few instructions.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    requests: VecDeque<Request>,
    /// Events of all of them.
    events: usize,
    /// Requests that are in haste.
    hasty: usize,
    /// Nothing is added any more.
    closed: bool,
}

/// One call of `append`.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) rows: Vec<Row>,
    pub(super) answer: oneshot::Sender<Result<(), StoreError>>,
    /// Until when it may wait; none where it is in haste.
    pub(super) until: Option<Instant>,
}

impl Request {
    /// A request of these rows, which can wait so long or is in haste; and where its answer comes.
    pub(super) fn new(
        rows: Vec<Row>,
        patience: Option<Duration>,
    ) -> (Self, oneshot::Receiver<Result<(), StoreError>>) {
        let (answer, receiver) = oneshot::channel();
        let until = patience.map(|patience| now() + patience);
        (Self { rows, answer, until }, receiver)
    }
}

impl Queue {
    /// Puts a request at the end. False where the writer has ended.
    pub(super) fn push(&self, request: Request) -> bool {
        let mut state = self.state.lock();
        if state.closed {
            return false;
        }
        let before = state.is_due(None);
        let first = state.requests.is_empty();
        state.events += request.rows.len();
        state.hasty += usize::from(request.until.is_none());
        state.requests.push_back(request);
        // Woken to write, or to see until when it may sleep.
        if first || (!before && state.is_due(None)) {
            self.changed.notify_one();
        }
        true
    }

    /// Waits until there is something to write, and takes requests of up to so many events; more where the first has more.
    /// None when the queue is closed and empty.
    pub(super) fn take(&self, most: usize) -> Option<Vec<Request>> {
        let mut state = self.state.lock();
        while !state.is_due(Some(now())) {
            match state.requests.front().and_then(|first| first.until) {
                Some(until) => _ = self.changed.wait_until(&mut state, until),
                None if state.closed => return None,
                None => self.changed.wait(&mut state),
            }
        }
        let (mut taken, mut events) = (Vec::new(), 0);
        while let Some(next) = state.requests.front()
            && (taken.is_empty() || events < most)
        {
            events += next.rows.len();
            state.hasty -= usize::from(next.until.is_none());
            taken.extend(state.requests.pop_front());
        }
        state.events -= events;
        Some(taken)
    }

    /// Lets nothing in any more. What is there is still taken, at once.
    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_one();
    }

    /// Closes the queue: the requests in it are answered as closed.
    pub(super) fn abandon(&self) {
        let mut state = self.state.lock();
        *state = QueueState { closed: true, ..QueueState::default() };
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a thread that blocks waits for real time; nothing that is recorded depends on it"
)]
pub(super) fn now() -> Instant {
    Instant::now()
}

impl QueueState {
    /// True if the requests should be written, whatever follows; at this moment, where it is given.
    fn is_due(&self, now: Option<Instant>) -> bool {
        let Some(first) = self.requests.front() else { return false };
        let waited = now.zip(first.until).is_some_and(|(now, until)| until <= now);
        self.hasty > 0 || self.closed || self.events >= FULL_BATCH || waited
    }
}

#[cfg(test)]
mod tests {
    use offshoot_model::{Event, EventKind, RootId, RunId, Timestamp};

    use super::*;

    const FAR: Duration = Duration::from_secs(600);
    const ALL: usize = usize::MAX;

    fn request(rows: usize, patience: Option<Duration>) -> Request {
        let run = RunId::from_bytes([7; 16]);
        let kind = EventKind::Starting;
        let event = Event { root: RootId::new(run), seq: 1, at: Timestamp::EPOCH, run, kind };
        let rows = (0..rows).map(|_| Row::new(&event).expect("the text is not JSON")).collect();
        Request::new(rows, patience).0
    }

    /// Checks that requests of so many rows, urgent or not, are due at once.
    #[track_caller]
    fn check(requests: &[(usize, bool)], due: bool) {
        let queue = Queue::default();
        for &(rows, patient) in requests {
            assert!(queue.push(request(rows, patient.then_some(FAR))));
        }
        assert_eq!(queue.state.lock().is_due(Some(now())), due, "{requests:?}");
        // Closed, it gives all of them at once, and then no more.
        queue.close();
        assert!(!queue.push(request(1, None)));
        let taken = queue.take(ALL).map_or(0, |taken| taken.len());
        assert_eq!(taken, requests.len());
        assert!(queue.take(ALL).is_none());
    }

    #[test]
    fn what_is_in_haste_takes_along_what_is_not() {
        check(&[], false);
        check(&[(1, true)], false);
        check(&[(1, true), (FULL_BATCH - 2, true)], false);
        check(&[(1, true), (FULL_BATCH - 1, true)], true);
        check(&[(1, false)], true);
        check(&[(1, true), (1, false), (1, true)], true);
    }

    #[test]
    fn haste_ends_with_what_was_in_haste() {
        let queue = Queue::default();
        for patience in [Some(FAR), None, Some(FAR)] {
            queue.push(request(2, patience));
        }
        assert_eq!(queue.take(3).expect("one is in haste").len(), 2);
        assert!(!queue.state.lock().is_due(Some(now())));
        assert!(queue.state.lock().is_due(Some(now() + FAR)), "it waits, but not for ever");
        queue.push(request(100, None));
        assert_eq!(queue.take(1).expect("one is in haste").len(), 1, "in order");
    }

    #[test]
    fn patience_ends_by_itself_and_by_haste() {
        let queue = Queue::default();
        queue.push(request(1, Some(Duration::from_millis(1))));
        assert_eq!(queue.take(ALL).expect("it comes").len(), 1);
        queue.push(request(1, Some(FAR)));
        std::thread::scope(|scope| {
            let taking = scope.spawn(|| queue.take(ALL).expect("it comes").len());
            queue.push(request(1, None));
            assert_eq!(taking.join().expect("it comes back"), 2);
        });
    }

    #[test]
    fn a_call_that_will_not_be_written_is_answered() {
        let queue = Queue::default();
        let (request, mut answer) = Request::new(Vec::new(), Some(FAR));
        queue.push(request);
        queue.abandon();
        assert!(matches!(answer.try_recv(), Err(oneshot::error::TryRecvError::Closed)));
    }
}
