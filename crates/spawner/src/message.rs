//! Messages to the supervisor, and its answers.

pub(crate) mod hand_on;
pub(crate) mod link;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{
    Account, AgentId, BudgetGrant, CancelledBy, DelegationContext, Envelope, Grant, Payload,
    Refusal, RefusalCode, RunId, SessionKey, TaskType, Timestamp, VariableRef,
};
use offshoot_policy::{Lineage, Terms};
use offshoot_runtime::{RunEvent, UsageProbe, WaitFor};
use offshoot_store::StoreError;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::timeout;

use crate::account_board::{AccountNews, ProbeTurn};
use crate::attempt_watch::AttemptWatch;
use crate::kept_values::KeptValue;
use crate::machine::{Input, Outcome, Past, Reach, RequestVerdict, RunIndex, WaitId};
use crate::model_request::{ModelCharge, ModelRequest, RefusedRequest, SeenQuota};
use crate::request::Ask;

/// Messages of handles, hosts and agent tasks to the supervisor.
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
        permit: Option<OwnedSemaphorePermit>,
    },
    /// The pieces of one request that are not over are not needed any more.
    CancelPieces { fan: FanId, by: CancelledBy },
    /// A run tells how it goes. A line of progress brings its place in the channel, which is free again once it is taken.
    RunEvent { run: RunIndex, attempt: u32, event: RunEvent, permit: Option<OwnedSemaphorePermit> },
    /// A run says how it goes, for the record. Answered once it is taken: a crash may lose it.
    Report { run: RunId, text: Arc<str>, reply: oneshot::Sender<Result<(), Refusal>> },
    /// A run does a task of this type itself. Answered with the number of the observation once it is taken, as a report; none where
    /// it opens too many.
    Observe { run: RunId, task_type: TaskType, reply: oneshot::Sender<Option<u32>> },
    /// A run is over with a task that it did itself.
    Observed { run: RunId, number: u32, success: bool, reply: oneshot::Sender<Result<(), Refusal>> },
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
        /// True if the answer has not the form that was asked for, and the run is to answer again.
        again: bool,
        reply: oneshot::Sender<Waited>,
    },
    /// A letter to a session, from another session or from the operator (none). Answered once it is recorded and handed
    /// over.
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
        reply: oneshot::Sender<Result<KeptValue, Refusal>>,
    },
    /// An input of the machine that takes nothing more.
    Input(Input),
    /// The caller of this wait has gone, before the answer or with it.
    WaitDropped { id: WaitId },
    /// A run and what is below it are to stop.
    Cancel { run: RunId, reach: Reach, by: CancelledBy },
    /// The operator adds to the budget of a run. Answered once it is recorded.
    Raise { run: RunId, more: BudgetGrant, reply: oneshot::Sender<Result<(), Refusal>> },
    /// Admission and starts pause or go on. Answered once it is recorded.
    Pause { paused: bool, reply: oneshot::Sender<Result<(), Refusal>> },
    /// A request to a model wants to leave through the meter. Answered once its reservation is on record, or once it is refused.
    RequestAsked { asked: Box<ModelRequest>, reply: oneshot::Sender<RequestVerdict> },
    /// A request to a model is over.
    RequestOver { charge: Box<ModelCharge> },
    /// A request to a model was refused.
    RequestRefused { refused: Box<RefusedRequest> },
    /// The answer to a request of a run says something of a quota.
    WallSeen { seen: Box<SeenQuota> },
    /// Another tree of the user has told of an account.
    AccountTold { news: AccountNews },
    /// The turn of the tree to probe an account that is parked since this moment.
    ProbeTurn { account: Account, since: Timestamp, turn: ProbeTurn },
    /// A value that has to be stored cannot be: the record of the tree ends here, as when it breaks by itself.
    Halt { error: StoreError },
    /// The handle on the root was dropped: everything stops, and the root ends as well.
    Abandon,
    /// Look up the session of a run; none where the run is over or unknown.
    Find { run: RunId, reply: oneshot::Sender<Option<Asking>> },
    /// Look up the spawn allowance of a run; none where it is over or unknown.
    Allowance { run: RunId, reply: oneshot::Sender<Option<(BudgetGrant, Arc<Terms>)>> },
    /// Look up the chain of delegations down to a run; none where it is over or unknown.
    Lineage { run: RunId, reply: oneshot::Sender<Option<Arc<Lineage>>> },
    /// True if a run is at work and not asked to stop, after all messages before this one.
    GoesOn { run: RunIndex, reply: oneshot::Sender<bool> },
    /// The children of a run; none where the run is over or unknown.
    Children { run: RunId, which: Children, reply: oneshot::Sender<Option<Vec<RunId>>> },
    /// The last signs of life of the runs that hold a slot.
    Signs { reply: oneshot::Sender<Vec<(RunId, Timestamp)>> },
    /// Count the runs that hold a slot, stand in line and live.
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

/// The receiver of the answer to a request for a child.
pub(crate) type SpawnReply = oneshot::Sender<Result<RunId, Refusal>>;

/// One request for many pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FanId(pub(crate) u64);

/// Events for the follower of many pieces: exactly one for each piece.
#[derive(Debug)]
pub(crate) enum FanEvent {
    /// The piece was not admitted.
    Refused { place: u32, refusal: Box<Refusal> },
    /// The piece is over, and the record of its end is durable.
    Ended { place: u32, envelope: Box<Envelope> },
    /// The piece was over before this supervisor began.
    Over { place: u32, run: RunId, past: Past },
}

/// Answer to a wait: the runs that are over, and those that are not.
#[derive(Debug)]
pub(crate) struct Waited {
    pub(crate) ended: Vec<RunId>,
    /// The ended runs whose results were on their way before.
    pub(crate) repeated: Vec<RunId>,
    pub(crate) pending: Vec<RunId>,
}

/// A session that asks, as the tree knows it.
#[derive(Clone, Debug)]
pub struct Asking {
    /// The index of the run in the tree.
    pub(crate) index: RunIndex,
    /// The session key.
    pub key: SessionKey,
    /// The agent that runs in the session.
    pub agent: AgentId,
    /// Levels below the root.
    pub depth: u32,
    /// The runs above it, and the request at the top.
    pub delegation: DelegationContext,
    /// The terms it lives under.
    pub grant: Arc<Grant>,
    /// The number of bytes of a child's result that travel with an answer to the session: the limit of an
    /// [`Excerpt`](crate::Excerpt).
    pub inline_bytes: u64,
    /// Asks what it has used up to now.
    pub(crate) usage: UsageProbe,
    /// The watch over the CPU time that it uses while it waits.
    pub(crate) cpu: AttemptWatch,
}

/// Numbers of runs of one tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Runs that hold a slot.
    pub active: usize,
    /// Runs that stand in line for one.
    pub queued: usize,
    /// Runs that are not over, those that wait for children included.
    pub live: usize,
}

/// State of a whole tree, for callers that wait for its end.
#[derive(Clone, Debug)]
pub(crate) enum TreeState {
    /// Something lives.
    Live,
    /// Something lives, and the record cannot be written at the moment: nothing starts, and nothing is told.
    Unwritten(Arc<StoreError>),
    /// Everything is over and recorded.
    Ended,
    /// The record broke. What runs was killed; what was not recorded is not told.
    Broken(Arc<StoreError>),
}

/// A program answers within milliseconds, also while it works. One that does not answer in this time is stuck, and what it
/// has told before holds.
const USAGE_PATIENCE: Duration = Duration::from_secs(5);

impl Asking {
    /// Lets the session tell what it has used up to now, so that it cannot promise to a child what it has spent.
    pub(crate) async fn settle_up(&self) {
        // Too late is as good as not at all.
        let _ = timeout(USAGE_PATIENCE, self.usage.ask()).await;
    }
}

/// Refuses what a session that is over asks for.
pub(crate) fn over() -> Refusal {
    Refusal::new(RefusalCode::CallerEnded, "this session is over")
}
