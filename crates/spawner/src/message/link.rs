//! The way to the supervisor of a tree: asking, and waiting for its answer.

use std::sync::Arc;

use offshoot_model::{Refusal, RefusalCode, RunId, error_chain};
use offshoot_runtime::{WaitAnswer, WaitFor};
use tokio::sync::{mpsc, oneshot};

use super::{Message, Waited, over};
use crate::attempt_watch::AttemptWatch;
use crate::machine::{Busy, Input, RunIndex, WaitId};
use crate::request::Ask;
use crate::tree_context::TreeContext;

/// A tree, and the way to its supervisor. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) tree: Arc<TreeContext>,
    pub(crate) sender: mpsc::UnboundedSender<Message>,
}

/// The answer to each request to a tree whose supervisor has ended.
pub(crate) fn tree_over() -> Refusal {
    Refusal::new(RefusalCode::CallerEnded, "the tree is over")
}

impl Link {
    /// Sends a message.
    pub(crate) fn tell(&self, message: Message) -> Result<(), Refusal> {
        self.sender.send(message).map_err(|_| over())
    }

    /// Sends a message that is answered, and waits for the answer.
    pub(crate) async fn ask<A>(
        &self,
        message: impl FnOnce(oneshot::Sender<A>) -> Message,
    ) -> Result<A, Refusal> {
        let (reply, answer) = oneshot::channel();
        self.tell(message(reply))?;
        answer.await.map_err(|_| over())
    }

    /// Asks for one child and waits for the answer.
    pub(crate) async fn spawn(&self, ask: Ask) -> Result<RunId, Refusal> {
        let ask = Box::new(ask);
        self.ask(|reply| Message::Spawn { ask, reply }).await.map_err(|_| tree_over())?
    }

    /// Waits for runs below the caller; none where the tree is over or its record broke. Dropping the future gives the wait
    /// up.
    pub(crate) async fn wait(
        self,
        caller: RunIndex,
        cpu: AttemptWatch,
        wait: WaitFor,
    ) -> Option<WaitAnswer> {
        let (reply, answer) = oneshot::channel();
        let id = WaitId(self.tree.mint());
        let open = cpu.open(&self.tree.clock, self.busy(caller));
        self.sender.send(Message::Wait { id, caller, wait, reply }).ok()?;
        let guard = GiveUp::new(id, self.sender);
        let Ok(Waited { ended, mut pending, repeated: _ }) = answer.await else {
            guard.answered();
            return None;
        };
        if let Some(open) = open {
            open.close().await;
        }
        let (ended, unread) = self.tree.envelopes(ended).await;
        // A result that cannot be read at the moment was not told: it comes with another wait.
        match unread.is_empty() {
            true => guard.taken(),
            false => drop(guard),
        }
        pending.extend(unread);
        Some(WaitAnswer { ended, pending })
    }

    /// Writes a letter into a session, with the text as the record keeps it.
    pub(crate) async fn write(
        &self,
        from: Option<RunId>,
        to: RunId,
        text: Arc<str>,
    ) -> Result<(), Refusal> {
        let unkept = |error| {
            let message = format!("the message cannot be kept: {}", error_chain(&error));
            Refusal::invalid("text", message)
        };
        let payload = self.tree.task_for_record(&text).await.map_err(unkept)?;
        let letter = |reply| Message::Letter { to, from, text, payload, reply };
        self.ask(letter).await.map_err(|_| tree_over())?
    }

    /// Returns what tells the supervisor of the CPU time that the processes of a run used while it waited.
    pub(crate) fn busy(&self, run: RunIndex) -> impl FnOnce(Busy) + Send + 'static {
        let sender = self.sender.clone();
        move |busy| {
            // A supervisor that is gone has no run to hold to anything.
            let _ = sender.send(Message::Input(Input::Busy { run, busy }));
        }
    }
}

/// Tells the supervisor what became of an answer, and where it is dropped, that the caller no longer waits.
pub(crate) struct GiveUp {
    id: WaitId,
    sender: Option<mpsc::UnboundedSender<Message>>,
}

impl GiveUp {
    pub(crate) fn new(id: WaitId, sender: mpsc::UnboundedSender<Message>) -> Self {
        Self { id, sender: Some(sender) }
    }

    /// Ends the guard without a message: nothing more has to be said of the answer.
    pub(crate) fn answered(mut self) {
        self.sender = None;
    }

    /// Tells the supervisor that the caller has the answer.
    pub(crate) fn taken(mut self) {
        if let Some(sender) = self.sender.take() {
            // A supervisor that is gone keeps no results either.
            let _ = sender.send(Message::Input(Input::WaitTaken { id: self.id }));
        }
    }
}

impl Drop for GiveUp {
    fn drop(&mut self) {
        if let Some(sender) = self.sender.take() {
            // A supervisor that is gone has no waits either.
            let _ = sender.send(Message::WaitDropped { id: self.id });
        }
    }
}
