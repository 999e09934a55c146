//! The engine as running agents reach it from outside: by the run that asks, which somebody else has made sure of.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use offshoot_model::{
    AgentId, CancelledBy, Grant, Origin, Refusal, RefusalCode, RunId, SessionKey, SpawnRequest,
    Tree,
};
use offshoot_runtime::{RunEvent, WaitAnswer, WaitFor};
use offshoot_store::{Store, StoreError};
use tokio::sync::{mpsc, oneshot};

use crate::host::{spawn, wait_for};
use crate::machine::RunIndex;
use crate::resolve::Unresolved;
use crate::shared::Shared;
use crate::supervisor::Message;
use crate::work::Work;

/// What running agents may ask of one tree. Who asks is an argument here: only hand this to something that knows it
/// from a ticket and from the kernel. Cheap to clone, and it does not keep the tree alive.
#[derive(Clone)]
pub struct Agents {
    shared: Arc<Shared>,
    sender: mpsc::WeakUnboundedSender<Message>,
}

/// A session that asks, as the tree knows it.
#[derive(Clone, Debug)]
pub struct Asking {
    /// Its place in the tree.
    pub(crate) index: RunIndex,
    /// Its address.
    pub key: SessionKey,
    /// Its agent.
    pub agent: AgentId,
    /// Levels below the root.
    pub depth: u32,
    /// The terms it lives under.
    pub grant: Arc<Grant>,
}

/// A child that was admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The run.
    pub run: RunId,
    /// Its address.
    pub key: SessionKey,
}

impl Agents {
    pub(crate) fn new(shared: Arc<Shared>, sender: mpsc::WeakUnboundedSender<Message>) -> Self {
        Self { shared, sender }
    }

    /// The record of the tree, and of others in the same store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// Looks the session of a run up.
    ///
    /// # Errors
    ///
    /// `caller_ended` where the run is over, or is none of this tree.
    pub async fn session(&self, run: RunId) -> Result<Asking, Refusal> {
        let (reply, answer) = oneshot::channel();
        self.tell(Message::Find { run, reply })?;
        answer.await.ok().flatten().ok_or_else(over)
    }

    /// Asks for a child, in a folder of the caller's choosing or its own.
    pub async fn spawn(
        &self,
        caller: RunId,
        request: SpawnRequest,
        folder: Option<PathBuf>,
    ) -> Result<Accepted, Refusal> {
        let asking = self.session(caller).await?;
        let sender = self.sender.upgrade().ok_or_else(over)?;
        let mut work = Arc::clone(&self.shared.work);
        if let Some(folder) = folder {
            work = Arc::new(Work { working_folder: Arc::new(folder), ..(*work).clone() });
        }
        let unresolved = Unresolved {
            caller: asking.index,
            agent: &asking.agent,
            origin: Origin::Agent,
            request,
            input: None,
            work,
            place: 0,
        };
        let run = spawn(&sender, unresolved.resolve(&self.shared).await?).await?;
        let admitted = self.shared.store.admitted(run).ok().flatten();
        let key = admitted.map(|admitted| admitted.key).ok_or_else(over)?;
        Ok(Accepted { run, key })
    }

    /// Waits for runs below the caller, whose slot is lent meanwhile. Dropping the future gives the wait up.
    pub async fn wait(&self, caller: RunId, wait: WaitFor) -> Result<WaitAnswer, Refusal> {
        let asking = self.session(caller).await?;
        let sender = self.sender.upgrade().ok_or_else(over)?;
        wait_for(Arc::clone(&self.shared), sender, asking.index, wait).await.ok_or_else(over)
    }

    /// Notes how it goes, for the parent and for people.
    pub async fn report(&self, caller: RunId, text: &str) -> Result<(), Refusal> {
        let asking = self.session(caller).await?;
        let event = RunEvent::Progress(text.into());
        self.tell(Message::Told { run: asking.index, event })
    }

    /// Cancels a run below the caller.
    pub async fn cancel(&self, caller: RunId, run: RunId, only: bool) -> Result<(), Refusal> {
        let by = CancelledBy::Parent;
        self.session(caller).await?;
        if !self.subtree(caller).map_err(|error| unread(&error))?.contains(&run) {
            let message = format!("the run {run} is not below this session");
            return Err(Refusal::invalid("run", message));
        }
        let reach = crate::machine::Reach::of(only);
        self.tell(Message::Cancel { run, reach, by })
    }

    /// All runs of this tree.
    pub fn tree(&self) -> Result<Tree, StoreError> {
        let mut tree = Tree::new();
        for event in self.shared.store.events(self.shared.root, 0) {
            tree.apply(&event?);
        }
        Ok(tree)
    }

    /// The runs below a session, nearest first.
    pub fn subtree(&self, caller: RunId) -> Result<Vec<RunId>, StoreError> {
        let tree = self.tree()?;
        let mut found: Vec<RunId> = Vec::new();
        let mut open: Vec<RunId> = vec![caller];
        while let Some(run) = open.pop() {
            if let Some(node) = tree.get(run) {
                let children = tree.children(node).map(|child| child.run);
                let before = found.len();
                found.extend(children);
                open.extend(&found[before..]);
            }
        }
        Ok(found)
    }

    fn tell(&self, message: Message) -> Result<(), Refusal> {
        let sender = self.sender.upgrade().ok_or_else(over)?;
        sender.send(message).map_err(|_| over())
    }
}

fn over() -> Refusal {
    Refusal::new(RefusalCode::CallerEnded, "this session is over")
}

fn unread(error: &StoreError) -> Refusal {
    Refusal::invalid("run", format!("the record cannot be read: {}", crate::agent::chain(error)))
}

impl fmt::Debug for Agents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agents").field("root", &self.shared.root).finish_non_exhaustive()
    }
}
