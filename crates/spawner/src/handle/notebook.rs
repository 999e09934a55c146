//! Observations beside the runs of a tree, for its record.

use std::sync::Arc;

use offshoot_model::KeeperFault;
use tokio::sync::mpsc;

use crate::machine::Input;
use crate::message::Message;

/// Puts on record what concerns no run alone. It does not keep the tree alive, and of one that is over nothing is recorded.
#[derive(Clone, derive_more::Debug)]
#[debug("Notebook")]
pub struct Notebook {
    pub(super) sender: mpsc::WeakUnboundedSender<Message>,
}

impl Notebook {
    /// True if the tree is not over.
    pub fn is_open(&self) -> bool {
        self.sender.strong_count() > 0
    }

    /// The process that ends the tree's processes if this one is killed did not hold any more. `error` says why no other one has
    /// taken its place.
    pub fn keeper_failed(&self, pid: u32, found: KeeperFault, error: Option<Arc<str>>) {
        if let Some(sender) = self.sender.upgrade() {
            // A tree that is over has no processes.
            let _ = sender.send(Message::Input(Input::KeeperFailed { pid, found, error }));
        }
    }
}
