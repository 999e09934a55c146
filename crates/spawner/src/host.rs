//! What a running agent may ask of the engine. One host per run: who asks is known from the host, not from the request.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use offshoot_model::{AgentId, Origin, Refusal, RefusalCode, RunId, SpawnRequest};
use offshoot_runtime::{Host, Output, Ruling, RunEvent, WaitAnswer, WaitFor};
use tokio::sync::{mpsc, oneshot};

use crate::agent::keep;
use crate::announce;
use crate::cpu_watch::CpuWatch;
use crate::machine::{RunIndex, WaitId};
use crate::resolve::Unresolved;
use crate::shared::Shared;
use crate::signs::Signs;
use crate::supervisor::{Ask, Message, Waited};

/// The host of one run.
pub(crate) struct AgentHost {
    pub(crate) shared: Arc<Shared>,
    pub(crate) run: RunIndex,
    pub(crate) id: RunId,
    pub(crate) agent: AgentId,
    /// How much of a child's result it is told, in bytes.
    pub(crate) inline_bytes: u64,
    pub(crate) sender: mpsc::UnboundedSender<Message>,
    pub(crate) signs: Signs,
    pub(crate) cpu: CpuWatch,
}

impl Host for AgentHost {
    fn sign(&self) {
        self.signs.mark(self.shared.clock.now());
    }

    fn hear(&self, event: RunEvent) {
        let place = match event {
            RunEvent::Progress(_) => match Arc::clone(&self.shared.progress).try_acquire_owned() {
                Ok(place) => Some(place),
                // Its line is dropped; that it lives is not.
                Err(_) => return self.sign(),
            },
            RunEvent::Started(_) | RunEvent::Used { .. } | RunEvent::StrayEnded { .. } => None,
        };
        if let (RunEvent::Started(process), Some(doorkeeper)) = (&event, &self.shared.doorkeeper) {
            doorkeeper.started(self.id, *process);
        }
        // The supervisor outlives its runs; only a run that tells something after its end finds nobody.
        let _ = self.sender.send(Message::Told { run: self.run, event, place });
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

    fn wait(&self, wait: WaitFor) -> BoxFuture<'static, Result<WaitAnswer, Refusal>> {
        let (shared, sender, cpu) = (&self.shared, &self.sender, self.cpu.clone());
        let answer = wait_for(Arc::clone(shared), sender.clone(), self.run, cpu, wait);
        async { answer.await.ok_or_else(tree_over) }.boxed()
    }

    fn turn_ended(
        &self,
        answer: Option<Arc<str>>,
        letters_taken: u32,
    ) -> BoxFuture<'static, Ruling> {
        let (shared, sender) = (Arc::clone(&self.shared), self.sender.clone());
        let (run, limit, cpu) = (self.run, self.inline_bytes, self.cpu.clone());
        async move {
            // An answer that cannot be kept is missing from the history; the turn is over all the same.
            let answer = match answer {
                Some(answer) => keep(&shared, Output::Text(answer)).await.unwrap_or_default(),
                None => None,
            };
            let (reply, ruling) = oneshot::channel();
            let id = shared.mint_wait();
            let message = Message::TurnEnded { id, run, answer, letters_taken, reply };
            let open = cpu.open(&shared, &sender, run);
            if sender.send(message).is_err() {
                return Ruling::End;
            }
            let guard = GiveUp { id, sender: Some(sender.clone()) };
            let waited = ruling.await;
            guard.answered();
            if let Some(open) = open {
                open.close().await;
            }
            match waited {
                Ok(Waited { ended, .. }) if ended.is_empty() => Ruling::Go(None),
                Ok(Waited { ended, repeated, pending }) => {
                    let mut announced = shared.announced(ended, limit).await;
                    for one in &mut announced.announced {
                        one.repeated = repeated.contains(&one.envelope.run_id);
                    }
                    let children = announced.not_brought();
                    if !children.is_empty() {
                        // A supervisor that is gone keeps no results.
                        let _ = sender.send(Message::NotBrought { run, children });
                    }
                    let mark = shared.clock.mint().as_uuid().simple().to_string();
                    let text = announce::results(&announced, pending.len(), &mark[20..]);
                    Ruling::Go(Some(text))
                }
                Err(_) => Ruling::End,
            }
        }
        .boxed()
    }
}

/// Asks for one child and waits for the answer.
pub(crate) async fn spawn(
    sender: &mpsc::UnboundedSender<Message>,
    ask: Ask,
) -> Result<RunId, Refusal> {
    let (reply, answer) = oneshot::channel();
    sender.send(Message::Spawn { ask: Box::new(ask), reply }).map_err(|_| tree_over())?;
    answer.await.unwrap_or_else(|_| Err(tree_over()))
}

/// The answer to whatever is asked of a tree whose supervisor has ended.
fn tree_over() -> Refusal {
    Refusal::new(RefusalCode::CallerEnded, "the tree is over")
}

/// Waits for runs below the caller; none where the tree is over or its record broke. Dropping the future gives the wait
/// up.
pub(crate) async fn wait_for(
    shared: Arc<Shared>,
    sender: mpsc::UnboundedSender<Message>,
    caller: RunIndex,
    cpu: CpuWatch,
    wait: WaitFor,
) -> Option<WaitAnswer> {
    let (reply, answer) = oneshot::channel();
    let id = shared.mint_wait();
    let open = cpu.open(&shared, &sender, caller);
    sender.send(Message::Wait { id, caller, wait, reply }).ok()?;
    let guard = GiveUp { id, sender: Some(sender) };
    let Ok(Waited { ended, mut pending, repeated: _ }) = answer.await else {
        guard.answered();
        return None;
    };
    if let Some(open) = open {
        open.close().await;
    }
    let (ended, unread) = shared.envelopes(ended).await;
    // What cannot be read at the moment has not been told: it comes with another wait.
    match unread.is_empty() {
        true => guard.taken(),
        false => drop(guard),
    }
    pending.extend(unread);
    Some(WaitAnswer { ended, pending })
}

/// Writes a letter into a session, with the text as the record keeps it.
pub(crate) async fn write(
    shared: &Arc<Shared>,
    sender: &mpsc::UnboundedSender<Message>,
    from: Option<RunId>,
    to: RunId,
    text: Arc<str>,
) -> Result<(), Refusal> {
    let unkept = |error| {
        let message = format!("the message cannot be kept: {}", crate::agent::chain(&error));
        Refusal::invalid("text", message)
    };
    let payload = shared.task_for_record(&text).await.map_err(unkept)?;
    let gone = || Refusal::new(RefusalCode::CallerEnded, "the tree is over");
    let (reply, answer) = oneshot::channel();
    sender.send(Message::Letter { to, from, text, payload, reply }).map_err(|_| gone())?;
    answer.await.unwrap_or_else(|_| Err(gone()))
}

/// Tells the supervisor what became of an answer, and where it is dropped, that the caller no longer waits.
struct GiveUp {
    id: WaitId,
    sender: Option<mpsc::UnboundedSender<Message>>,
}

impl GiveUp {
    /// Ends the guard without a message: nothing more has to be said of the answer.
    fn answered(mut self) {
        self.sender = None;
    }

    /// Tells the supervisor that the caller has the answer.
    fn taken(mut self) {
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
