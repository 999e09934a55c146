//! The host of a run: the side of the engine that its runtime talks to. The caller is known from the host, not from the
//! request.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use offshoot_model::{AgentId, Delegated, JsonText, Refusal, RunId, SpawnRequest, Stream};
use offshoot_runtime::{Host, Output, Ruling, RunEvent, ToolOffer, WaitAnswer, WaitFor};
use offshoot_store::AttemptOutput;
use tokio::sync::{Semaphore, oneshot};

use super::{Form, keep};
use crate::announce;
use crate::attempt_watch::AttemptWatch;
use crate::machine::{Input, RunIndex, WaitId};
use crate::message::hand_on::{Accepted, HandOn};
use crate::message::link::{GiveUp, Link, tree_over};
use crate::message::{Message, Waited, over};
use crate::request::Unresolved;

/// The host of one run.
pub(crate) struct AgentHost {
    pub(crate) link: Link,
    pub(crate) run: RunIndex,
    /// The number of the attempt whose host this is.
    pub(crate) attempt: u32,
    pub(crate) id: RunId,
    pub(crate) agent: AgentId,
    /// The number of bytes of a child's result that the run is told.
    pub(crate) inline_bytes: u64,
    pub(crate) watch: AttemptWatch,
    /// The keeper of what it says; none where nothing is kept.
    pub(crate) output: Option<AttemptOutput>,
    /// The form that its answer must have.
    pub(crate) form: Option<Arc<Form>>,
    /// Places for the tools that it uses on their way to the supervisor. No run takes those of another one.
    pub(crate) tools: Arc<Semaphore>,
}

/// More uses of tools by one run than this, on their way to the supervisor at once, are more than a record takes at once.
pub(crate) const TOOL_USES: usize = 128;

impl AgentHost {
    /// The run, where it hands a task on.
    fn hand_on(&self, choose_only: bool) -> HandOn {
        HandOn { link: self.link.clone(), caller: self.id, choose_only }
    }
}

#[deny(clippy::missing_trait_methods, reason = "a run may ask for all that there is")]
impl Host for AgentHost {
    fn sign(&self) {
        self.watch.mark(self.link.tree.clock.now());
    }

    fn said(&self, stream: Stream, bytes: &[u8]) {
        if let Some(output) = &self.output {
            output.said(self.link.tree.clock.now(), stream, bytes);
        }
    }

    fn hear(&self, event: RunEvent) {
        let permit = match event {
            RunEvent::Progress(_)
            | RunEvent::ToolUsed(_)
            | RunEvent::ModelChanged(_)
            | RunEvent::QuotaLeft { .. }
            | RunEvent::BacksOff { .. } => {
                let is_line = !matches!(event, RunEvent::ToolUsed(_) | RunEvent::ModelChanged(_));
                let places = if is_line { &self.link.tree.progress } else { &self.tools };
                match Arc::clone(places).try_acquire_owned() {
                    Ok(permit) => Some(permit),
                    // The line is dropped, and still counts as a sign of life.
                    Err(_) => return self.sign(),
                }
            }
            RunEvent::Started(_)
            | RunEvent::Used { .. }
            | RunEvent::Answers
            | RunEvent::StrayEnded { .. } => None,
        };
        if let (RunEvent::Started(process), Some(ticket_issuer)) =
            (&event, &self.link.tree.ticket_issuer)
        {
            ticket_issuer.started(self.id, *process);
        }
        // The supervisor outlives its runs; only what a run tells after its end has no receiver.
        let Self { run, attempt, .. } = *self;
        let _ = self.link.sender.send(Message::RunEvent { run, attempt, event, permit });
    }

    fn memory_short(&self) -> BoxFuture<'static, ()> {
        let mut memory_short = self.link.tree.memory_short.subscribe();
        async move {
            if memory_short.wait_for(|short| *short).await.is_err() {
                // The tree is over.
                std::future::pending().await
            }
        }
        .boxed()
    }

    fn spawn(&self, request: SpawnRequest) -> BoxFuture<'static, Result<RunId, Refusal>> {
        let (link, caller, id, agent) = (self.link.clone(), self.run, self.id, self.agent.clone());
        async move {
            let asked = Unresolved::of_session(&link.tree, id, caller, &agent, request, None);
            link.spawn(asked.resolve(&link.tree).await?).await
        }
        .boxed()
    }

    fn delegate(
        &self,
        request: SpawnRequest,
        choose_only: bool,
    ) -> BoxFuture<'static, Result<Delegated, Refusal>> {
        let hand_on = self.hand_on(choose_only);
        let (caller, agent) = (self.run, self.agent.clone());
        async move {
            let HandOn { link, caller: id, .. } = &hand_on;
            let tree = &link.tree;
            let spawn = async |request: SpawnRequest| {
                let asked = Unresolved::of_session(tree, *id, caller, &agent, request, None);
                let run = link.spawn(asked.resolve(tree).await?).await?;
                let admitted = tree.store.admitted(tree.root, run).ok().flatten();
                let key = admitted.ok_or_else(over)?.key;
                Ok(Accepted { run, key, lowered: Vec::new(), changed: Vec::new() })
            };
            hand_on.delegate(request, spawn).await
        }
        .boxed()
    }

    fn observed(&self, observation: u32, success: bool) -> BoxFuture<'static, Result<(), Refusal>> {
        let hand_on = self.hand_on(false);
        async move { hand_on.observed(observation, success).await }.boxed()
    }

    fn wait(&self, wait: WaitFor) -> BoxFuture<'static, Result<WaitAnswer, Refusal>> {
        let answer = self.link.clone().wait(self.run, self.watch.clone(), wait);
        async { answer.await.ok_or_else(tree_over) }.boxed()
    }

    fn goes_on(&self) -> BoxFuture<'static, bool> {
        let (reply, answer) = oneshot::channel();
        let sent = self.link.sender.send(Message::GoesOn { run: self.run, reply });
        async move { sent.is_ok() && answer.await.unwrap_or(false) }.boxed()
    }

    fn tools(&self) -> BoxFuture<'static, Vec<ToolOffer>> {
        match &self.link.tree.ticket_issuer {
            Some(issuer) => issuer.tools(self.id),
            None => async { Vec::new() }.boxed(),
        }
    }

    fn call_tool(&self, name: &str, arguments: &str) -> BoxFuture<'static, JsonText> {
        let none = Refusal::invalid("name", format!("there is no tool `{name}`"));
        let issuer = self.link.tree.ticket_issuer.as_ref();
        let called = issuer.map(|issuer| issuer.call_tool(self.id, name, arguments));
        async move {
            let answer = match called {
                Some(called) => called.await,
                None => None,
            };
            answer.unwrap_or_else(|| JsonText::of(&none).expect("a refusal is plain data"))
        }
        .boxed()
    }

    fn turn_ended(
        &self,
        answer: Option<Arc<str>>,
        letters_taken: u32,
    ) -> BoxFuture<'static, Ruling> {
        let (link, form) = (self.link.clone(), self.form.clone());
        let (run, limit, cpu) = (self.run, self.inline_bytes, self.watch.clone());
        async move {
            let tree = &link.tree;
            let repair = match &form {
                Some(form) => form.repair(answer.as_ref()).await,
                None => None,
            };
            // An answer that cannot be kept is missing from the history; the turn is over all the same.
            let answer = match answer {
                Some(answer) => keep(tree, Output::Text(answer)).await.unwrap_or_default(),
                None => None,
            };
            let (reply, ruling) = oneshot::channel();
            let id = WaitId(tree.mint());
            let again = repair.is_some();
            let message = Message::TurnEnded { id, run, answer, letters_taken, again, reply };
            let open = cpu.open(&tree.clock, link.busy(run));
            if link.tell(message).is_err() {
                return Ruling::End;
            }
            let guard = GiveUp::new(id, link.sender.clone());
            let waited = ruling.await;
            if let Some(open) = open {
                open.close().await;
            }
            match waited {
                Ok(Waited { ended, .. }) if ended.is_empty() => {
                    guard.answered();
                    if let (Some(form), true) = (form, again) {
                        form.used_repair();
                    }
                    Ruling::Go(repair)
                }
                Ok(Waited { ended, repeated, pending }) => {
                    let mut announced = tree.announced(ended, limit).await;
                    for one in &mut announced.announced {
                        one.repeated = repeated.contains(&one.envelope.run_id);
                    }
                    let children = announced.not_brought();
                    if !children.is_empty() {
                        // A supervisor that is gone keeps no results.
                        let _ = link.tell(Message::Input(Input::NotBrought { run, children }));
                    }
                    let mark = tree.clock.mint().as_uuid().simple().to_string();
                    let text = announce::results(&announced, pending.len(), &mark[20..]);
                    guard.taken();
                    Ruling::Go(Some(text))
                }
                Err(_) => {
                    guard.answered();
                    Ruling::End
                }
            }
        }
        .boxed()
    }
}
