//! The effects of a step, which the supervisor carries out.

use std::sync::Arc;

use offshoot_model::{
    Account, AgentId, BudgetGrant, DelegationContext, Envelope, Event, Grant, Refusal, RunId,
    SessionKey, Timestamp,
};
use offshoot_runtime::Stop;

use super::{ReplyId, RequestVerdict, RunIndex, WaitId};
use crate::host_slots::{HostClaim, SlotPool};

/// Everything that the supervisor is to do. Closed: one match sees it all.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Keep this event, in this order.
    Record(Arc<Event>),
    /// Show this event to those that follow the tree now.
    Show(Arc<Event>),
    /// Start this run: ahead of the record of it where a loss of that would run nothing twice that must not be, once the record is durable
    /// up to this number.
    Start { run: RunIndex, ahead: Option<u64> },
    /// Prepare this run for one more start.
    Again { run: RunIndex, continues: bool },
    /// Let another runtime run this run from its next start on, with this model.
    FallBack { run: RunIndex, runtime: Arc<str>, model: Option<Arc<str>> },
    /// Ask this run to stop.
    Stop { run: RunIndex, how: Stop },
    /// Tell the one who asked.
    Reply { reply: ReplyId, answer: Result<(RunIndex, RunId), Box<Refusal>> },
    /// Tell the one who waited, and of which results it may have heard before.
    Resolve { wait: WaitId, ended: Vec<RunId>, repeated: Vec<RunId>, pending: Vec<RunId> },
    /// Tell the one whose turn is over that none follows.
    NoTurn { wait: WaitId },
    /// Carry out the next letter, name or raised budget, in the order in which they came in: it is recorded with this time.
    Recorded { at: Timestamp },
    /// Answer a request to a model that wants to leave.
    AnswerRequest { request: u64, verdict: RequestVerdict },
    /// Look how much memory there is, and where `measure` is true how much the processes of the live runs take, and tell the
    /// machine.
    LookAtMemory { measure: bool },
    /// Tell the other trees of the user that a run has met the wall of a quota, with its reset.
    TellWall { account: Account, window: Option<Arc<str>>, until: Timestamp },
    /// Tell the other trees of the user that the service of an account had too much to do for a run.
    TellPressure { account: Account },
    /// Ask for the turn of this tree to probe an account, which is parked since this moment.
    AskForProbe { account: Account, since: Timestamp },
    /// Give back the turn to probe an account, and tell the other trees where a run of the account was answered.
    ProbeOver { account: Account, is_answered: bool },
    /// Tell the host what the tree wants of a pool of slots that all trees of the user share.
    ClaimSlots(SlotPool, HostClaim),
    /// Tell the follower of this run that it is over.
    Ended { run: RunIndex, envelope: Box<Envelope> },
    /// Remove what this run has left in a folder of its own.
    Remove { run: RunId },
}

/// A run, as its launch describes it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) key: SessionKey,
    pub(crate) agent: AgentId,
    pub(crate) depth: u32,
    pub(crate) delegation: DelegationContext,
    pub(crate) grant: Arc<Grant>,
    /// The part of the budget that the run may still use. An attempt before this one may have used the rest.
    pub(crate) left: BudgetGrant,
    /// The number of bytes of a child's result that travel with the answer to the run.
    pub(crate) inline_bytes: u64,
    /// True if its requests to models may leave where their cost has no bound.
    pub(crate) allows_unknown_cost: bool,
    /// True if a request that is too much for it waits for more budget.
    pub(crate) pauses_at_cap: bool,
    /// The number of the attempt.
    pub(crate) attempt: u32,
    /// True if another attempt may follow a fault of the runtime.
    pub(crate) may_retry: bool,
    /// The runs whose answers it needs and that completed, with the names by which it knows them.
    pub(crate) needs: Vec<(Arc<str>, RunId)>,
}
