//! Observations beside the runs of a tree, for its record.

use std::sync::Arc;

use offshoot_model::KeeperFault;
use tokio::sync::mpsc;

use crate::message::Message;

/// Puts on record what concerns no run alone. It does not keep the tree alive, and of one that is over nothing is recorded.
#[derive(Clone, derive_more::Debug)]
#[debug("Notebook")]
pub struct Notebook {
    sender: mpsc::WeakUnboundedSender<Message>,
}

impl Notebook {
    pub(crate) fn new(sender: mpsc::WeakUnboundedSender<Message>) -> Self {
        Self { sender }
    }

    /// True if the tree is not over.
    pub fn is_open(&self) -> bool {
        self.sender.strong_count() > 0
    }

    /// The process that ends the tree's processes if this one is killed did not hold any more. `error` says why no other one has
    /// taken its place.
    pub fn keeper_failed(&self, pid: u32, found: KeeperFault, error: Option<Arc<str>>) {
        if let Some(sender) = self.sender.upgrade() {
            // A tree that is over has no processes.
            let _ = sender.send(Message::KeeperFailed { pid, found, error });
        }
    }
}
