//! What a supervisor is told, and what it tells.

use std::ops::Range;
use std::sync::Arc;

use offshoot_model::{
    BudgetGrant, CancelledBy, ContextEntry, Ending, Envelope, InputRange, KeeperFault,
    MergeSummary, Origin, Payload, Refusal, RunId, SpawnRequest, VariableRef,
};
use offshoot_policy::{RuntimeFacts, Terms};
use offshoot_runtime::{RunEvent, Runtime, WaitFor};
use offshoot_store::StoreError;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::Counts;
use crate::agents::Asking;
use crate::cpu_watch::Busy;
use crate::machine::{Outcome, Past, Reach, RunIndex, WaitId};
use crate::names::Kept;
use crate::work::Work;

/// What handles, hosts and agent tasks say to the supervisor.
pub(crate) enum Message {
    /// A session asks for one child.
    Spawn { ask: Box<Ask>, reply: SpawnReply },
    /// A session asks for several children at once, which share what it has left of its budget.
    SpawnMany { caller: RunIndex, asks: Vec<(Ask, SpawnReply)> },
    /// The operator asks for many pieces; each ending goes to the follower.
    Fan {
        id: FanId,
        caller: RunIndex,
        asks: Vec<Ask>,
        follower: mpsc::UnboundedSender<FanEvent>,
        /// So many pieces may end without success before the others are cancelled.
        max_fail: Option<u32>,
        /// The places of all pieces of the request among those that the owner has asked for.
        numbers: Range<u32>,
        /// Given back once the admission of these pieces is durable.
        room: Option<OwnedSemaphorePermit>,
    },
    /// The pieces of one request that are not over are not needed any more.
    CancelPieces { fan: FanId, by: CancelledBy },
    /// A run tells how it goes. A line of progress brings its place in the channel, which is free again once it is taken.
    Told { run: RunIndex, event: RunEvent, place: Option<OwnedSemaphorePermit> },
    /// A run says how it goes, for the record. Answered once it is taken: a crash may lose it.
    Report { run: RunId, text: Arc<str>, reply: oneshot::Sender<Result<(), Refusal>> },
    /// A run is over. Comes the same way as what it told before, so that nothing overtakes.
    Finished { run: RunIndex, outcome: Box<Outcome> },
    /// A session waits.
    Wait { id: WaitId, caller: RunIndex, wait: WaitFor, reply: oneshot::Sender<Waited> },
    /// A turn of a run is over. Dropping the reply says that none follows.
    TurnEnded {
        id: WaitId,
        run: RunIndex,
        answer: Option<Payload>,
        letters_taken: u32,
        reply: oneshot::Sender<Waited>,
    },
    /// Somebody writes into a session; none for the operator. Answered once it is recorded and handed over.
    Letter {
        to: RunId,
        from: Option<RunId>,
        text: Arc<str>,
        /// The text as the record keeps it.
        payload: Payload,
        reply: oneshot::Sender<Result<(), Refusal>>,
    },
    /// A session gives a value, which is stored, a name.
    Keep {
        run: RunId,
        name: Arc<str>,
        value: VariableRef,
        reply: oneshot::Sender<Result<Kept, Refusal>>,
    },
    /// The processes of a run used this while it waited.
    Busy { run: RunIndex, busy: Busy },
    /// The caller of this wait has the answer.
    WaitTaken { id: WaitId },
    /// A turn of this run did not bring the results of these children: they cannot be read at the moment.
    NotBrought { run: RunIndex, children: Vec<RunId> },
    /// The caller of this wait has gone, before the answer or with it.
    WaitDropped { id: WaitId },
    /// A run and what is below it are to stop.
    Cancel { run: RunId, reach: Reach, by: CancelledBy },
    /// The whole tree is to stop.
    StopAll { firm: bool },
    /// The operator adds to the budget of a run. Answered once it is recorded.
    Raise { run: RunId, more: BudgetGrant, reply: oneshot::Sender<Result<(), Refusal>> },
    /// The keeper of this process did not hold any more.
    KeeperFailed { pid: u32, found: KeeperFault, error: Option<Arc<str>> },
    /// Admission and starts pause or go on.
    Pause(bool),
    /// The results of the root's pieces became one.
    Merged { summary: Box<MergeSummary> },
    /// The root that holds pieces has its answer.
    Close { ending: Box<Ending> },
    /// What has to be kept cannot be: the record of the tree ends here, as when it breaks by itself.
    Halt { error: StoreError },
    /// Whoever held the root has gone: everything stops, and the root ends with it.
    Abandon,
    /// Somebody who knows a run by its id wants its session; none where it is over or unknown.
    Find { run: RunId, reply: oneshot::Sender<Option<Asking>> },
    /// How much room a run has for children; none where it is over or unknown.
    Room { run: RunId, reply: oneshot::Sender<Option<(BudgetGrant, Arc<Terms>)>> },
    /// The children of a run; none where the run is over or unknown.
    Children { run: RunId, which: Children, reply: oneshot::Sender<Option<Vec<RunId>>> },
    /// How many hold a slot, how many stand in line.
    Count { reply: oneshot::Sender<Counts> },
}

/// The children of a session that are asked for. None of them was asked for by an earlier attempt that knew nothing of
/// this one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Children {
    /// All children.
    All,
    /// The children of a wait that names none.
    Unnamed,
}

/// Where the answer to a request for a child goes.
pub(crate) type SpawnReply = oneshot::Sender<Result<RunId, Refusal>>;

/// What it takes to start a run that was admitted; small, because queues hold many.
#[derive(Clone)]
pub(crate) struct Prepared {
    pub(crate) task: Arc<str>,
    pub(crate) context: Vec<ContextEntry>,
    pub(crate) command: Option<Arc<[String]>>,
    pub(crate) input: Option<InputRange>,
    pub(crate) model: Option<Arc<str>>,
    pub(crate) thinking: Option<Arc<str>>,
    pub(crate) work: Arc<Work>,
    pub(crate) runtime: Arc<dyn Runtime>,
    /// Whether it was interrupted and goes on where it was.
    pub(crate) continues: bool,
}

/// A request with everything that was resolved before it entered.
pub(crate) struct Ask {
    pub(crate) caller: RunIndex,
    pub(crate) request: SpawnRequest,
    /// The program and its arguments, for a runtime that starts one.
    pub(crate) command: Option<Arc<[String]>>,
    /// The task as the record keeps it.
    pub(crate) task: Payload,
    pub(crate) input: Option<InputRange>,
    pub(crate) origin: Origin,
    pub(crate) work: Arc<Work>,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) facts: Arc<RuntimeFacts>,
    /// The place in the request, for a piece.
    pub(crate) place: u32,
    /// Its place among all pieces that the owner has asked for; none for what nobody would ask for again.
    pub(crate) number: Option<u32>,
}

/// One request for many pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FanId(pub(crate) u64);

/// What a follower of many pieces hears: for each exactly one.
#[derive(Debug)]
pub(crate) enum FanEvent {
    /// It was not admitted.
    Refused { place: u32, refusal: Box<Refusal> },
    /// It is over, and the record of that is durable.
    Ended { place: u32, envelope: Box<Envelope> },
    /// It was over before this supervisor began.
    Over { place: u32, run: RunId, past: Past },
}

/// Which of the runs waited for are over.
#[derive(Debug)]
pub(crate) struct Waited {
    pub(crate) ended: Vec<RunId>,
    /// The ended runs whose results were on their way before.
    pub(crate) repeated: Vec<RunId>,
    pub(crate) pending: Vec<RunId>,
}

impl Ask {
    /// What stays here until the run starts. The request itself goes to the machine.
    pub(crate) fn prepared(&self) -> Box<Prepared> {
        Box::new(Prepared {
            task: Arc::clone(&self.request.task),
            context: self.request.context.clone(),
            command: self.command.clone(),
            input: self.input.clone(),
            model: self.request.model.as_deref().map(Into::into),
            thinking: self.request.thinking.as_deref().map(Into::into),
            work: Arc::clone(&self.work),
            runtime: Arc::clone(&self.runtime),
            continues: false,
        })
    }
}
