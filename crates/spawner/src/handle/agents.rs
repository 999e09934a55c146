//! The engine as running agents reach it from outside: by the run that asks, which the caller has verified.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{
    Admitted, AgentSummary, BudgetGrant, CancelledBy, ContextEntry, Envelope, Grant, Refusal,
    RootId, RunId, SpawnRequest, Timestamp, Tree, VariableRef, error_chain,
};
use offshoot_policy::{Terms, needs};
use offshoot_runtime::{WaitAnswer, WaitFor};
use offshoot_store::{DataFolder, Store, StoreError};
use tokio::sync::{broadcast, mpsc, oneshot};

use super::child::{ChildRequest, Sibling, needed, place_of};
use crate::announce;
use crate::blocking::blocking;
use crate::event_stream::{LiveEvents, News, subscribed};
use crate::kept_values::KeptValue;
use crate::machine::{NeededPiece, Reach, RequestVerdict};
use crate::message::hand_on::{Accepted, HandOn, allowed_agents};
use crate::message::link::Link;
use crate::message::{Asking, Children, Message, over};
use crate::model_request::{ModelCharge, ModelRequest, RefusedRequest, SeenQuota};
use crate::request::{Ask, Unresolved};
use crate::stored_values::recorded;
use crate::tree_context::TreeContext;

/// The longest report. It is a line for people, and stands in the record as it is.
const REPORT_BYTES: usize = 4096;

/// Requests of running agents to one tree. The caller is an argument here: hand this only to code that knows the caller
/// from a ticket and from the kernel. Cheap to clone, and it does not keep the tree alive.
#[derive(Clone, derive_more::Debug)]
#[debug("Agents({})", tree.root)]
pub struct Agents {
    pub(super) tree: Arc<TreeContext>,
    pub(super) sender: mpsc::WeakUnboundedSender<Message>,
    pub(super) follow: broadcast::WeakSender<News>,
}

/// Budget and agents that a session may still give to children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpawnAllowance {
    /// The rest of the session's budget, less what it has promised. Nothing where no budget bounds it.
    pub budget: BudgetGrant,
    /// The agents that it may name.
    pub agents: Vec<AgentSummary>,
}

/// Returns the limits that a request names, which admission may lower; none where it names none.
fn limits_of(request: &SpawnRequest) -> Option<Box<SpawnRequest>> {
    let &SpawnRequest { run_timeout_seconds, max_depth, budget, ref tools, .. } = request;
    let named =
        run_timeout_seconds.is_some() || max_depth.is_some() || budget.is_some() || tools.is_some();
    let limits = || SpawnRequest {
        run_timeout_seconds,
        max_depth,
        budget,
        tools: tools.clone(),
        ..SpawnRequest::default()
    };
    named.then(|| Box::new(limits()))
}

impl Agents {
    /// The record of the tree, and of others in the same store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.tree.store
    }

    /// Waits until agents said more than `after` times, or something was recorded after the event `seen`. Ends at once where the
    /// tree is over.
    pub async fn output_news(&self, after: u64, seen: u64) {
        // Followed before the record is asked, so that nothing happens in between.
        let Some(mut events) = self.follow.upgrade().map(|events| events.subscribe()) else {
            return;
        };
        let (store, root) = (Arc::clone(&self.tree.store), self.tree.root);
        let recorded = move || store.events(root, seen).next().is_some();
        if blocking(recorded).await {
            return;
        }
        tokio::select! {
            () = self.tree.outputs.said_after(after) => {}
            // A follower that was too slow, and the end of the tree, are news too.
            _ = events.recv() => {}
        }
    }

    /// Has what the agents said up to now written to its files, and answers how often they said something.
    pub async fn output_written(&self) -> u64 {
        let said = self.tree.outputs.said();
        self.tree.outputs.settle().await;
        said
    }

    /// Reads the envelope of a run of this tree from the record; none where the run has no end.
    pub fn envelope(&self, run: RunId) -> Result<Option<Envelope>, StoreError> {
        recorded(&**self.store(), self.root(), run)
    }

    /// Returns the folder that holds the folders of runs.
    pub fn folder(&self) -> &Arc<DataFolder> {
        &self.tree.folder
    }

    /// The values that a running session was given to read.
    pub fn context(&self, run: RunId) -> Arc<[ContextEntry]> {
        self.tree.contexts.lock().get(&run).cloned().unwrap_or_default()
    }

    /// Lets a session keep a value, which is in the store, under a name of its own. It is on record when this answers, so
    /// that a later supervisor of the tree finds it.
    ///
    /// # Errors
    ///
    /// `caller_ended` where the session is over.
    pub async fn keep(
        &self,
        session: RunId,
        name: &str,
        value: VariableRef,
    ) -> Result<KeptValue, Refusal> {
        self.ask(|reply| Message::Keep { run: session, name: name.into(), value, reply }).await?
    }

    /// Asks whether a request of a running agent to its model may leave. Answered once its reservation is on record; where the run has
    /// not enough left for it while others of its requests are open, once these are over. No answer comes where the tree is over. Each
    /// request that was granted is told to [`request_over`](Self::request_over), once; so is one whose answer is not waited for any more.
    pub fn request_asked(&self, asked: ModelRequest) -> oneshot::Receiver<RequestVerdict> {
        let (reply, verdict) = oneshot::channel();
        // Without a supervisor the sender is dropped, which is the answer.
        let _ = self.tell(Message::RequestAsked { asked: Box::new(asked), reply });
        verdict
    }

    /// Tells that a request to a model is over, and what it is charged. What else was held for it is free again.
    pub fn request_over(&self, charge: ModelCharge) {
        // Without a supervisor nothing is counted any more.
        let _ = self.tell(Message::RequestOver { charge: Box::new(charge) });
    }

    /// Tells that a request to a model was refused, and did not leave.
    pub fn request_refused(&self, refused: RefusedRequest) {
        // Without a supervisor nothing is recorded any more.
        let _ = self.tell(Message::RequestRefused { refused: Box::new(refused) });
    }

    /// Tells what the answer to a request of a run says of a quota of its account.
    pub fn quota_seen(&self, seen: SeenQuota) {
        // Without a supervisor nothing starts any more.
        let _ = self.tell(Message::WallSeen { seen: Box::new(seen) });
    }

    /// The value that a session keeps under this name.
    pub fn kept(&self, session: RunId, name: &str) -> Option<KeptValue> {
        self.tree.kept_values.lock().get(&session)?.get(name).copied()
    }

    /// All that a session keeps, by name.
    pub fn all_kept(&self, session: RunId) -> BTreeMap<Arc<str>, KeptValue> {
        self.tree.kept_values.lock().get(&session).cloned().unwrap_or_default()
    }

    /// Returns the time by the clock of this tree.
    pub fn now(&self) -> Timestamp {
        self.tree.clock.now()
    }

    /// Mints an id that is given once.
    pub fn mint(&self) -> RunId {
        self.tree.clock.mint()
    }

    /// The root of this tree.
    pub fn root(&self) -> RootId {
        self.tree.root
    }

    /// Returns the events of this tree from now on. Those before stand on record.
    pub fn live_events(&self) -> LiveEvents {
        LiveEvents(subscribed(&self.follow))
    }

    /// Looks the session of a run up.
    ///
    /// # Errors
    ///
    /// `caller_ended` where the run is over, or is none of this tree.
    pub async fn session(&self, run: RunId) -> Result<Asking, Refusal> {
        self.ask(|reply| Message::Find { run, reply }).await?.ok_or_else(over)
    }

    /// Budget and agents that a session may still give to children.
    ///
    /// # Errors
    ///
    /// As [`Agents::session`].
    pub async fn spawn_allowance(&self, run: RunId) -> Result<SpawnAllowance, Refusal> {
        let (budget, terms) = self.allowance(run).await?;
        Ok(SpawnAllowance { budget, agents: allowed_agents(&terms, &self.tree.config) })
    }

    /// The rest of a session's budget, and the terms for what is below it.
    pub(super) async fn allowance(&self, run: RunId) -> Result<(BudgetGrant, Arc<Terms>), Refusal> {
        self.ask(|reply| Message::Allowance { run, reply }).await?.ok_or_else(over)
    }

    /// A session that hands a task on.
    pub(super) fn hand_on(&self, caller: RunId, choose_only: bool) -> Result<HandOn, Refusal> {
        Ok(HandOn { link: self.link()?, caller, choose_only })
    }

    /// Asks for a child.
    pub async fn spawn(
        &self,
        caller: RunId,
        child: impl Into<ChildRequest>,
    ) -> Result<Accepted, Refusal> {
        let asking = self.session(caller).await?;
        let link = self.link()?;
        let ask = self.resolve(caller, &asking, child.into()).await?;
        asking.settle_up().await;
        let limits = limits_of(&ask.request);
        let run = link.spawn(ask).await?;
        self.accepted(caller, &asking.grant, run, limits).await
    }

    /// Asks for several children in one step: those that name no budget share what the caller has left, less what it
    /// keeps. One answer for each, in this order; a refusal undoes nothing, but stops what needs the child.
    ///
    /// # Errors
    ///
    /// `caller_ended` where the session is over, `invalid_request` where the children need each other in no order.
    pub async fn spawn_many<C: Into<Sibling>>(
        &self,
        caller: RunId,
        children: Vec<C>,
    ) -> Result<Vec<Result<Accepted, Refusal>>, Refusal> {
        let children: Vec<Sibling> = children.into_iter().map(Into::into).collect();
        let needed = needed(&children)?;
        let asking = self.session(caller).await?;
        let (mut asks, mut answers) = (Vec::new(), Vec::new());
        for ((place, sibling), needs) in (0..).zip(children).zip(&needed) {
            let Sibling { child, needs: names, on_need_failed, .. } = sibling;
            let resolved = match child {
                Ok(child) => self.resolve(caller, &asking, child).await,
                Err(refusal) => Err(refusal),
            };
            answers.push(match resolved {
                Ok(ask) => {
                    let (reply, answer) = oneshot::channel();
                    let limits = limits_of(&ask.request);
                    let need = |(name, &place): (String, &usize)| NeededPiece {
                        name: name.into(),
                        place: place_of(place),
                    };
                    let needs = names.into_iter().zip(needs).map(need).collect();
                    asks.push((Ask { place, needs, on_need_failed, ..ask }, reply));
                    Ok((answer, limits))
                }
                Err(refusal) => Err(refusal),
            });
        }
        let order = needs::order(&needed).expect("the needs were checked");
        let rank: HashMap<u32, usize> = order.into_iter().map(place_of).zip(0..).collect();
        asks.sort_by_key(|(ask, _)| rank[&ask.place]);
        asking.settle_up().await;
        self.tell(Message::SpawnMany { caller: asking.index, asks })?;
        let mut accepted = Vec::with_capacity(answers.len());
        for answer in answers {
            accepted.push(match answer {
                Ok((answer, limits)) => match answer.await.unwrap_or_else(|_| Err(over())) {
                    Ok(run) => self.accepted(caller, &asking.grant, run, limits).await,
                    Err(refusal) => Err(refusal),
                },
                Err(refusal) => Err(refusal),
            });
        }
        Ok(accepted)
    }

    /// Fills in what a request leaves open.
    async fn resolve(
        &self,
        caller: RunId,
        asking: &Asking,
        child: ChildRequest,
    ) -> Result<Ask, Refusal> {
        let ChildRequest { request, folder, input } = child;
        let Asking { index, agent, .. } = asking;
        let asked = Unresolved::of_session(&self.tree, caller, *index, agent, request, folder);
        Ok(Ask { input, ..asked.resolve(&self.tree).await? })
    }

    /// The answer for a child that was admitted, with the limits of its request that were lowered.
    async fn accepted(
        &self,
        caller: RunId,
        above: &Grant,
        run: RunId,
        limits: Option<Box<SpawnRequest>>,
    ) -> Result<Accepted, Refusal> {
        let admitted = self.tree.store.admitted(self.tree.root, run).ok().flatten();
        let Admitted { key, agent, grant, .. } = admitted.ok_or_else(over)?;
        let mut lowered = Vec::new();
        if let Some(request) = limits
            && let Some((_, terms)) =
                self.ask(|reply| Message::Allowance { run: caller, reply }).await?
        {
            lowered = offshoot_policy::lowered(&self.tree.config, &terms, &agent, &request, &grant);
        }
        Ok(Accepted { run, key, lowered, changed: grant.changes_from(above) })
    }

    /// The runs that a wait is for which names none: the children of which the caller has not heard yet; all, where it has
    /// heard of each.
    ///
    /// # Errors
    ///
    /// `caller_ended` where the session is over.
    pub async fn unnamed(&self, caller: RunId) -> Result<Vec<RunId>, Refusal> {
        self.children_of(caller, Children::Unnamed).await
    }

    /// The children of a session so far, in the order in which it asked for them. Those of an earlier attempt of which this one
    /// knows nothing are not among them.
    ///
    /// # Errors
    ///
    /// `caller_ended` where the session is over.
    pub async fn children(&self, caller: RunId) -> Result<Vec<RunId>, Refusal> {
        self.children_of(caller, Children::All).await
    }

    /// The same without the runs that merges have asked for, whose answers are made of those of the others.
    ///
    /// # Errors
    ///
    /// `caller_ended` where the session is over, and those of the record.
    pub async fn children_with_results(&self, caller: RunId) -> Result<Vec<RunId>, Refusal> {
        let mut children = self.children(caller).await?;
        let (store, root) = (Arc::clone(self.store()), self.root());
        let read = move || {
            let merges = |run| Ok(store.admitted(root, run)?.and_then(|it| it.merges()).is_some());
            let asked: Result<Vec<bool>, StoreError> =
                children.iter().copied().map(merges).collect();
            let mut asked = asked?.into_iter();
            children.retain(|_| asked.next() != Some(true));
            Ok(children)
        };
        blocking(read).await.map_err(|error| unread(&error))
    }

    async fn children_of(&self, caller: RunId, which: Children) -> Result<Vec<RunId>, Refusal> {
        self.ask(|reply| Message::Children { run: caller, which, reply }).await?.ok_or_else(over)
    }

    /// Waits for runs below the caller, whose slot is lent meanwhile. Dropping the future gives the wait up.
    pub async fn wait(&self, caller: RunId, wait: WaitFor) -> Result<WaitAnswer, Refusal> {
        let asking = self.session(caller).await?;
        self.link()?.wait(asking.index, asking.cpu, wait).await.ok_or_else(over)
    }

    /// Notes how it goes, for the parent and for people. The note stays on record; of a run that makes many notes in a
    /// short time, the further ones are shown and not kept.
    ///
    /// # Errors
    ///
    /// `caller_ended` where the session is over, `invalid_request` where the text is longer than 4,096 bytes.
    pub async fn report(&self, caller: RunId, text: &str) -> Result<(), Refusal> {
        if text.len() > REPORT_BYTES {
            let length = text.len();
            let message =
                format!("a report has {REPORT_BYTES} bytes at most, and this one {length}");
            return Err(Refusal::invalid("text", message));
        }
        self.ask(|reply| Message::Report { run: caller, text: text.into(), reply }).await?
    }

    /// Writes into the session of a run below the caller. The letter is on record and handed over when this answers.
    ///
    /// # Errors
    ///
    /// Fails if the run is not below the caller, is over, or reads no letters.
    pub async fn send(&self, caller: RunId, run: RunId, text: &str) -> Result<(), Refusal> {
        let asking = self.session(caller).await?;
        self.must_be_below(caller, run)?;
        let letter = announce::letter(Some(&asking.key), text);
        self.link()?.write(Some(caller), run, letter).await
    }

    /// Writes into the session of any run of this tree, as the operator.
    ///
    /// # Errors
    ///
    /// Fails if the run is over, or reads no letters.
    pub async fn send_as_operator(&self, run: RunId, text: &str) -> Result<(), Refusal> {
        self.link()?.write(None, run, announce::letter(None, text)).await
    }

    /// Cancels a run below the caller.
    pub async fn cancel(&self, caller: RunId, run: RunId, only: bool) -> Result<(), Refusal> {
        self.stop(caller, run, Reach::of(only), CancelledBy::Parent).await
    }

    /// Cancels a run below the caller, whose answer stands without it.
    pub async fn spare(&self, caller: RunId, run: RunId) -> Result<(), Refusal> {
        self.stop(caller, run, Reach::Subtree, CancelledBy::EarlyAnswer).await
    }

    /// Cancels any run of this tree, as the operator.
    pub fn cancel_as_operator(&self, run: RunId, only: bool) -> Result<(), Refusal> {
        self.tell(Message::Cancel { run, reach: Reach::of(only), by: CancelledBy::Operator })
    }

    /// Stops admission and starts in this tree, or lets them go on; what runs goes on either way. For the operator. A
    /// supervisor that takes the tree over begins unpaused. It is on record when this answers.
    pub async fn pause_as_operator(&self, paused: bool) -> Result<(), Refusal> {
        self.ask(|reply| Message::Pause { paused, reply }).await?
    }

    /// Returns the time since the last sign of life of each run that holds a slot.
    pub async fn silences(&self) -> Result<Vec<(RunId, Duration)>, Refusal> {
        let now = self.now();
        let signs = self.ask(|reply| Message::Signs { reply }).await?;
        Ok(signs.into_iter().map(|(run, at)| (run, now.since(at))).collect())
    }

    /// Adds to the budget of a run, and to every budget above it, so that no other run has less for it. For the operator. It is
    /// on record when this answers.
    ///
    /// # Errors
    ///
    /// Fails if the run is over or is being stopped, has no budget in a unit, or nothing would be added.
    pub async fn raise_as_operator(&self, run: RunId, more: BudgetGrant) -> Result<(), Refusal> {
        self.ask(|reply| Message::Raise { run, more, reply }).await?
    }

    async fn stop(
        &self,
        caller: RunId,
        run: RunId,
        reach: Reach,
        by: CancelledBy,
    ) -> Result<(), Refusal> {
        self.session(caller).await?;
        self.must_be_below(caller, run)?;
        self.tell(Message::Cancel { run, reach, by })
    }

    /// Returns true if the record has the run below the session.
    pub fn is_below(&self, run: RunId, session: RunId) -> Result<bool, StoreError> {
        let mut at = self.tree.store.admitted(self.tree.root, run)?;
        while let Some(parent) = at.and_then(|admitted| admitted.parent) {
            if parent == session {
                return Ok(true);
            }
            at = self.tree.store.admitted(self.tree.root, parent)?;
        }
        Ok(false)
    }

    /// All runs of this tree, as they stand on record. Only what is new there since the last time is read.
    pub fn tree(&self) -> Result<Arc<Tree>, StoreError> {
        self.tree.known.tree(&*self.tree.store, self.tree.root)
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

    fn must_be_below(&self, caller: RunId, run: RunId) -> Result<(), Refusal> {
        if self.is_below(run, caller).map_err(|error| unread(&error))? {
            return Ok(());
        }
        Err(Refusal::invalid("run", format!("the run {run} is not below this session"))
            .with_hint("name a run that this session has asked for, or one below such a run"))
    }

    /// Sends a message that is answered, and waits for the answer.
    pub(super) async fn ask<A>(
        &self,
        message: impl FnOnce(oneshot::Sender<A>) -> Message,
    ) -> Result<A, Refusal> {
        self.link()?.ask(message).await
    }

    fn tell(&self, message: Message) -> Result<(), Refusal> {
        self.link()?.tell(message)
    }

    /// The way to the supervisor, where the tree is not over.
    fn link(&self) -> Result<Link, Refusal> {
        let sender = self.sender.upgrade().ok_or_else(over)?;
        Ok(Link { tree: Arc::clone(&self.tree), sender })
    }
}

fn unread(error: &StoreError) -> Refusal {
    Refusal::invalid("run", format!("the record cannot be read: {}", error_chain(error)))
}
