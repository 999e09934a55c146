//! Following a tree while it lives.

use std::sync::Arc;

use offshoot_model::{Event, EventClass, RootId};
use offshoot_store::{Store, StoreError};
use tokio::sync::broadcast;

use crate::blocking::blocking;

/// The number of events by which a follower may fall behind before it reads from the record. Kept events are not lost by
/// that, and progress is.
pub(crate) const FOLLOW_BUFFER: usize = 4096;

/// An event that followers are told: it has happened, and is durable where it is kept.
pub(crate) type News = Arc<Event>;

/// The number of events that are read back at a time, so that a follower that joins late does not hold the whole record in
/// memory.
const PAGE: usize = 1024;

/// The events of one tree, each kept one exactly once and in order, from the first. An error is the last thing it says.
pub struct EventStream {
    root: RootId,
    store: Arc<dyn Store>,
    live: broadcast::Receiver<News>,
    /// The last kept number that was handed out.
    seen: u64,
    /// Events read back from the record after joining or falling behind, the next one last.
    caught_up: Vec<Arc<Event>>,
    at: At,
}

/// The events of one tree from now on, for a caller that waits for something that the record can answer.
pub struct LiveEvents(pub(crate) broadcast::Receiver<News>);

/// One of the events from now on, or the news that some were missed.
#[derive(Clone, Debug)]
pub enum LiveEvent {
    /// An event that has happened, and is durable where it is kept.
    Event(Arc<Event>),
    /// Events have happened faster than they were taken: the record has those that are kept.
    Missed,
}

/// Returns the events from now on. Of a tree that is over only the record is left; the channel of that answer is closed from the start.
pub(crate) fn subscribed(follow: &broadcast::WeakSender<News>) -> broadcast::Receiver<News> {
    let live = follow.upgrade().map(|live| live.subscribe());
    live.unwrap_or_else(|| broadcast::channel(1).1)
}

impl LiveEvents {
    /// Returns the next event; none once the tree is over. Safe to drop and to call again.
    pub async fn next(&mut self) -> Option<LiveEvent> {
        match self.0.recv().await {
            Ok(event) => Some(LiveEvent::Event(event)),
            Err(broadcast::error::RecvError::Lagged(_)) => Some(LiveEvent::Missed),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

/// State of a follower. Changed only when a step is done, so that a future may be dropped at any moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// The record has events that were not handed out, or may have.
    Behind,
    /// The next event comes live.
    Live,
    /// The tree is over; the record has the rest.
    Closed,
    /// There is no more.
    End,
}

impl EventStream {
    pub(crate) fn new(
        root: RootId,
        store: Arc<dyn Store>,
        live: broadcast::Receiver<News>,
    ) -> Self {
        Self { root, store, live, seen: 0, caught_up: Vec::new(), at: At::Behind }
    }

    /// The next event; none once the tree is over and everything was handed out. Safe to drop and to call again.
    pub async fn next(&mut self) -> Option<Result<Arc<Event>, StoreError>> {
        loop {
            if let Some(event) = self.caught_up.pop() {
                self.seen = event.seq;
                return Some(Ok(event));
            }
            match self.at {
                At::End => return None,
                At::Behind | At::Closed => match self.page().await {
                    Ok(page) => {
                        if page.len() < PAGE {
                            self.at = if self.at == At::Closed { At::End } else { At::Live };
                        }
                        self.caught_up = page;
                    }
                    Err(error) => {
                        self.at = At::End;
                        return Some(Err(error));
                    }
                },
                At::Live => match self.live.recv().await {
                    Ok(event) if event.kind.class() == EventClass::Progress => {
                        return Some(Ok(event));
                    }
                    Ok(event) if event.seq == self.seen + 1 => {
                        self.seen = event.seq;
                        return Some(Ok(event));
                    }
                    Ok(event) if event.seq <= self.seen => {}
                    // Fell behind: the record has what is missing, for nothing is sent before it is durable.
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => self.at = At::Behind,
                    Err(broadcast::error::RecvError::Closed) => self.at = At::Closed,
                },
            }
        }
    }

    /// The next events of the record, the last one first.
    async fn page(&self) -> Result<Vec<Arc<Event>>, StoreError> {
        let (store, root, seen) = (Arc::clone(&self.store), self.root, self.seen);
        let read = move || {
            let page = store.events(root, seen).take(PAGE).map(|event| event.map(Arc::new));
            let mut page = page.collect::<Result<Vec<_>, _>>()?;
            page.reverse();
            Ok(page)
        };
        blocking(read).await
    }
}
