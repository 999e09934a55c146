//! Trees of a host: open ones, and those that an earlier supervisor has left.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use offshoot_door::{Client, ClientError, Server};
use offshoot_model::Ending;
use offshoot_spawner::{
    AbandonedTree, FanAnswer, Piece, RootSpec, Session, SpawnerError, TicketIssuer,
};

use crate::door::Door;
use crate::error::HostError;
use crate::plugins::PluginSnapshot;
use crate::processes::TreeList;
use crate::tickets::Tickets;

/// An open tree, whose agents can ask for children. Dropped before it is closed, it is cancelled.
///
/// What is asked of it is asked of its [`Session`].
#[derive(Debug)]
pub struct Tree {
    session: Session,
    door: Server,
    tickets: Tickets,
}

/// A tree whose supervisor has died, held by this one.
#[derive(Debug)]
pub struct Abandoned {
    tree: AbandonedTree,
    bound_door: BoundDoor,
}

/// A door that is bound, and what it takes to open it.
pub(crate) struct BoundDoor {
    pub(crate) door: Door,
    pub(crate) plugins: Arc<PluginSnapshot>,
    pub(crate) trees: TreeList,
}

impl BoundDoor {
    /// Opens the door of this tree.
    pub(crate) fn open(self, session: Session) -> Result<Tree, HostError> {
        let Self { door, plugins, trees } = self;
        trees.add(session.notebook());
        let tickets = door.tickets.clone();
        let door = door.open(session.agents(), plugins)?;
        Ok(Tree { session, door, tickets })
    }
}

impl Tree {
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
        let Self { session, door, .. } = self;
        let concluded = session.conclude(answer).await;
        door.stop().await;
        concluded
    }

    /// [`Session::close`], and closes the door.
    ///
    /// # Errors
    ///
    /// Those of [`Session::close`].
    pub async fn close(self, ending: Ending) -> Result<(), SpawnerError> {
        let Self { session, door, .. } = self;
        let closed = session.close(ending).await;
        door.stop().await;
        closed
    }

    /// Closes the door of a tree that is over, once every connection is closed.
    pub async fn stop(self) {
        self.door.stop().await;
    }
}

impl Deref for Tree {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl DerefMut for Tree {
    fn deref_mut(&mut self) -> &mut Session {
        &mut self.session
    }
}

impl Abandoned {
    pub(crate) fn new(tree: AbandonedTree, bound_door: BoundDoor) -> Self {
        Self { tree, bound_door }
    }

    /// [`AbandonedTree::check_inputs`].
    ///
    /// # Errors
    ///
    /// Where a piece would not read what it has read.
    pub fn check_inputs(&self, pieces: &[Piece]) -> Result<(), SpawnerError> {
        self.tree.check_inputs(pieces)
    }

    /// Goes on with it.
    ///
    /// # Errors
    ///
    /// Those of [`AbandonedTree::resume`].
    pub async fn resume(self, spec: RootSpec) -> Result<Tree, HostError> {
        let Self { tree, bound_door } = self;
        bound_door.open(tree.resume(spec).await?)
    }
}

impl std::fmt::Debug for BoundDoor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BoundDoor")
    }
}
