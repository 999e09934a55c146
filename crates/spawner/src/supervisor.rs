//! The task that owns one tree: it takes messages, steps the machine and performs the effects.
//!
//! ```text
//!   handles, hosts ──Message──▶ ┌────────────┐ ──Start, Stop──▶ agent tasks
//!   agent tasks ────Ending────▶ │ supervisor │ ──events───────▶ store, then followers
//!   store ──────────Commit────▶ └────────────┘ ──answers──────▶ those who asked, once durable
//! ```
//!
//! One task, one machine, no lock. Every answer and every notice waits in the outbox until the record of
//! it is durable. Two things do not wait: a request to stop, because it only ends things, and the start of a run whose
//! admission is durable already, because the slot that it takes was freed by a process that is gone.

mod alarm;
mod entries;
mod log;
mod outbox;
mod perform;
mod recorded;
mod take;
mod unwritten;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{
    Account, CancelledBy, Ending, JsonText, Reason, Refusal, RunId, Timestamp, VariableRef,
};
use offshoot_runtime::RunHost;
use offshoot_store::{AttemptOutput, RootLock};
use tokio::sync::{Semaphore, broadcast, mpsc, oneshot, watch};
use tokio::task::{JoinError, JoinHandle, JoinSet};

use crate::account_board::ProbeTurn;
use crate::attempt_watch::AttemptWatch;
use crate::event_stream::News;
use crate::host_slots::HostShare;
use crate::kept_values::KeptValue;
use crate::machine::{Effect, Input, Machine, ReplyId, RequestVerdict, RunIndex, Session, WaitId};
use crate::message::link::Link;
use crate::message::{FanEvent, FanId, Message, SpawnReply, TreeState, Waited};
use crate::request::Prepared;
use crate::task::{AgentHost, Form, TOOL_USES};
use crate::tree_context::{Share, TreeContext};

use alarm::Alarm;
use entries::{Entries, Entry, Follower};
use log::RunSpans;
use outbox::Outbox;
pub(crate) use recorded::{Recorded, RecordedPieces};
use unwritten::Unwritten;

/// The number of messages that are taken before the effects of all of them are recorded together. Large enough that a
/// thousand endings at once become few transactions, small enough that a stop is never far behind.
const BATCH: usize = 256;

/// A timer that is found so late was not missed by a busy machine: the process had been stopped, or the machine had slept.
const LATE: Duration = Duration::from_millis(500);

/// The time in which, after that, what has happened meanwhile is heard: ends and answers that wait in pipes and sockets came before the
/// timer.
const CATCH_UP: Duration = Duration::from_millis(200);

/// The task's own state.
pub(crate) struct Supervisor {
    tree: Arc<TreeContext>,
    machine: Machine,
    messages: mpsc::UnboundedReceiver<Message>,
    /// Handed to hosts of runs. The supervisor's own end keeps the channel open while anything lives.
    sender: mpsc::UnboundedSender<Message>,
    /// Folders that are being removed.
    removals: JoinSet<Vec<Removed>>,
    runs: Entries,
    /// In the order in which they were asked, which is the order in which the machine answers.
    asked: VecDeque<Asked>,
    waits: HashMap<WaitId, oneshot::Sender<Waited>>,
    /// Requests to models that have no answer yet, by their numbers.
    requests: HashMap<u64, oneshot::Sender<RequestVerdict>>,
    /// Letters, names and raised budgets that are being recorded, in the order in which they came in.
    acts: VecDeque<Act>,
    recorded: RecordedPieces,
    /// The requests for many pieces of which not all may start.
    allowed: HashMap<FanId, Allowed>,
    outbox: Outbox,
    /// While the record cannot be written.
    unwritten: Option<Unwritten>,
    events: broadcast::Sender<News>,
    state: watch::Sender<TreeState>,
    next_reply: u64,
    /// Effects of steps that are to be performed.
    effects: Vec<Effect>,
    /// Effects that are being performed. Empty between two calls; kept for its room.
    performing: Vec<Effect>,
    /// The count of this tree in the gauge of the spawner.
    active: Share,
    spans: RunSpans,
    host: Option<HostShare>,
    /// The turns to probe an account that the tree has.
    probe_turns: HashMap<Account, ProbeTurn>,
    /// The last wall that the other trees are being told of.
    telling: Option<JoinHandle<()>>,
}

/// A run that stands in line when the supervisor begins.
pub(crate) struct Entering {
    pub(crate) run: RunIndex,
    pub(crate) launch: Box<Prepared>,
    /// Letters that may not have reached it.
    pub(crate) letters: Vec<Arc<str>>,
}

/// The run whose folder was to be removed, and why it is still there.
type Removed = (RunId, Option<Arc<str>>);

/// An act that is carried out and answered once it is recorded.
enum Act {
    Letter {
        to: RunIndex,
        text: Arc<str>,
        reply: oneshot::Sender<Result<(), Refusal>>,
    },
    Name {
        run: RunId,
        name: Arc<str>,
        value: VariableRef,
        reply: oneshot::Sender<Result<KeptValue, Refusal>>,
    },
    Answer {
        reply: oneshot::Sender<Result<(), Refusal>>,
    },
}

/// A request for a child that is not answered yet.
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

/// The pieces of a request that may still start.
#[derive(Clone, Copy)]
enum Allowed {
    /// All of them, until so many more have ended without success, and one beyond that.
    Failures(u32),
    /// None: they are cancelled.
    Nothing(CancelledBy),
}

enum Asker {
    One(SpawnReply),
    Fan(Follower),
}

impl Supervisor {
    /// A supervisor for a tree whose root was put into the machine by these effects.
    pub(crate) fn new(
        link: Link,
        machine: Machine,
        messages: mpsc::UnboundedReceiver<Message>,
        events: broadcast::Sender<News>,
        state: watch::Sender<TreeState>,
        recorded: RecordedPieces,
        host: Option<HostShare>,
    ) -> Self {
        let Link { tree, sender } = link;
        let active = tree.active.share();
        // The last supervisor may have left runs that wait.
        tree.memory_short.send_replace(machine.is_memory_short());
        Self {
            tree,
            machine,
            messages,
            sender,
            removals: JoinSet::new(),
            runs: Entries::default(),
            asked: VecDeque::new(),
            waits: HashMap::new(),
            requests: HashMap::new(),
            acts: VecDeque::new(),
            recorded,
            allowed: HashMap::new(),
            outbox: Outbox::default(),
            unwritten: None,
            events,
            state,
            next_reply: 0,
            effects: Vec::new(),
            performing: Vec::new(),
            active,
            spans: RunSpans::default(),
            host,
            probe_turns: HashMap::new(),
            telling: None,
        }
    }

    /// Lets a run that stands in line already be started like any other. The owner of a root hears its answer.
    pub(crate) fn enter(
        &mut self,
        entering: Entering,
        answer: Option<mpsc::UnboundedSender<FanEvent>>,
    ) {
        let Entering { run, launch, letters } = entering;
        let follower = answer.map(|told| Follower { fan: FanId(0), place: 0, told });
        let entry = Entry::of(launch, 1, follower);
        self.runs.insert(run, entry.with_letters(letters));
    }

    /// Runs until nothing is alive and everything is told. `opening` are the effects of opening the root.
    pub(crate) async fn run(mut self, opening: Vec<Effect>, lock: RootLock) {
        self.effects = opening;
        let mut batch = Vec::with_capacity(BATCH);
        let (mut alarm, mut retry) = (Alarm::default(), Alarm::default());
        let mut catch_up: Option<Timestamp> = None;
        loop {
            while !self.effects.is_empty() {
                self.perform();
            }
            self.active.set(self.machine.active() as usize);
            if self.machine.live() == 0 && self.outbox.is_empty() {
                if let Some(removed) = self.removals.join_next().await {
                    // Its events may have to be recorded first.
                    self.removed(removed);
                    continue;
                }
                // Who finds the tree over finds all that its agents said.
                self.tree.outputs.settle().await;
                // A process that hears that the tree is over may take it over at once.
                drop(lock);
                self.state.send_if_modified(|state| match state {
                    TreeState::Live | TreeState::Unwritten(_) => {
                        *state = TreeState::Ended;
                        true
                    }
                    TreeState::Ended | TreeState::Broken(_) => false,
                });
                // A message that is sent in this moment would stay in the channel as long as a sender lives, and with it the
                // way back of its answer. Closed and emptied, every sender is told.
                self.messages.close();
                while self.messages.recv().await.is_some() {}
                return;
            }
            let mut timer = self.machine.next_timer();
            let now = self.tree.clock.now();
            let due = timer.filter(|due| *due <= now);
            if due.is_none() {
                catch_up = None;
            }
            if let Some(due) = due {
                if now.since(due) > LATE && catch_up.is_none() {
                    tracing::warn!(ms = now.since(due).as_millis(), "the supervisor had no time");
                    catch_up = Some(now.plus(CATCH_UP));
                }
                match catch_up.filter(|until| now < *until) {
                    Some(until) => timer = Some(until),
                    None => {
                        // Not left to the arm below, which would never have its turn while messages keep coming.
                        catch_up = None;
                        self.time();
                        continue;
                    }
                }
            }
            // Every arm is an event; there is no other way to wake up.
            tokio::select! {
                biased;
                committed = self.outbox.committed() => {
                    self.told_of_commit(committed);
                }
                () = retry.rings(self.unwritten.as_ref().and_then(Unwritten::next), &self.tree) => {
                    self.write_again();
                }
                // Before messages, of which there may be thousands: runs start with it.
                (pool, grant) = HostShare::next(&mut self.host) => self.pool_gives(pool, grant),
                _ = self.messages.recv_many(&mut batch, BATCH) => {
                    for message in batch.drain(..) {
                        self.take(message);
                    }
                }
                Some(removed) = self.removals.join_next(), if !self.removals.is_empty() => {
                    self.removed(removed);
                }
                // The top of the loop finds what is due.
                () = alarm.rings(timer, &self.tree), if timer.is_some() => {}
            }
        }
    }

    fn removed(&mut self, removed: Result<Vec<Removed>, JoinError>) {
        let removed = match removed {
            // The threads are being shut down, and this task is dropped with them.
            Err(error) if error.is_cancelled() => return,
            removed => removed.expect("to remove a folder does not panic"),
        };
        for (run, error) in removed {
            self.step(Input::Removed { run, error });
        }
    }

    /// Something is due. What was seen of runs whose silence is judged counts first.
    fn time(&mut self) {
        for run in self.machine.wants_signs(self.tree.clock.now()) {
            let attempt = self.runs.attempt(run);
            if let Some(at) = attempt.and_then(|attempt| attempt.watch.last_seen()) {
                self.step(Input::Sign { run, at });
            }
        }
        self.step(Input::Time);
    }

    fn step(&mut self, input: Input) {
        self.machine.step(self.tree.clock.now(), input, &mut self.effects);
    }

    /// Ends the root because no handle holds it any more.
    fn abandon(&mut self) {
        let ending = Ending::of(Reason::Cancelled { by: CancelledBy::Operator });
        self.step(Input::Close { ending: Box::new(ending) });
    }

    /// The host of one run: it knows who speaks, so no argument has to say it.
    fn host(
        &self,
        run: RunIndex,
        session: &Session,
        schema: Option<JsonText>,
        watch: AttemptWatch,
        output: Option<AttemptOutput>,
    ) -> RunHost {
        let Session { attempt, inline_bytes, ref agent, .. } = *session;
        let definition = self.tree.config.agent(agent);
        let form = schema.map(|schema| Arc::new(Form::new(schema, definition)));
        RunHost::new(AgentHost {
            link: self.link(),
            run,
            attempt,
            id: self.machine.id(run),
            agent: agent.clone(),
            inline_bytes,
            watch,
            output,
            form,
            tools: Arc::new(Semaphore::new(TOOL_USES)),
        })
    }

    /// The way of hosts and tasks to this supervisor.
    fn link(&self) -> Link {
        Link { tree: Arc::clone(&self.tree), sender: self.sender.clone() }
    }
}
