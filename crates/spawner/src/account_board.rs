//! Walls of quotas, and services that have too much to do, of which the trees of one user tell each other.

use std::any::Any;
use std::sync::Arc;

use futures_util::future::BoxFuture;
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

/// The news of an account of which another tree tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountNews {
    /// A quota of it is used up.
    Parked(ParkedAccount),
    /// The service had too much to do for a run.
    Pressed {
        /// The account.
        account: Account,
        /// The time at which the run ended.
        at: Timestamp,
    },
}

/// The turn of a tree to start one run of an account after a reset. It goes to the next tree that has asked when this is dropped.
#[derive(derive_more::Debug)]
pub struct ProbeTurn {
    /// The time at which a run of the account was last answered after a reset; none where another wall was met since.
    pub answered_at: Option<Timestamp>,
    /// The last wall of which was told; none where a run was answered since.
    pub told: Option<ParkedAccount>,
    /// The hold on the turn.
    #[debug(skip)]
    pub hold: Box<dyn Any + Send>,
}

impl ProbeTurn {
    /// A turn that no other tree shares.
    pub fn alone() -> Self {
        Self { answered_at: None, told: None, hold: Box::new(()) }
    }
}

/// The place where trees tell each other that a quota of an account is used up. A tree that hears of a wall records it when a run of
/// the account wants to start, and waits as at a wall of its own.
pub trait AccountBoard: Send + Sync + 'static {
    /// Tells the others of a wall that a tree has met. May write a file.
    fn tell(&self, parked: &ParkedAccount);

    /// Returns the walls of which was told so far.
    fn known(&self) -> Vec<ParkedAccount>;

    /// Returns the turn of a tree to start one run of this account after a reset, once no other tree has it. A caller that waits no longer drops
    /// what is returned.
    fn turn(&self, account: &Account) -> BoxFuture<'static, ProbeTurn>;

    /// Tells the others that a run of an account was answered after a reset, at this moment. May write a file.
    fn answered(&self, account: &Account, at: Timestamp);

    /// Tells the others that the service of an account had too much to do for a run, which ended at this moment. May write a file.
    fn pressed(&self, account: &Account, at: Timestamp);

    /// Returns all of which is told from now on. It ends with its receiver.
    fn follow(&self) -> mpsc::UnboundedReceiver<AccountNews>;
}
