//! The events of a tree, in the order in which they happened.

mod admitted;
mod keeper_fault;
mod merge_summary;
mod process;
mod request_ending;
mod root_reopened;
mod schema;
mod tool_use;
mod words;

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Account, AgentId, Changes, Cost, DeliveryId, Ending, MemoryShortage, Payload, Refusal, RootId,
    RunId, TaskType, Timestamp, Usage, VariableRef,
};

pub use admitted::{Admitted, InputRange, Origin, Particulars};
pub use keeper_fault::KeeperFault;
pub use merge_summary::{Chosen, MergeSummary};
pub use process::{BootId, ProcessIdentity};
pub use request_ending::RequestEnding;
pub use root_reopened::{PiecesAgain, RootReopened};
pub use schema::event_schema;
pub use tool_use::{ToolInput, ToolUse};

/// One entry of a tree's record. Screen, journal and parent read the same entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// The tree, named by the run of its root.
    pub root: RootId,
    /// The position in the tree's record, from 1 and without gaps. Progress carries the number of the last event that was kept.
    pub seq: u64,
    /// The moment at which it was recorded.
    pub at: Timestamp,
    /// The run to which it happened.
    pub run: RunId,
    /// The kind of the event: a word, or an object with one word as its key.
    pub kind: EventKind,
}

/// A kind of event of a run.
// Tagged from outside, because results inside stay unparsed text, which a tag among the fields would forbid.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A run exists, and waits for a slot. A root is admitted too.
    Admitted(Box<Admitted>),
    /// A run asked for a child and was told no.
    Refused {
        /// The answer it got.
        refusal: Box<Refusal>,
        /// The number of refusals, where several of the same code are one event: beyond a hundred refusals of one run, further
        /// ones are counted, and recorded with its next event. One where absent.
        times: Option<u64>,
    },
    /// The run holds a slot, and its runtime was asked to start it.
    Starting,
    /// The runtime says that the run has started.
    Started {
        /// The process, where there is one.
        #[serialize_always]
        process: Option<ProcessIdentity>,
    },
    /// Progress of the run. It may be thinned and is not kept.
    Progress {
        /// A line for people.
        text: Arc<str>,
    },
    /// The run has said how it goes. Kept, unlike progress; of a run that says more than a record should hold, the rest is
    /// progress.
    Reported {
        /// A line for its parent and for people.
        text: Arc<str>,
    },
    /// The agent of the run has used a tool. Kept as `reported` is: of a run that uses more tools than a record should hold, the
    /// rest is progress.
    ToolUsed(Box<ToolUse>),
    /// The agent has used one tool with the same input so many times in a row. Recorded once as long as it uses no other.
    Repeats {
        /// The name of the tool.
        tool: Arc<str>,
        /// The number of uses.
        times: u32,
    },
    /// The service of the run has refused or broken off a call, and is asked again at this time. Recorded as often as that happens, at most
    /// once a second in the long run.
    BacksOff {
        /// The fault of the service, in words.
        why: Arc<str>,
        /// The time of the next call.
        until: Timestamp,
    },
    /// The service of the run has answered again, after `backs_off`.
    Answered,
    /// Another model of the same runtime answers from here on: the one before could not be had. Recorded like the use of a tool, at a bounded
    /// rate.
    ModelChanged {
        /// The model that answers.
        model: Arc<str>,
    },
    /// The usage so far: cumulative, it replaces earlier reports.
    Used {
        /// The tokens used.
        usage: Usage,
        /// The money spent.
        cost: Cost,
    },
    /// The run is blocked on children and lends its slot.
    Waiting,
    /// The run has its slot back.
    Returned,
    /// The processes of the run worked while it waited, for more than a tenth of that time. This CPU time counts as if it had
    /// held a slot for so long.
    BusyWaiting {
        /// The CPU time that they used, in milliseconds.
        cpu_ms: u64,
        /// The time for which it waited, in milliseconds.
        wait_ms: u64,
    },
    /// The run was asked to stop.
    Stopping {
        /// The reason that the ending will have, unless the run ends by itself first.
        reason: Box<crate::Reason>,
    },
    /// Four fifths of its budget are used.
    BudgetNotice,
    /// The run used more than was reserved for it.
    Overrun {
        /// Tokens above the reservation.
        tokens: u64,
        /// Millionths of a dollar above the reservation.
        micro_usd: u64,
    },
    /// The run takes so much more out of what its parent has left: as it starts, and when it has used what it took before.
    BudgetDrawn {
        /// So many tokens.
        tokens: u64,
        /// So many millionths of a dollar.
        micro_usd: u64,
    },
    /// The operator has added to its budget, and to every budget above it, so that no other run has less for it.
    BudgetRaised {
        /// So many tokens.
        tokens: u64,
        /// So many millionths of a dollar.
        micro_usd: u64,
    },
    /// A request of the agent to its model may leave through the meter: what it can cost at most is reserved out of what the run has left.
    RequestReserved {
        /// The number of the request. No two that are open in a tree have the same.
        request: u64,
        /// The model.
        model: Arc<str>,
        /// The most tokens that it reads and writes.
        tokens: u64,
        /// The most that it costs, in millionths of a dollar; none where that is not known.
        micro_usd: Option<u64>,
    },
    /// A request of the run to a model waits for room in the budget: for more of it where `budget.onCap` is `pause`, or until requests beside it are
    /// over. In the second case the run has given back to its pool what it had not used.
    RequestHeld {
        /// The number of the request.
        request: u64,
        /// The model.
        model: Arc<str>,
        /// The most tokens that it reads and writes.
        tokens: u64,
        /// The most that it costs, in millionths of a dollar; none where that is not known.
        micro_usd: Option<u64>,
        /// True if it waits until requests beside it are over.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        for_others: bool,
    },
    /// A request to a model is over, and is charged. What else was reserved for it is free again.
    RequestSettled {
        /// The number of the request.
        request: u64,
        /// The model.
        model: Arc<str>,
        /// The way it ended.
        ending: RequestEnding,
        /// The tokens that are charged.
        usage: Usage,
        /// The dollars that are charged.
        cost: Cost,
    },
    /// A request to a model was refused by the meter, and did not leave. The first refusal of each code in an attempt is recorded at once,
    /// and the number of further ones when the attempt is over.
    RequestRefused {
        /// The rule, for programs.
        code: Arc<str>,
        /// The rule, for people.
        message: Arc<str>,
        /// The number of refusals, where it is that of further ones.
        times: Option<u64>,
    },
    /// All holders of slots were silent while all others waited for them; their slots are lent because of this run.
    StallLent,
    /// Nothing is admitted or started in the tree from here on, by the operator's word; what runs goes on. Recorded of the root.
    Paused,
    /// The tree goes on. A new supervisor goes on without this.
    Unpaused,
    /// Runs of an agent have failed too often in a row: none is admitted or started for a while, then one, whose end decides. Recorded
    /// of the root.
    BreakerOpened {
        /// The agent.
        #[schemars(with = "String")]
        agent: AgentId,
        /// The faults of its runtime in a row.
        faults: u32,
        /// The time for which none starts, in milliseconds.
        wait_ms: u64,
    },
    /// The run that was let through has worked: runs of the agent start again. Recorded of the root.
    BreakerClosed {
        /// The agent.
        #[schemars(with = "String")]
        agent: AgentId,
    },
    /// A quota of an account is used up, or as much of it as may be used: no run of the account starts before this time, and then one, to
    /// see whether the others may follow. Recorded of the root.
    Parked {
        /// The account.
        account: Account,
        /// The quota in the words of the service, such as `five_hour`; none where the service does not name it.
        window: Option<Arc<str>>,
        /// The time from which one run is started, the reset, and a little later by chance.
        until: Timestamp,
        /// The part that is left, in millionths, where the configuration keeps it; none where the service refuses runs.
        left: Option<u32>,
    },
    /// The service of an account tells how much of a quota is left. Recorded of the root, once for each twentieth that is used.
    QuotaSeen {
        /// The account.
        account: Account,
        /// The quota in the words of the service, such as `five_hour`.
        window: Arc<str>,
        /// The part that is left, in millionths.
        left: u32,
        /// The reset.
        until: Timestamp,
    },
    /// Runs of the account start again: the one that was started after the reset works, in this tree or another one of the user, or the
    /// runtime has another account now. Recorded of the root.
    Unparked {
        /// The account.
        account: Account,
    },
    /// At most so many runs of the account work at once from here on, because its service had too much to do, or a quota has begun anew; none
    /// is no bound. Runs with children that live are not counted. Recorded of the root.
    Paced {
        /// The account.
        account: Account,
        /// The most runs.
        most: Option<u32>,
    },
    /// Memory of the computer is short: a run that has a slot waits, and so do all behind it, until a run has ended or memory is free
    /// again. Recorded of the root.
    MemoryShort(MemoryShortage),
    /// No run waits for memory any more. Recorded of the root.
    MemoryEnough,
    /// The runs of all trees of the user that hold a slot at once are bounded while this supervisor holds the tree. Recorded of the root, before
    /// anything starts.
    HostBound {
        /// The most of them.
        max_concurrent: u32,
    },
    /// As many runs as may hold a slot over all trees of the user: a run of this tree waits for the end of another one. Recorded of the
    /// root.
    HostFull,
    /// No run of the tree waits for the runs of other trees any more. Recorded of the root.
    HostFree,
    /// Further runs that send the same long prompt first wait until the service answers this run: then they read it from its cache. Recorded
    /// of the root, when the first of them waits.
    Priming {
        /// The run that goes first.
        run: RunId,
        /// An estimate of the length of the prompt, in tokens.
        tokens: u64,
    },
    /// The runs that have waited for the first answer of this run wait no longer: it is answered or over, or took too long. Recorded of the root.
    Primed {
        /// The run that went first.
        run: RunId,
    },
    /// A piece waits for the end of another one: the budget that the pieces of this run share may not pay for it beside those that work. Recorded
    /// of the root.
    PoolShort {
        /// The run that has asked for the pieces.
        run: RunId,
    },
    /// No piece of this run waits because of the budget that they share any more. Recorded of the root.
    PoolEnough {
        /// The run that has asked for the pieces.
        run: RunId,
    },
    /// The runs of an account that hold a slot at once, over all trees of the user, are bounded while this supervisor holds the tree. Recorded
    /// of the root, before the first run of the account starts.
    AccountBound {
        /// The account.
        account: Account,
        /// The most of them.
        max_concurrent: u32,
    },
    /// A run of the tree waits for a slot of its account: all of them are given to trees of the user. Recorded of the root.
    AccountFull {
        /// The account.
        account: Account,
    },
    /// No run of the tree waits for a slot of its account any more. Recorded of the root.
    AccountFree {
        /// The account.
        account: Account,
    },
    /// The supervisor lives, and runs hold slots; nothing else was recorded for a while. Recorded of the root.
    Alive,
    /// A new supervisor holds the tree: nothing of it runs at this moment, and slots begin anew. Recorded of the root.
    Reopened,
    /// The root was over, and the operator goes on with it: pieces that ended without an answer run again as new runs. Follows
    /// `reopened`. Recorded of the root.
    RootReopened(Box<RootReopened>),
    /// The run was interrupted with its supervisor, or by a fault of its runtime, and is queued again.
    Resumed {
        /// The number of the attempt that begins: 2 for the first repetition.
        attempt: u32,
        /// True if the runtime continues where the run was; false if it begins anew.
        continues: bool,
        /// The fault, with which it would have ended had it no attempt left; none after an interruption.
        after: Option<Box<crate::Reason>>,
        /// The time for which it waits before that, in milliseconds; none after an interruption.
        wait_ms: Option<u64>,
        /// The changes that the attempt before had made, where it worked in a folder of its own.
        changes: Option<Box<Changes>>,
    },
    /// The run goes on with another runtime of `model.fallbacks`, and begins anew there: its own one has failed as often as it may, or a
    /// quota of its account is used up. Recorded before the `resumed` of the attempt that follows, or while the run stands in line.
    FellBack {
        /// The number of the fallback among those of the run that are runtimes, from 1.
        number: u32,
        /// The runtime.
        runtime: Arc<str>,
        /// The model; none where the runtime takes one by itself.
        model: Option<Arc<str>>,
    },
    /// The process group is gone, and the run ended in this way.
    Ended(Box<Ending>),
    /// The results of its children became one.
    Merged(Box<MergeSummary>),
    /// A turn of it is over and further ones follow: for its children's results, or for letters.
    TurnEnded {
        /// The answer of this turn. The answer of the last turn stands in the ending.
        answer: Option<Payload>,
        /// The number of letters that this attempt of it had taken by then. Absent from what earlier versions wrote.
        letters_taken: Option<u32>,
    },
    /// A message was written into the session of the run.
    Letter {
        /// The session above that wrote it; none for the operator.
        from: Option<RunId>,
        /// The text of the message.
        text: Payload,
    },
    /// The run keeps a value under a name of its own. The name's earlier value is forgotten.
    Kept {
        /// The name.
        name: Arc<str>,
        /// The value.
        value: VariableRef,
    },
    /// The run does a task of this type itself: it asked to hand it on, and was told to execute it directly. The observation ends
    /// with its closing, the turn or the run.
    ObservationOpened {
        /// The number of the observation among those of the run, from 1.
        number: u32,
        /// The type of the task. Printed kinds of events have a `type` of their own.
        task_type: TaskType,
    },
    /// The run says that it is over with a task that it did itself.
    ObservationClosed {
        /// The number of the observation.
        number: u32,
        /// True if the task is done.
        success: bool,
    },
    /// The result reached the parent.
    Delivered {
        /// The id of the delivery.
        delivery: DeliveryId,
        /// True if it was on its way before, and nothing shows that it arrived.
        redelivered: bool,
    },
    /// The result was not received: the parent is over, or had stopped waiting when the answer came; then the parent's next wait
    /// or turn brings it again. It stays on record and is passed to no other run.
    Undelivered {
        /// The id of the delivery.
        delivery: DeliveryId,
    },
    /// A process outlived it and, maybe, other runs that had ended: it had left its session and erased its environment, so
    /// that nothing tells whose it was. It was ended with this run, the last that lived.
    StrayEnded {
        /// The process id.
        pid: u32,
        /// The name of the process, as it had chosen it.
        name: Arc<str>,
    },
    /// The keeper, the process that ends a tree's processes if its supervisor is killed, did not hold any more. Recorded of the
    /// root.
    KeeperFailed {
        /// The process id.
        pid: u32,
        /// The state in which it was found.
        found: KeeperFault,
        /// The reason why no other one could be started. None where another one has taken its place.
        error: Option<Arc<str>>,
    },
    /// The folder of the run was to be removed. Recorded where it could not be, and where it was removed later.
    Removal {
        /// The reason why the folder is still there.
        error: Option<Arc<str>>,
    },
}

/// The class of an event: kept or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventClass {
    /// A fact: kept, in order, never thinned.
    Kept,
    /// Progress, for those that watch at the moment.
    Progress,
}

impl EventKind {
    /// Returns the class of the event.
    pub const fn class(&self) -> EventClass {
        match self {
            Self::Progress { .. } => EventClass::Progress,
            _ => EventClass::Kept,
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.text();
        let gap = if text.is_empty() { "" } else { ": " };
        write!(f, "{}{gap}{text}", self.name().replace('_', " "))
    }
}
