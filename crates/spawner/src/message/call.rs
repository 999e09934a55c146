//! Asking the supervisor, and waiting for its answer.

use std::sync::Arc;

use offshoot_model::{Refusal, RefusalCode, RunId, error_chain};
use offshoot_runtime::{WaitAnswer, WaitFor};
use tokio::sync::{mpsc, oneshot};

use super::{Message, Waited, busy};
use crate::attempt_watch::AttemptWatch;
use crate::machine::{RunIndex, WaitId};
use crate::request::Ask;
use crate::tree_context::TreeContext;

/// Asks for one child and waits for the answer.
pub(crate) async fn spawn(
    sender: &mpsc::UnboundedSender<Message>,
    ask: Ask,
) -> Result<RunId, Refusal> {
    let (reply, answer) = oneshot::channel();
    sender.send(Message::Spawn { ask: Box::new(ask), reply }).map_err(|_| tree_over())?;
    answer.await.unwrap_or_else(|_| Err(tree_over()))
}

/// The answer to each request to a tree whose supervisor has ended.
pub(crate) fn tree_over() -> Refusal {
    Refusal::new(RefusalCode::CallerEnded, "the tree is over")
}

/// Waits for runs below the caller; none where the tree is over or its record broke. Dropping the future gives the wait
/// up.
pub(crate) async fn wait_for(
    tree: Arc<TreeContext>,
    sender: mpsc::UnboundedSender<Message>,
    caller: RunIndex,
    cpu: AttemptWatch,
    wait: WaitFor,
) -> Option<WaitAnswer> {
    let (reply, answer) = oneshot::channel();
    let id = WaitId(tree.mint());
    let open = cpu.open(&tree.clock, busy(&sender, caller));
    sender.send(Message::Wait { id, caller, wait, reply }).ok()?;
    let guard = GiveUp::new(id, sender);
    let Ok(Waited { ended, mut pending, repeated: _ }) = answer.await else {
        guard.answered();
        return None;
    };
    if let Some(open) = open {
        open.close().await;
    }
    let (ended, unread) = tree.envelopes(ended).await;
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
    tree: &Arc<TreeContext>,
    sender: &mpsc::UnboundedSender<Message>,
    from: Option<RunId>,
    to: RunId,
    text: Arc<str>,
) -> Result<(), Refusal> {
    let unkept = |error| {
        let message = format!("the message cannot be kept: {}", error_chain(&error));
        Refusal::invalid("text", message)
    };
    let payload = tree.task_for_record(&text).await.map_err(unkept)?;
    let (reply, answer) = oneshot::channel();
    sender.send(Message::Letter { to, from, text, payload, reply }).map_err(|_| tree_over())?;
    answer.await.unwrap_or_else(|_| Err(tree_over()))
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
            let _ = sender.send(Message::WaitTaken { id: self.id });
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
