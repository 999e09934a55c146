//! Trees of a host: open ones, and those that an earlier supervisor has left.

use std::sync::Arc;

use offshoot_door::{Client, ClientError, OperatorCommand, Server, SharedTickets};
use offshoot_model::{BudgetGrant, Ending};
use offshoot_spawner::{
    AbandonedTree, Clock, FanAnswer, NewLimits, RootSpec, Session, SpawnerError, SystemClock,
    TicketIssuer,
};
use offshoot_store::SqliteStore;
use tokio::task::{JoinHandle, JoinSet};

use crate::day_budget::{DayBudget, DayShare, left};
use crate::door::BoundDoor;
use crate::error::HostError;
use crate::tickets::Tickets;

/// An open tree, whose agents can ask for children. Dropped before it is closed, it is cancelled.
///
/// Methods of the [`Session`] in it can be called on it.
#[derive(Debug, derive_more::Deref, derive_more::DerefMut)]
pub struct Tree {
    #[deref]
    #[deref_mut]
    pub(crate) session: Session,
    pub(crate) door: Arc<Server>,
    pub(crate) tickets: Tickets,
    /// Answers for as long as the tree is open.
    pub(crate) _meter: Option<JoinSet<()>>,
    /// Writes down what the tree has spent of its day, once it is over.
    pub(crate) day: Option<JoinHandle<()>>,
}

/// The commands that are run for the operator of a tree. They are known at its door, which stays open for them.
#[derive(Clone, Debug)]
pub struct OperatorCommands {
    _door: Arc<Server>,
    tickets: SharedTickets,
}

/// A tree whose supervisor has died, held by this one.
///
/// Methods of the [`AbandonedTree`] in it can be called on it.
#[derive(Debug, derive_more::Deref)]
pub struct Abandoned {
    #[deref]
    pub(crate) tree: AbandonedTree,
    pub(crate) bound_door: BoundDoor,
    pub(crate) day: Option<DayBudget>,
    pub(crate) store: Arc<SqliteStore>,
    /// The budget that the tree is given anew.
    pub(crate) given: BudgetGrant,
}

impl OperatorCommands {
    /// A command is about to be started; the answer is to be told its process, and to be kept for as long as it runs. At the door it
    /// may look, cancel and pause.
    pub fn begin(&self) -> OperatorCommand {
        self.tickets.operator_command()
    }
}

/// Closes the door, unless commands of the operator's still come to it: then it closes with the last of them.
async fn close(door: Arc<Server>) {
    if let Some(door) = Arc::into_inner(door) {
        door.stop().await;
    }
}

/// Waits until it is written down what a tree has spent that is over.
async fn settled(day: Option<JoinHandle<()>>) {
    if let Some(day) = day {
        // A panic of it is reported, and leaves all that was reserved.
        let _ = day.await;
    }
}

impl Tree {
    /// Returns what makes the commands known that are run for the operator of this tree.
    pub fn operator_commands(&self) -> OperatorCommands {
        OperatorCommands { _door: Arc::clone(&self.door), tickets: self.tickets.tickets() }
    }

    /// Returns a client that asks as the root, for a root that is no program but lives in this process.
    pub async fn client(&self) -> Result<Client, ClientError> {
        let root = self.session.root();
        self.tickets.issue(root, root.run());
        self.tickets.started(root.run(), None);
        self.door.inside(root.run()).await
    }

    /// [`Session::conclude`], and closes the door.
    ///
    /// # Errors
    ///
    /// Those of [`Session::conclude`].
    pub async fn conclude(self, answer: &FanAnswer) -> Result<Ending, SpawnerError> {
        let Self { session, door, day, .. } = self;
        let concluded = session.conclude(answer).await;
        close(door).await;
        settled(day).await;
        concluded
    }

    /// [`Session::close`], and closes the door.
    ///
    /// # Errors
    ///
    /// Those of [`Session::close`].
    pub async fn close(self, ending: Ending) -> Result<(), SpawnerError> {
        let Self { session, door, day, .. } = self;
        let closed = session.close(ending).await;
        close(door).await;
        settled(day).await;
        closed
    }

    /// Closes the door of a tree that is over, once every connection is closed.
    pub async fn stop(self) {
        let Self { session, door, day, .. } = self;
        close(door).await;
        drop(session);
        settled(day).await;
    }
}

impl Abandoned {
    /// Gives new limits: see [`AbandonedTree::give`].
    ///
    /// # Errors
    ///
    /// Fails if a tree that is over would have no time left or nothing to spend.
    pub fn give(&mut self, limits: NewLimits) -> Result<(), SpawnerError> {
        self.given = limits.budget;
        self.tree.give(limits)
    }

    /// Goes on with it.
    ///
    /// # Errors
    ///
    /// Those of [`AbandonedTree::resume`], and [`HostError::Day`] where the day has less left than the tree may still spend.
    pub async fn resume(self, spec: RootSpec) -> Result<Tree, HostError> {
        let Self { tree, bound_door, day, store, given } = self;
        let reserve = |day: DayBudget| -> Result<DayShare, HostError> {
            let (left, before) = left(&*store, tree.root(), given)?;
            Ok(day.reserve(Some(tree.root()), left, before, SystemClock.now())?)
        };
        let day = day.map(reserve).transpose()?;
        let (session, day) = DayShare::kept_by(day, tree.resume(spec).await)?;
        bound_door.open(session, day)
    }
}
