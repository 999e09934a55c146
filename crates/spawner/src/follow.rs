//! Following a tree while it lives.

use std::sync::Arc;

use offshoot_model::{Event, EventClass, RootId};
use offshoot_store::{Store, StoreError};
use tokio::sync::broadcast;

/// How many events a follower may fall behind before it is sent to the record. Kept events are never lost by that:
/// they are read back. Progress is.
pub(crate) const FOLLOW_BUFFER: usize = 4096;

/// The events of one tree, each kept one exactly once and in order, from the first.
pub struct EventStream {
    root: RootId,
    store: Arc<dyn Store>,
    live: broadcast::Receiver<Arc<Event>>,
    /// The last kept number that was handed out.
    seen: u64,
    /// Events read back from the record after joining or falling behind, the next one last.
    caught_up: Vec<Arc<Event>>,
    /// Whether the record was read since this stream was made.
    joined: bool,
}

impl EventStream {
    pub(crate) fn new(
        root: RootId,
        store: Arc<dyn Store>,
        live: broadcast::Receiver<Arc<Event>>,
    ) -> Self {
        Self { root, store, live, seen: 0, caught_up: Vec::new(), joined: false }
    }

    /// The next event; none once the tree is over and everything was handed out.
    pub async fn next(&mut self) -> Option<Result<Arc<Event>, StoreError>> {
        loop {
            if let Some(event) = self.caught_up.pop() {
                self.seen = event.seq;
                return Some(Ok(event));
            }
            if !self.joined {
                self.joined = true;
                if let Err(error) = self.catch_up().await {
                    return Some(Err(error));
                }
                continue;
            }
            match self.live.recv().await {
                Ok(event) if event.kind.class() == EventClass::Progress => return Some(Ok(event)),
                Ok(event) if event.seq <= self.seen => {}
                Ok(event) if event.seq == self.seen + 1 => {
                    self.seen = event.seq;
                    return Some(Ok(event));
                }
                // Fell behind: the record has what is missing, for nothing is sent before it is
                // durable.
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {
                    if let Err(error) = self.catch_up().await {
                        return Some(Err(error));
                    }
                }
                Err(broadcast::error::RecvError::Closed) => {
                    if let Err(error) = self.catch_up().await {
                        return Some(Err(error));
                    }
                    if self.caught_up.is_empty() {
                        return None;
                    }
                }
            }
        }
    }

    async fn catch_up(&mut self) -> Result<(), StoreError> {
        let (store, root, seen) = (Arc::clone(&self.store), self.root, self.seen);
        let read = move || store.events(root, seen).map(|event| event.map(Arc::new)).collect();
        let missing: Result<Vec<Arc<Event>>, StoreError> =
            tokio::task::spawn_blocking(read).await.expect("reading the record does not panic");
        self.caught_up = missing?;
        self.caught_up.reverse();
        Ok(())
    }
}
