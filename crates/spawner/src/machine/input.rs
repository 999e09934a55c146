//! The inputs of a machine.

use std::path::PathBuf;
use std::sync::Arc;

use offshoot_model::{
    Account, AgentId, BudgetGrant, CancelledBy, Ending, InputRange, JsonText, KeeperFault,
    MergeSummary, Need, OnNeedFailed, Origin, Payload, Reason, RunId, SpawnRequest, TaskType,
    Timestamp, VariableRef,
};
use offshoot_policy::{Fallback, RuntimeFacts};
use offshoot_runtime::RunEvent;

use super::{
    Busy, Letter, MemorySeen, NewWait, Outcome, RequestAsk, RequestOver, RunIndex, TurnEnd, WaitId,
};
use crate::host_slots::{HostGrant, SlotPool};
use crate::model_request::WallReset;
use crate::root_kind::RootKind;

/// Everything that can happen to a tree. Closed: one match sees it all.
#[derive(Debug)]
pub(crate) enum Input {
    /// A session asks for a child.
    Spawn(Box<Spawn>),
    /// The runtime of a run tells how this attempt of it goes.
    RunEvent { run: RunIndex, attempt: u32, event: RunEvent },
    /// A run says how it goes, for the record.
    Reported { run: RunIndex, text: Arc<str> },
    /// A run begins with a task of this type itself, with the number that [`Machine::next_observation`] gave.
    Observes { run: RunIndex, number: u32, task_type: TaskType },
    /// A run is over with a task, of which [`Machine::is_observing`] is true.
    Observed { run: RunIndex, number: u32, success: bool },
    /// A run gave its last sign of life at this moment, as far as [`Machine::wants_signs`] asked for it.
    Sign { run: RunIndex, at: Timestamp },
    /// A run is over, and everything it started is gone.
    Finished { run: RunIndex, outcome: Box<Outcome> },
    /// The results of the root's pieces became one.
    Merged { summary: Box<MergeSummary> },
    /// The owner of a piece that was read back from the record has said what it takes to run it.
    Claimed { run: RunIndex, asked: Option<Box<(SpawnRequest, Arc<RuntimeFacts>)>> },
    /// A run waits for others.
    Wait(NewWait),
    /// A turn of a run is over.
    TurnEnded(TurnEnd),
    /// A letter to a session, which [`Machine::may_write`] has allowed.
    Letter(Letter),
    /// A run gives a value a name.
    Keep { run: RunIndex, name: Arc<str>, value: VariableRef },
    /// A turn of this run did not bring the results of these children: they cannot be read at the moment.
    NotBrought { run: RunIndex, children: Vec<RunId> },
    /// The processes of a run used this while it waited.
    Busy { run: RunIndex, busy: Busy },
    /// The caller of this wait has the answer.
    WaitTaken { id: WaitId },
    /// The caller of this wait has gone, before the answer or when it came.
    WaitDropped { id: WaitId },
    /// A run and what is below it are to stop.
    Cancel { run: RunIndex, reach: Reach, by: CancelledBy },
    /// The operator stops the whole tree, softly or at once.
    StopAll { firm: bool },
    /// A root that runs nothing itself ends. Nothing where it is over, or where it runs something and ends by itself.
    Close { ending: Box<Ending> },
    /// No admission and no start until further notice; what runs goes on.
    Pause(bool),
    /// No start until further notice. What is admitted meanwhile stands in line.
    Hold(bool),
    /// A run wants to ask a model, through the meter.
    RequestAsked(RequestAsk),
    /// A request to a model is over.
    RequestOver(RequestOver),
    /// A request of a run to a model was refused by the meter, for this rule.
    RequestRefused { run: RunIndex, code: Arc<str>, message: Arc<str> },
    /// The answer to a request of a run says what is left of a quota, in millionths; none where it is used up.
    WallSeen { run: RunIndex, window: Option<Arc<str>>, reset: WallReset, left: Option<u32> },
    /// Another tree of the user has met the wall of a quota.
    WallTold { account: Account, window: Option<Arc<str>>, until: Timestamp },
    /// The service of an account had too much to do for a run of another tree of the user, at this moment.
    PressureTold { account: Account, at: Timestamp },
    /// The answer to [`Effect::AskForProbe`](super::Effect): it is the turn of this tree. Another one was answered before, where that is so.
    ProbeTurn { account: Account, is_answered: bool },
    /// The answer to [`Effect::LookAtMemory`](super::Effect): nothing where the system does not tell.
    MemorySeen { seen: Option<MemorySeen> },
    /// The answer to [`Effect::ClaimSlots`](super::Effect), or news of what other trees of the user claim of this pool.
    PoolGives(SlotPool, HostGrant),
    /// The slots of this account cannot be counted with those of other trees, for this reason.
    CannotCount { account: Arc<Account>, message: String },
    /// The whole tree is to stop, for this reason.
    Stop { reason: Reason },
    /// The folder of a run was removed, or could not be.
    Removed { run: RunId, error: Option<Arc<str>> },
    /// The keeper of the supervisor did not hold any more.
    KeeperFailed { pid: u32, found: KeeperFault, error: Option<Arc<str>> },
    /// The operator adds to a budget that [`Machine::may_raise`] found.
    Raise { run: RunIndex, more: BudgetGrant },
    /// The moment that [`Machine::next_timer`] named has come.
    Time,
}

/// A request for a child, with all that was resolved outside.
#[derive(Debug)]
pub(crate) struct Spawn {
    /// The session that asks: known from the connection, never from the request.
    pub(crate) caller: RunIndex,
    /// Minted for the child.
    pub(crate) run: RunId,
    /// The request.
    pub(crate) request: SpawnRequest,
    /// The task as the record keeps it.
    pub(crate) task: Payload,
    /// For a piece of the operator's map.
    pub(crate) input: Option<InputRange>,
    /// For a piece: its place among all that the owner has asked for.
    pub(crate) place: Option<u32>,
    /// For a piece that runs again: the run that had its place.
    pub(crate) instead: Option<RunId>,
    /// The runs that it needs, which were asked for before: pieces of the owner for a piece, and else children of the caller.
    pub(crate) needs: Vec<Need>,
    /// The fate of the run when one that it needs does not complete.
    pub(crate) on_need_failed: OnNeedFailed,
    /// Another folder than the tree's.
    pub(crate) folder: Option<Arc<PathBuf>>,
    /// Operator's piece or agent's wish.
    pub(crate) origin: Origin,
    /// The runtime that would run it, as far as policy must know it.
    pub(crate) facts: Arc<RuntimeFacts>,
    /// Other runtimes that may take over; none for most runs.
    pub(crate) fallbacks: Option<Arc<[Fallback]>>,
    /// The receiver of the answer.
    pub(crate) reply: ReplyId,
}

/// A root to put into an empty tree.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) kind: RootKind,
    pub(crate) run: RunId,
    pub(crate) agent: AgentId,
    /// The request for the root, with the text of its task for the lineage of its children.
    pub(crate) request: SpawnRequest,
    /// The task as the record keeps it.
    pub(crate) task: Payload,
    /// Facts of the root's runtime; none for a root that only holds pieces.
    pub(crate) facts: Option<Arc<RuntimeFacts>>,
    /// Other runtimes that may take over.
    pub(crate) fallbacks: Option<Arc<[Fallback]>>,
    pub(crate) plan: Option<JsonText>,
}

/// The runs that a cancel stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The run and everything below.
    Subtree,
    /// The run alone.
    Only,
    /// Everything below, not the run.
    Below,
}

impl Reach {
    /// The run alone, or with everything below.
    pub(crate) const fn of(only: bool) -> Self {
        if only { Self::Only } else { Self::Subtree }
    }
}

/// Names the one who asked, for the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ReplyId(pub(crate) u64);
