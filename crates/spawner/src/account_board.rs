//! Walls of quotas of which the trees of one user tell each other.

use std::sync::Arc;

use offshoot_model::{Account, Timestamp};
use tokio::sync::mpsc;

/// An account of which a quota is used up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParkedAccount {
    /// The account.
    pub account: Account,
    /// The quota in the words of the service; none where the service does not name it.
    pub window: Option<Arc<str>>,
    /// The reset.
    pub until: Timestamp,
}

/// The place where trees tell each other that a quota of an account is used up. A tree that hears of a wall records it when a run of
/// the account wants to start, and waits as at a wall of its own.
pub trait AccountBoard: Send + Sync + 'static {
    /// Tells the others of a wall that a tree has met. May write a file.
    fn tell(&self, parked: &ParkedAccount);

    /// Returns the walls of which was told so far.
    fn known(&self) -> Vec<ParkedAccount>;

    /// Returns each wall of which is told from now on. It ends with its receiver.
    fn follow(&self) -> mpsc::UnboundedReceiver<ParkedAccount>;
}
