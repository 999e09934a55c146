//! A tree as running agents look at it: read once, and then kept up with its record.

use std::sync::Arc;

use offshoot_model::{RootId, Tree};
use offshoot_store::{Store, StoreError};
use parking_lot::Mutex;

/// The part of the record that was read so far. Empty until it is asked for.
#[derive(Debug, Default)]
pub(crate) struct KnownTree(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// The tree so far. Copied only where a caller still uses what was handed out before.
    tree: Arc<Tree>,
    /// The last event that is in it.
    last: u64,
}

impl KnownTree {
    /// The tree as it stands on record. Reads what is new there; blocks.
    ///
    /// # Errors
    ///
    /// Those of the store. What was read until then is kept.
    pub(crate) fn tree(&self, store: &dyn Store, root: RootId) -> Result<Arc<Tree>, StoreError> {
        let mut known = self.0.lock();
        for event in store.events(root, known.last) {
            let event = event?;
            known.last = event.seq;
            Arc::make_mut(&mut known.tree).apply(&event);
        }
        Ok(Arc::clone(&known.tree))
    }
}

#[cfg(test)]
mod tests {
    use offshoot_model::{EventKind, RunId, Timestamp};
    use offshoot_store::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn only_what_is_new_is_read() {
        let run = RunId::from_bytes([7; 16]);
        let (store, root) = (MemoryStore::new(), RootId::new(run));
        let event = |seq| {
            let kind = EventKind::Starting;
            offshoot_model::Event { root, seq, at: Timestamp::EPOCH, run, kind }
        };
        store.append(&[event(1), event(2)]).await.expect("writing to memory failed");
        let known = KnownTree::default();
        let before = known.tree(&store, root).expect("writing to memory failed");
        store.append(&[event(3)]).await.expect("writing to memory failed");
        known.tree(&store, root).expect("writing to memory failed");
        assert_eq!(known.0.lock().last, 3);
        assert_eq!(before.nodes().count(), 0, "what was handed out does not change");
    }
}
