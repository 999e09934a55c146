//! The task that owns one tree: it takes messages, steps the machine and performs the effects.
//!
//! ```text
//!   handles, hosts ──Message──▶ ┌────────────┐ ──Start, Stop──▶ agent tasks
//!   agent tasks ────Ending────▶ │ supervisor │ ──events───────▶ store, then whoever follows
//!   store ──────────Commit────▶ └────────────┘ ──answers──────▶ those who asked, once durable
//! ```
//!
//! One task, one machine, no lock. Everything that tells somebody something waits in the outbox until the record of
//! it is durable. Two things do not wait: a request to stop, because it only ends things, and the start of a run whose
//! admission is durable already, because the slot that it takes was freed by a process that is gone.

mod message;
mod outbox;
mod perform;

use std::collections::HashMap;
use std::sync::Arc;

use offshoot_model::{AgentId, CancelledBy, Ending, Event, Reason, Refusal, RunId, Timestamp};
use offshoot_runtime::{RunEvent, RunHost, StopHandle, WaitFor};
use offshoot_store::StoreError;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::{JoinError, JoinSet};

use crate::agents::Asking;
use crate::host::AgentHost;
use crate::machine::{
    Effect, Input, Machine, NewWait, Reach, ReplyId, RunIndex, Session, Spawn, WaitId,
};
use crate::shared::Shared;

pub(crate) use message::{Ask, FanEvent, FanId, Message, Waited};
use outbox::Outbox;

/// How many messages are taken before the effects of all of them are recorded together. Large enough that a
/// thousand endings at once become few transactions, small enough that a stop is never far behind.
const BATCH: usize = 256;

/// How full the tree is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Runs that hold a slot.
    pub active: usize,
    /// Runs that stand in line for one.
    pub queued: usize,
    /// Runs that are not over, those that wait for children included.
    pub live: usize,
}

/// Where the tree as a whole stands, for whoever waits for its end.
#[derive(Clone, Debug)]
pub(crate) enum TreeState {
    /// Something lives.
    Live,
    /// Everything is over and recorded.
    Ended,
    /// The record broke. What runs was killed; what was not recorded is not told.
    Broken(Arc<StoreError>),
}

/// The task's own state.
pub(crate) struct Supervisor {
    shared: Arc<Shared>,
    machine: Machine,
    messages: mpsc::UnboundedReceiver<Message>,
    /// Handed to hosts of runs. The supervisor's own end keeps the channel open while anything lives.
    sender: mpsc::UnboundedSender<Message>,
    agents: JoinSet<()>,
    runs: HashMap<RunIndex, Entry>,
    replies: HashMap<ReplyId, Asked>,
    waits: HashMap<WaitId, oneshot::Sender<Waited>>,
    outbox: Outbox,
    events: broadcast::Sender<Arc<Event>>,
    state: watch::Sender<TreeState>,
    next_reply: u64,
    /// What the gauge of the spawner knows of this tree.
    active: u32,
}

/// A live run, seen from outside the machine.
#[derive(Default)]
struct Entry {
    /// What it takes to start it; taken when it starts.
    launch: Option<Box<Ask>>,
    /// The record that must be durable before it may start.
    admitted: u64,
    /// Whether it has its slot and waits in the outbox for the record of its admission.
    held: bool,
    stop: Option<StopHandle>,
    /// Whether it was asked to stop before it was started.
    stopped: bool,
    follower: Option<Follower>,
}

/// Somebody who hears how one piece of a request ends.
#[derive(Clone)]
struct Follower {
    fan: FanId,
    place: u32,
    told: mpsc::UnboundedSender<FanEvent>,
}

/// Somebody who waits for the answer to a request.
struct Asked {
    ask: Box<Ask>,
    to: Asker,
}

/// An answer on its way.
struct Answered {
    to: Asker,
    answer: Result<RunId, Box<Refusal>>,
}

enum Asker {
    One(oneshot::Sender<Result<RunId, Refusal>>),
    Fan(Follower),
}

impl Supervisor {
    /// A supervisor for a tree whose root was put into the machine by these effects.
    pub(crate) fn new(
        shared: Arc<Shared>,
        machine: Machine,
        messages: mpsc::UnboundedReceiver<Message>,
        sender: mpsc::UnboundedSender<Message>,
        events: broadcast::Sender<Arc<Event>>,
        state: watch::Sender<TreeState>,
    ) -> Self {
        Self {
            shared,
            machine,
            messages,
            sender,
            agents: JoinSet::new(),
            runs: HashMap::new(),
            replies: HashMap::new(),
            waits: HashMap::new(),
            outbox: Outbox::default(),
            events,
            state,
            next_reply: 0,
            active: 0,
        }
    }

    /// Lets a root that runs something itself be started like any other run.
    pub(crate) fn enter(
        &mut self,
        root: RunIndex,
        launch: Box<Ask>,
        answer: mpsc::UnboundedSender<FanEvent>,
    ) {
        let follower = Some(Follower { fan: FanId(0), place: 0, told: answer });
        let entry = Entry { launch: Some(launch), admitted: 1, follower, ..Entry::default() };
        self.runs.insert(root, entry);
    }

    /// Runs until nothing is alive and everything is told. `opening` are the effects of opening the root.
    pub(crate) async fn run(mut self, opening: Vec<Effect>) {
        let mut effects = opening;
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            while !effects.is_empty() {
                self.perform(&mut effects);
            }
            let active = self.machine.active();
            self.shared.active.change(std::mem::replace(&mut self.active, active), active);
            if self.machine.live() == 0 && self.outbox.is_empty() {
                self.state.send_if_modified(|state| match state {
                    TreeState::Live => {
                        *state = TreeState::Ended;
                        true
                    }
                    TreeState::Ended | TreeState::Broken(_) => false,
                });
                return;
            }
            let timer = self.machine.next_timer();
            if timer.is_some_and(|moment| moment <= self.shared.clock.now()) {
                // Not left to the arm below, which would never have its turn while messages keep coming.
                self.step(Input::Time, &mut effects);
                continue;
            }
            // Every arm is an event; there is no other way to wake up.
            tokio::select! {
                biased;
                committed = self.outbox.committed(), if !self.outbox.is_empty() => {
                    self.told_of_commit(committed, &mut effects);
                }
                Some(joined) = self.agents.join_next(), if !self.agents.is_empty() => {
                    note_end(joined);
                }
                _ = self.messages.recv_many(&mut batch, BATCH) => {
                    for message in batch.drain(..) {
                        self.take(message, &mut effects);
                    }
                }
                // What is due then is found at the top of the loop.
                () = at(&self.shared, timer), if timer.is_some() => {}
            }
        }
    }

    fn step(&mut self, input: Input, effects: &mut Vec<Effect>) {
        self.machine.step(self.shared.clock.now(), input, effects);
    }

    fn take(&mut self, message: Message, effects: &mut Vec<Effect>) {
        match message {
            Message::Spawn { ask, reply } => self.ask(ask, Asker::One(reply), effects),
            Message::Fan { id, caller, mut asks, follower } => {
                self.divide_budget(caller, &mut asks);
                for ask in asks {
                    let follower = Follower { fan: id, place: ask.place, told: follower.clone() };
                    self.ask(Box::new(ask), Asker::Fan(follower), effects);
                }
            }
            Message::CancelPieces { fan, by } => {
                let is_piece =
                    |entry: &Entry| entry.follower.as_ref().is_some_and(|it| it.fan == fan);
                let mut pieces: Vec<RunIndex> = self
                    .runs
                    .iter()
                    .filter(|(_, entry)| is_piece(entry))
                    .map(|(&run, _)| run)
                    .collect();
                pieces.sort_unstable();
                for run in pieces {
                    self.step(Input::Cancel { run, reach: Reach::Subtree, by }, effects);
                }
            }
            Message::Told { run, event } => {
                if let RunEvent::Progress(_) = event {
                    self.shared.progress.heard();
                }
                self.step(Input::Told { run, event }, effects);
            }
            Message::Finished { run, ending } => {
                self.step(Input::Finished { run, ending }, effects);
            }
            Message::Wait { id, caller, wait, reply } => {
                self.waits.insert(id, reply);
                let until = wait.timeout.map(|patience| self.shared.clock.now().plus(patience));
                let WaitFor { runs, mode, timeout: _ } = wait;
                self.step(Input::Wait(NewWait { id, caller, runs, mode, until }), effects);
            }
            Message::WaitDropped { id } => {
                self.waits.remove(&id);
                self.step(Input::WaitDropped { id }, effects);
            }
            Message::Cancel { run, reach, by } => {
                if let Some(run) = self.machine.find(run) {
                    self.step(Input::Cancel { run, reach, by }, effects);
                }
            }
            Message::StopAll { firm } => self.step(Input::StopAll { firm }, effects),
            Message::Pause(paused) => self.step(Input::Pause(paused), effects),
            Message::Merged { summary } => self.step(Input::Merged { summary }, effects),
            Message::Close { ending } => self.step(Input::Close { ending }, effects),
            Message::Abandon => {
                self.step(Input::StopAll { firm: false }, effects);
                self.abandon(effects);
            }
            Message::Find { run, reply } => {
                let index = self.machine.find(run);
                let found = index.and_then(|index| Some((index, self.machine.session(index)?)));
                let asking = found.map(|(index, session)| {
                    let Session { key, agent, depth, grant } = session;
                    Asking { index, key, agent, depth, grant }
                });
                // Whoever asked may have gone.
                let _ = reply.send(asking);
            }
            Message::Count { reply } => {
                let counts = Counts {
                    active: self.machine.active() as usize,
                    queued: self.machine.queued(),
                    live: self.machine.live(),
                };
                // Whoever asked may have gone; then nobody wants to know.
                let _ = reply.send(counts);
            }
        }
    }

    /// Gives each piece that asks for no amount of its own its part of what the caller has left. No step comes between
    /// this and their admission.
    fn divide_budget(&self, caller: RunIndex, asks: &mut [Ask]) {
        let now = self.shared.clock.now();
        let wanted = asks.iter_mut().map(|ask| (&mut ask.request, ask.origin, &*ask.facts));
        self.machine.divide(now, caller, wanted.collect());
    }

    /// Nobody holds the root any more.
    fn abandon(&mut self, effects: &mut Vec<Effect>) {
        let ending = Ending::of(Reason::Cancelled { by: CancelledBy::Operator });
        self.step(Input::Close { ending: Box::new(ending) }, effects);
    }

    fn ask(&mut self, ask: Box<Ask>, to: Asker, effects: &mut Vec<Effect>) {
        self.next_reply += 1;
        let reply = ReplyId(self.next_reply);
        let spawn = Spawn {
            caller: ask.caller,
            run: self.shared.clock.mint(),
            request: ask.request.clone(),
            task: ask.task.clone(),
            input: ask.input.clone(),
            origin: ask.origin,
            facts: Arc::clone(&ask.facts),
            reply,
        };
        self.replies.insert(reply, Asked { ask, to });
        self.step(Input::Spawn(Box::new(spawn)), effects);
    }

    /// The host of one run: it knows who speaks, so no argument has to say it.
    fn host(&self, run: RunIndex, agent: AgentId) -> RunHost {
        let id = self.machine.id(run);
        RunHost::new(AgentHost::new(Arc::clone(&self.shared), run, id, agent, self.sender.clone()))
    }
}

/// The task of a run is over; its ending came as a message. It catches the panics of what it runs, so that another one
/// is a defect here. One that was cancelled went down with the whole program.
fn note_end(joined: Result<(), JoinError>) {
    if let Err(error) = joined
        && error.is_panic()
    {
        std::panic::resume_unwind(error.into_panic());
    }
}

/// Ends when the clock shows this moment.
async fn at(shared: &Shared, moment: Option<Timestamp>) {
    let Some(moment) = moment else { return std::future::pending().await };
    let left = moment.since(shared.clock.now());
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where the machine's timers become real time"
    )]
    tokio::time::sleep(left).await;
}
