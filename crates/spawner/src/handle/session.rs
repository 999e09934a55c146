//! The owner's handle on a tree.

use std::sync::Arc;

use offshoot_model::{
    CancelledBy, Ending, Envelope, MergeSummary, Origin, Payload, Refusal, RootId, RunId,
    SpawnRequest,
};
use offshoot_runtime::{WaitAnswer, WaitFor};
use offshoot_store::StoreError;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use crate::announce;
use crate::attempt_watch::AttemptWatch;
use crate::error::SpawnerError;
use crate::event_stream::{EventStream, News, subscribed};
use crate::handle::agents::Agents;
use crate::handle::fan::{Fan, FanAnswer, FanOut};
use crate::handle::notebook::Notebook;
use crate::handle::tree_state::{broken, over};
use crate::machine::{Input, Reach, RunIndex};
use crate::message::link::Link;
use crate::message::{Counts, FanEvent, Message, TreeState};
use crate::request::Unresolved;
use crate::stored_values::StoredValues;
use crate::tree_context::INLINE_BYTES;

/// The root session of one tree. Dropping it before it was closed cancels the tree.
#[derive(derive_more::Debug)]
#[debug("Session({})", link.tree.root)]
pub struct Session {
    link: Link,
    /// Weak, so that followers hear the end of the tree while this handle lives.
    follow: broadcast::WeakSender<News>,
    state: watch::Receiver<TreeState>,
    answer: mpsc::UnboundedReceiver<FanEvent>,
    /// True if the root runs an agent, and so ends by itself.
    runs: bool,
    closed: bool,
}

/// Tells when the record of a tree cannot be written for a while, as on a full disk, and when it can again.
#[derive(Debug)]
pub struct Trouble(watch::Receiver<TreeState>);

impl Trouble {
    /// Returns the next change: why the record cannot be written, or none once it can again. Nothing more once the tree is over.
    pub async fn next(&mut self) -> Option<Option<Arc<StoreError>>> {
        self.0.changed().await.ok()?;
        match &*self.0.borrow_and_update() {
            TreeState::Live => Some(None),
            TreeState::Unwritten(error) => Some(Some(Arc::clone(error))),
            TreeState::Ended | TreeState::Broken(_) => None,
        }
    }
}

/// A handle that can only stop a tree, for signal handlers.
#[derive(Clone, derive_more::Debug)]
#[debug("Stopper")]
pub struct Stopper {
    sender: mpsc::WeakUnboundedSender<Message>,
}

impl Session {
    pub(crate) fn new(
        link: Link,
        follow: broadcast::WeakSender<News>,
        state: watch::Receiver<TreeState>,
        answer: mpsc::UnboundedReceiver<FanEvent>,
        runs: bool,
    ) -> Self {
        Self { link, follow, state, answer, runs, closed: false }
    }

    /// Returns the root of the tree.
    pub fn root(&self) -> RootId {
        self.link.tree.root
    }

    /// Asks for one child, as the operator.
    pub async fn spawn(&self, request: SpawnRequest) -> Result<RunId, Refusal> {
        let tree = &self.link.tree;
        let run_spec = Arc::clone(&tree.run_spec);
        let asked = Unresolved::of_root(&tree.agent, Origin::Piece, request, run_spec);
        self.link.spawn(asked.resolve(tree).await?).await
    }

    /// Waits for children.
    pub async fn wait(&self, wait: WaitFor) -> Result<WaitAnswer, SpawnerError> {
        // The root has no process of ours.
        let cpu = AttemptWatch::default();
        let wait = self.link.clone().wait(RunIndex::ROOT, cpu, wait);
        let mut state = self.state.clone();
        tokio::select! {
            biased;
            error = broken(&mut state) => Err(error),
            answer = wait => answer.ok_or_else(|| over(&self.state)),
        }
    }

    /// Asks for many pieces at once, whose results become one answer.
    ///
    /// # Errors
    ///
    /// If a piece cannot be asked for as it is, nothing was asked for and the tree lives on. If a task cannot be stored,
    /// the tree ends without an end on record: it can be resumed then.
    pub async fn fan_out(&self, order: FanOut) -> Result<Fan, SpawnerError> {
        Fan::start(self.link.clone(), self.state.clone(), order, None).await
    }

    /// Writes into the session of a run, as the operator. The letter is on record and handed over when this answers.
    ///
    /// # Errors
    ///
    /// Fails if the run is none of this tree, is over, or reads no letters.
    pub async fn write(&self, run: RunId, text: &str) -> Result<(), Refusal> {
        self.link.write(None, run, announce::letter(None, text)).await
    }

    /// Cancels a run and what is below it, or the run alone.
    pub fn cancel(&self, run: RunId, only: bool) {
        let reach = Reach::of(only);
        // A tree that is over has nothing to cancel.
        let _ = self.link.tell(Message::Cancel { run, reach, by: CancelledBy::Operator });
    }

    /// Stops admission and starts, or lets them go on.
    pub fn pause(&self, paused: bool) {
        let (reply, _) = oneshot::channel();
        let _ = self.link.tell(Message::Pause { paused, reply });
    }

    /// A handle that can stop the tree, for signal handlers. It does not keep the tree alive.
    pub fn stopper(&self) -> Stopper {
        Stopper { sender: self.link.sender.downgrade() }
    }

    /// Returns the notebook, which puts on record what concerns no run alone.
    pub fn notebook(&self) -> Notebook {
        Notebook { sender: self.link.sender.downgrade() }
    }

    /// Returns the handle for requests of running agents, for the door that listens to them.
    pub fn agents(&self) -> Agents {
        let Link { tree, sender } = &self.link;
        Agents { tree: Arc::clone(tree), sender: sender.downgrade(), follow: self.follow.clone() }
    }

    /// Counts the runs of the tree. A tree that is over is empty.
    pub async fn counts(&self) -> Counts {
        self.link.ask(|reply| Message::Count { reply }).await.unwrap_or_default()
    }

    /// The events of the tree, from the first.
    pub fn events(&self) -> EventStream {
        EventStream::new(
            self.link.tree.root,
            Arc::clone(&self.link.tree.store),
            subscribed(&self.follow),
        )
    }

    /// Returns the trouble with the record, to be shown to people: what runs waits while the record cannot be written.
    pub fn trouble(&self) -> Trouble {
        Trouble(self.state.clone())
    }

    /// Returns the stored results, for writing an answer.
    pub fn values(&self) -> StoredValues {
        StoredValues::new(Arc::clone(&self.link.tree.store))
    }

    /// Waits for the answer of a root that is an agent itself. Its children may still be alive.
    pub async fn answer(&mut self) -> Result<Envelope, SpawnerError> {
        let mut state = self.state.clone();
        tokio::select! {
            biased;
            error = broken(&mut state) => Err(error),
            event = self.answer.recv() => match event {
                Some(FanEvent::Ended { envelope, .. }) => Ok(*envelope),
                Some(FanEvent::Over { .. }) => unreachable!("a root is no piece of an earlier life"),
                Some(FanEvent::Refused { refusal, .. }) => Err(SpawnerError::Refused(refusal)),
                None => Err(over(&self.state)),
            },
        }
    }

    /// Records the answer of a fan-out as the root's own, ends the root with it, and waits until everything below is
    /// over and recorded. An answer that is too large to travel becomes a value of the store.
    ///
    /// # Errors
    ///
    /// If the answer cannot be kept, the root has no end on record: the tree can be resumed, and has its answer then.
    pub async fn conclude(mut self, outcome: &FanAnswer) -> Result<Ending, SpawnerError> {
        let output = match self.keep(outcome).await {
            Ok(output) => output,
            Err(error) => {
                let cause = match &error {
                    SpawnerError::Store(cause) => cause.clone(),
                    _ => StoreError::Closed,
                };
                let _ = self.link.tell(Message::Halt { error: cause });
                // The tree ends because of this error, which is returned.
                let _ = self.ended().await;
                return Err(error);
            }
        };
        let ending = Ending { output: Some(output.clone()), ..outcome.ending() };
        let summary = MergeSummary {
            strategy: outcome.strategy.to_string(),
            merged: outcome.answer.merged(),
            failed: outcome.missing(),
            output,
            chosen: outcome.chosen.clone(),
        };
        // A tree that is over cannot be concluded; `close` says so.
        let summary = Box::new(summary);
        let _ = self.link.tell(Message::Input(Input::Merged { summary }));
        self.close(ending.clone()).await?;
        Ok(ending)
    }

    async fn keep(&self, outcome: &FanAnswer) -> Result<Payload, SpawnerError> {
        match outcome.answer.to_payload() {
            Some(at_hand @ Payload::Stored(_)) => return Ok(at_hand),
            Some(at_hand) if at_hand.size() <= INLINE_BYTES as u64 => return Ok(at_hand),
            _ => {}
        }
        let values = outcome.values(Arc::clone(&self.link.tree.store));
        let value = values.put(outcome.answer.clone(), Arc::clone(&self.link.tree.folder)).await?;
        Ok(Payload::Stored(value))
    }

    /// Ends a root that runs nothing itself. What lives below it goes on or ends, as `onParentEnd` has it.
    pub fn end(&self, ending: Ending) {
        if !self.runs {
            // A tree that is over has ended already.
            let ending = Box::new(ending);
            let _ = self.link.tell(Message::Input(Input::Close { ending }));
        }
    }

    /// Ends everything below a root that has ended, even if `onParentEnd` lets it finish.
    pub fn cascade(&self) {
        let (run, reach) = (self.root().run(), Reach::Below);
        let _ = self.link.tell(Message::Cancel { run, reach, by: CancelledBy::ParentEnded });
    }

    /// [`end`](Self::end), and waits until everything below is over and recorded.
    pub async fn close(mut self, ending: Ending) -> Result<(), SpawnerError> {
        self.end(ending);
        self.ended().await
    }

    /// Waits until everything is over and recorded.
    pub async fn ended(&mut self) -> Result<(), SpawnerError> {
        let mut state = self.state.clone();
        let is_over = |state: &TreeState| matches!(state, TreeState::Ended | TreeState::Broken(_));
        let over = state.wait_for(is_over).await;
        self.closed = true;
        match over.as_deref() {
            Ok(TreeState::Broken(error)) => Err(SpawnerError::Record(Arc::clone(error))),
            Ok(TreeState::Ended) => Ok(()),
            Ok(TreeState::Live | TreeState::Unwritten(_)) | Err(_) => Err(SpawnerError::Over),
        }
    }
}

impl Stopper {
    /// Stops everything: softly, so that each run may end well within its grace, or firmly.
    pub fn stop_all(&self, firm: bool) {
        if let Some(sender) = self.sender.upgrade() {
            let _ = sender.send(Message::Input(Input::StopAll { firm }));
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.closed {
            // No handle on the tree is left: its answer would have no reader, and its limits no owner.
            let _ = self.link.tell(Message::Abandon);
        }
    }
}

#[cfg(test)]
mod tests;
