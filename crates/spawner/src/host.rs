//! What a running agent may ask of the engine. One host per run: who asks is known from the host, not from the request.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use offshoot_model::{AgentId, Origin, Refusal, RefusalCode, RunId, SpawnRequest};
use offshoot_runtime::{Host, RunEvent, WaitAnswer, WaitFor};
use tokio::sync::{mpsc, oneshot};

use crate::machine::{RunIndex, WaitId};
use crate::resolve::Unresolved;
use crate::shared::Shared;
use crate::supervisor::{Ask, Message, Waited};

/// The host of one run.
pub(crate) struct AgentHost {
    shared: Arc<Shared>,
    run: RunIndex,
    id: RunId,
    agent: AgentId,
    sender: mpsc::UnboundedSender<Message>,
}

impl AgentHost {
    pub(crate) fn new(
        shared: Arc<Shared>,
        run: RunIndex,
        id: RunId,
        agent: AgentId,
        sender: mpsc::UnboundedSender<Message>,
    ) -> Self {
        Self { shared, run, id, agent, sender }
    }
}

impl Host for AgentHost {
    fn hear(&self, event: RunEvent) {
        if matches!(event, RunEvent::Progress(_)) && !self.shared.progress.send() {
            return;
        }
        if let (RunEvent::Started(process), Some(doorkeeper)) = (&event, &self.shared.doorkeeper) {
            doorkeeper.started(self.id, *process);
        }
        // The supervisor outlives its runs; only a run that tells something after its end finds nobody.
        let _ = self.sender.send(Message::Told { run: self.run, event });
    }

    fn spawn(&self, request: SpawnRequest) -> BoxFuture<'static, Result<RunId, Refusal>> {
        let (shared, sender) = (Arc::clone(&self.shared), self.sender.clone());
        let (caller, agent) = (self.run, self.agent.clone());
        async move {
            let unresolved = Unresolved {
                caller,
                agent: &agent,
                origin: Origin::Agent,
                request,
                input: None,
                work: Arc::clone(&shared.work),
                place: 0,
            };
            spawn(&sender, unresolved.resolve(&shared).await?).await
        }
        .boxed()
    }

    fn wait(&self, wait: WaitFor) -> BoxFuture<'static, WaitAnswer> {
        let order = wait.runs.clone();
        let answer = wait_for(Arc::clone(&self.shared), self.sender.clone(), self.run, wait);
        // Where nobody answers any more, everything is as pending as it was.
        async { answer.await.unwrap_or(WaitAnswer { ended: Vec::new(), pending: order }) }.boxed()
    }
}

/// Asks for one child and waits for the answer.
pub(crate) async fn spawn(
    sender: &mpsc::UnboundedSender<Message>,
    ask: Ask,
) -> Result<RunId, Refusal> {
    let (reply, answer) = oneshot::channel();
    let gone = || Refusal::new(RefusalCode::CallerEnded, "the tree is over");
    sender.send(Message::Spawn { ask: Box::new(ask), reply }).map_err(|_| gone())?;
    answer.await.unwrap_or_else(|_| Err(gone()))
}

/// Waits for runs below the caller; none where the tree is over or its record broke. Dropping the future gives the wait
/// up.
pub(crate) async fn wait_for(
    shared: Arc<Shared>,
    sender: mpsc::UnboundedSender<Message>,
    caller: RunIndex,
    wait: WaitFor,
) -> Option<WaitAnswer> {
    let (reply, answer) = oneshot::channel();
    let id = shared.mint_wait();
    sender.send(Message::Wait { id, caller, wait, reply }).ok()?;
    let guard = GiveUp { id, sender: Some(sender) };
    let waited = answer.await;
    guard.answered();
    let Waited { ended, mut pending } = waited.ok()?;
    let (ended, unread) = shared.envelopes(ended).await;
    pending.extend(unread);
    Some(WaitAnswer { ended, pending })
}

/// Tells the supervisor that nobody waits any more, unless there was an answer.
struct GiveUp {
    id: WaitId,
    sender: Option<mpsc::UnboundedSender<Message>>,
}

impl GiveUp {
    fn answered(mut self) {
        self.sender = None;
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
