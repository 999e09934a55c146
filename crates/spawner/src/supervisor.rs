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

mod alarm;
mod message;
mod outbox;
mod perform;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use offshoot_model::{AgentId, CancelledBy, Ending, Envelope, Reason, Refusal, RunId, VariableRef};
use offshoot_runtime::{LetterBox, RunEvent, RunHost, StopHandle, WaitFor};
use offshoot_store::{RootLock, StoreError};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::{JoinError, JoinSet};

use crate::agents::{Asking, over};
use crate::follow::News;
use crate::host::AgentHost;
use crate::machine::{
    Effect, Input, Letter, Machine, NewWait, Reach, ReplyId, RunIndex, Session, Spawn, TurnEnd,
    WaitId,
};
use crate::mind::Mind;
use crate::names::Kept;
use crate::shared::Shared;

use alarm::Alarm;
pub(crate) use message::{Ask, FanEvent, FanId, Message, Prepared, SpawnReply, Waited};
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
    /// Folders that are being removed.
    removals: JoinSet<Vec<Removed>>,
    runs: Entries,
    /// In the order in which they were asked, which is the order in which the machine answers.
    asked: VecDeque<Asked>,
    waits: HashMap<WaitId, oneshot::Sender<Waited>>,
    /// Letters that are being recorded, in the order in which they will be handed over.
    letters: VecDeque<Written>,
    /// Names that are being recorded, in the order in which they will hold.
    naming: VecDeque<Naming>,
    /// Operators who have raised a budget, in the order in which that is recorded.
    raises: VecDeque<oneshot::Sender<Result<(), Refusal>>>,
    /// Pieces that stand in the record of an earlier supervisor, by their place, until their owner asks for them.
    recorded: HashMap<u32, Recorded>,
    outbox: Outbox,
    events: broadcast::Sender<News>,
    state: watch::Sender<TreeState>,
    next_reply: u64,
    /// Effects that are being performed. Empty between two calls; kept for its room.
    performing: Vec<Effect>,
    /// What the gauge of the spawner knows of this tree.
    active: u32,
}

/// The live runs by their place in the tree.
#[derive(Default)]
struct Entries(Vec<Option<Box<Entry>>>);

/// A live run, seen from outside the machine.
#[derive(Default)]
struct Entry {
    /// What it takes to start it; taken when it starts.
    launch: Option<Box<Prepared>>,
    /// The record that must be durable before it may start.
    admitted: u64,
    /// Whether it has its slot and waits in the outbox for the record of its admission.
    held: bool,
    stop: Option<StopHandle>,
    /// Whether it was asked to stop before it was started.
    stopped: bool,
    follower: Option<Follower>,
    post: Post,
    /// What was chosen for it, for those below it; most runs have none.
    mind: Option<Arc<Mind>>,
}

/// Where letters to a run are put.
enum Post {
    /// It has not started.
    Held(Vec<Arc<str>>),
    /// It reads them as it likes.
    Open(LetterBox),
}

/// A piece that stands in the record.
pub(crate) enum Recorded {
    /// It is over.
    Ended(Box<Envelope>),
    /// It is not, and its owner has to say what it takes to run it.
    Lives(RunIndex),
}

/// The run whose folder was to be removed, and why it is still there.
type Removed = (RunId, Option<Arc<str>>);

/// A letter on its way.
struct Written {
    text: Arc<str>,
    reply: oneshot::Sender<Result<(), Refusal>>,
}

/// A name on its way.
struct Naming {
    run: RunId,
    name: Arc<str>,
    value: VariableRef,
    reply: oneshot::Sender<Result<Kept, Refusal>>,
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
    reply: ReplyId,
    prepared: Box<Prepared>,
    to: Asker,
}

/// An answer on its way.
struct Answered {
    to: Asker,
    answer: Result<RunId, Box<Refusal>>,
}

enum Asker {
    One(SpawnReply),
    Fan(Follower),
}

impl Supervisor {
    /// A supervisor for a tree whose root was put into the machine by these effects.
    pub(crate) fn new(
        shared: Arc<Shared>,
        machine: Machine,
        messages: mpsc::UnboundedReceiver<Message>,
        sender: mpsc::UnboundedSender<Message>,
        events: broadcast::Sender<News>,
        state: watch::Sender<TreeState>,
    ) -> Self {
        Self {
            shared,
            machine,
            messages,
            sender,
            agents: JoinSet::new(),
            removals: JoinSet::new(),
            runs: Entries::default(),
            asked: VecDeque::new(),
            waits: HashMap::new(),
            letters: VecDeque::new(),
            naming: VecDeque::new(),
            raises: VecDeque::new(),
            recorded: HashMap::new(),
            outbox: Outbox::default(),
            events,
            state,
            next_reply: 0,
            performing: Vec::new(),
            active: 0,
        }
    }

    /// Lets a run that stands in line already be started like any other. The owner of a root hears its answer.
    pub(crate) fn enter(
        &mut self,
        run: RunIndex,
        launch: Box<Prepared>,
        answer: Option<mpsc::UnboundedSender<FanEvent>>,
    ) {
        let follower = answer.map(|told| Follower { fan: FanId(0), place: 0, told });
        let entry = Entry::of(launch, 1, follower);
        self.runs.insert(run, entry);
    }

    /// Keeps what the record says of pieces until their owner asks for them.
    pub(crate) fn remember(&mut self, recorded: HashMap<u32, Recorded>) {
        self.recorded = recorded;
    }

    /// Runs until nothing is alive and everything is told. `opening` are the effects of opening the root.
    pub(crate) async fn run(mut self, opening: Vec<Effect>, lock: RootLock) {
        let mut effects = opening;
        let mut batch = Vec::with_capacity(BATCH);
        let mut alarm = Alarm::default();
        loop {
            while !effects.is_empty() {
                self.perform(&mut effects);
            }
            let active = self.machine.active();
            self.shared.active.change(std::mem::replace(&mut self.active, active), active);
            if self.machine.live() == 0 && self.outbox.is_empty() {
                if let Some(removed) = self.removals.join_next().await {
                    // What it says may have to be recorded first.
                    self.removed(removed, &mut effects);
                    continue;
                }
                // Whoever hears that the tree is over may take it over at once.
                drop(lock);
                self.state.send_if_modified(|state| match state {
                    TreeState::Live => {
                        *state = TreeState::Ended;
                        true
                    }
                    TreeState::Ended | TreeState::Broken(_) => false,
                });
                return;
            }
            // Not an arm below: each has said that it is over, and the task that is left of it wakes nobody.
            while self.agents.try_join_next().is_some() {}
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
                _ = self.messages.recv_many(&mut batch, BATCH) => {
                    for message in batch.drain(..) {
                        self.take(message, &mut effects);
                    }
                }
                Some(removed) = self.removals.join_next(), if !self.removals.is_empty() => {
                    self.removed(removed, &mut effects);
                }
                // What is due then is found at the top of the loop.
                () = alarm.rings(timer, &self.shared), if timer.is_some() => {}
            }
        }
    }

    fn removed(&mut self, removed: Result<Vec<Removed>, JoinError>, effects: &mut Vec<Effect>) {
        for (run, error) in removed.expect("to remove a folder does not panic") {
            self.step(Input::Removed { run, error }, effects);
        }
    }

    fn step(&mut self, input: Input, effects: &mut Vec<Effect>) {
        self.machine.step(self.shared.clock.now(), input, effects);
    }

    fn take(&mut self, message: Message, effects: &mut Vec<Effect>) {
        match message {
            Message::Spawn { ask, reply } => self.ask(*ask, Asker::One(reply), effects),
            Message::SpawnMany { caller, mut asks } => {
                self.divide_budget(caller, asks.iter_mut().map(|(ask, _)| ask));
                for (ask, reply) in asks {
                    self.ask(ask, Asker::One(reply), effects);
                }
            }
            Message::Fan { id, caller, mut asks, follower } => {
                asks = self.adopt(id, asks, &follower, effects);
                self.divide_budget(caller, asks.iter_mut());
                for (count, ask) in asks.into_iter().enumerate() {
                    let follower = Follower { fan: id, place: ask.place, told: follower.clone() };
                    self.ask(ask, Asker::Fan(follower), effects);
                    if count % BATCH == BATCH - 1 {
                        // So that what is to be recorded of a hundred thousand is not in memory at once.
                        self.perform(effects);
                    }
                }
            }
            Message::CancelPieces { fan, by } => {
                let is_piece =
                    |entry: &Entry| entry.follower.as_ref().is_some_and(|it| it.fan == fan);
                for run in self.runs.which(is_piece) {
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
            Message::TurnEnded { id, run, answer, letters_taken, reply } => {
                self.waits.insert(id, reply);
                let end = TurnEnd { run, id, answer, letters_taken };
                self.step(Input::TurnEnded(end), effects);
            }
            Message::Letter { to, from, text, payload, reply } => {
                let to = self.machine.find(to).ok_or_else(|| unknown(to));
                match to.and_then(|to| self.machine.may_write(to).map(|()| to)) {
                    Ok(to) => {
                        self.letters.push_back(Written { text, reply });
                        let letter = Letter { to, from, text: payload };
                        self.step(Input::Letter(letter), effects);
                    }
                    // Whoever asked may have gone.
                    Err(refusal) => drop(reply.send(Err(refusal))),
                }
            }
            Message::Keep { run: id, name, value, reply } => {
                let live = self.machine.find(id).filter(|run| self.machine.session(*run).is_some());
                match live {
                    Some(run) => {
                        let naming = Naming { run: id, name: Arc::clone(&name), value, reply };
                        self.naming.push_back(naming);
                        self.step(Input::Keep { run, name, value }, effects);
                    }
                    // Whoever asked may have gone.
                    None => drop(reply.send(Err(over()))),
                }
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
            Message::Raise { run, more, reply } => {
                let run = self.machine.find(run).ok_or_else(|| unknown(run));
                match run.and_then(|run| self.machine.may_raise(run, more).map(|()| run)) {
                    Ok(run) => {
                        self.raises.push_back(reply);
                        self.step(Input::Raise { run, more }, effects);
                    }
                    // Whoever asked may have gone.
                    Err(refusal) => drop(reply.send(Err(refusal))),
                }
            }
            Message::Pause(paused) => self.step(Input::Pause(paused), effects),
            Message::Merged { summary } => self.step(Input::Merged { summary }, effects),
            Message::Close { ending } => self.step(Input::Close { ending }, effects),
            Message::Halt { error } => self.broken(error, effects),
            Message::Abandon => {
                self.step(Input::StopAll { firm: false }, effects);
                self.abandon(effects);
            }
            Message::Find { run, reply } => {
                let index = self.machine.find(run);
                let found = index.and_then(|index| Some((index, self.machine.session(index)?)));
                let asking = found.map(|(index, session)| {
                    let Session { key, agent, depth, grant, inline_bytes } = session;
                    Asking { index, key, agent, depth, grant, inline_bytes }
                });
                // Whoever asked may have gone.
                let _ = reply.send(asking);
            }
            Message::Room { run, reply } => {
                let room = self.machine.find(run).and_then(|index| self.machine.room(index));
                // Whoever asked may have gone.
                let _ = reply.send(room);
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

    /// Of pieces that stand in the record, tells what came of them or goes on with them. Answers the others.
    fn adopt(
        &mut self,
        fan: FanId,
        asks: Vec<Ask>,
        told: &mpsc::UnboundedSender<FanEvent>,
        effects: &mut Vec<Effect>,
    ) -> Vec<Ask> {
        if self.recorded.is_empty() {
            return asks;
        }
        let mut others = Vec::new();
        for ask in asks {
            let place = ask.place;
            match ask.number.and_then(|number| self.recorded.remove(&number)) {
                None => others.push(ask),
                Some(Recorded::Ended(envelope)) => {
                    // Whoever asked may have gone.
                    let _ = told.send(FanEvent::Ended { place, envelope });
                }
                Some(Recorded::Lives(run)) => {
                    let follower = Some(Follower { fan, place, told: told.clone() });
                    let entry = Entry::of(ask.prepared(), 1, follower);
                    self.runs.insert(run, entry);
                    self.step(Input::Claimed { run }, effects);
                }
            }
        }
        others
    }

    /// Gives each piece that asks for no amount of its own its part of what the caller has left. No step comes between
    /// this and their admission.
    fn divide_budget<'a>(&self, caller: RunIndex, asks: impl Iterator<Item = &'a mut Ask>) {
        let now = self.shared.clock.now();
        let wanted = asks.map(|ask| (&mut ask.request, ask.origin, &*ask.facts));
        self.machine.divide(now, caller, wanted.collect());
    }

    /// Nobody holds the root any more.
    fn abandon(&mut self, effects: &mut Vec<Effect>) {
        let ending = Ending::of(Reason::Cancelled { by: CancelledBy::Operator });
        self.step(Input::Close { ending: Box::new(ending) }, effects);
    }

    fn ask(&mut self, mut ask: Ask, to: Asker, effects: &mut Vec<Effect>) {
        if let Some(above) = self.runs.get(ask.caller).and_then(|entry| entry.mind.as_ref()) {
            above.hand_down(ask.runtime.name(), &mut ask.request);
        }
        self.next_reply += 1;
        let reply = ReplyId(self.next_reply);
        self.asked.push_back(Asked { reply, prepared: ask.prepared(), to });
        let Ask { caller, request, task, input, origin, facts, number, work, .. } = ask;
        let tree = &self.shared.work.working_folder;
        let folder = (work.working_folder != *tree).then(|| Arc::clone(&work.working_folder));
        let run = self.shared.clock.mint();
        let place = number;
        let spawn =
            Spawn { caller, run, request, task, input, place, folder, origin, facts, reply };
        self.step(Input::Spawn(Box::new(spawn)), effects);
    }

    /// The host of one run: it knows who speaks, so no argument has to say it.
    fn host(&self, run: RunIndex, agent: AgentId, inline_bytes: u64) -> RunHost {
        let shared = Arc::clone(&self.shared);
        let sender = self.sender.clone();
        let id = self.machine.id(run);
        RunHost::new(AgentHost { shared, run, id, agent, inline_bytes, sender })
    }
}

fn unknown(run: RunId) -> Refusal {
    Refusal::invalid("run", format!("the run {run} is none of this tree"))
}

impl Default for Post {
    fn default() -> Self {
        Self::Held(Vec::new())
    }
}

impl Post {
    fn put(&mut self, letter: Arc<str>) {
        match self {
            Self::Held(letters) => letters.push(letter),
            Self::Open(letters) => letters.put(letter),
        }
    }

    /// The run starts: what was held for it comes first.
    fn open(&mut self, letters: LetterBox) {
        if let Self::Held(held) = self {
            held.drain(..).for_each(|letter| letters.put(letter));
        }
        *self = Self::Open(letters);
    }
}

impl Entry {
    fn of(launch: Box<Prepared>, admitted: u64, follower: Option<Follower>) -> Self {
        let mind = Mind::of(&launch);
        Self { launch: Some(launch), admitted, follower, mind, ..Self::default() }
    }
}

impl Entries {
    fn insert(&mut self, run: RunIndex, entry: Entry) {
        if self.0.len() <= run.get() {
            self.0.resize_with(run.get() + 1, || None);
        }
        self.0[run.get()] = Some(Box::new(entry));
    }

    fn get(&self, run: RunIndex) -> Option<&Entry> {
        self.0.get(run.get())?.as_deref()
    }

    fn get_mut(&mut self, run: RunIndex) -> Option<&mut Entry> {
        self.0.get_mut(run.get())?.as_deref_mut()
    }

    fn remove(&mut self, run: RunIndex) -> Option<Box<Entry>> {
        self.0.get_mut(run.get())?.take()
    }

    /// Those of which this holds, in the order in which they were admitted.
    fn which(&self, holds: impl Fn(&Entry) -> bool) -> Vec<RunIndex> {
        let live = self.0.iter().enumerate().filter_map(|(at, entry)| Some((at, entry.as_ref()?)));
        live.filter(|(_, entry)| holds(entry)).map(|(at, _)| RunIndex::new(at)).collect()
    }
}
