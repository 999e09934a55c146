//! One run, as the machine sees it: little while it lives, next to nothing once it has ended.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use offshoot_config::OnInterrupt;
use offshoot_model::{
    Account, AgentId, Cleanup, Cost, CostKnowledge, Grant, Origin, Reason, RunId, RunStatus,
    SessionKey, Timestamp, Usage,
};
use offshoot_policy::prefix::PrefixId;
use offshoot_policy::{LastChild, Lineage, Terms};
use thin_vec::ThinVec;

use super::Busy;
use super::backoff::Backoff;
use super::fallback::Fallbacks;
use super::mail::Mail;
use super::metered::Requests;
use super::observation::Observations;
use super::queue::Place;
use super::refusals::Refusals;
use super::report::Allowance;
use super::slots::{Lease, Part, Position};
use super::streak::Streak;
use super::wait::WaitId;

/// The place of a run in its tree's list. Small, because queues hold many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RunIndex(u32);

/// A run. What outlives its end is what later decisions need: lineage for cancelling, status for waits.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) id: RunId,
    pub(crate) agent: AgentId,
    pub(crate) parent: Option<RunIndex>,
    /// The position at which its slot is counted.
    pub(super) position: Position,
    /// The part in which its children are counted: another one where its own values bind them.
    pub(super) below: Part,
    /// The cleanup once the result was handed over.
    pub(crate) cleanup: Cleanup,
    /// True if a request asked to keep the run or one above it: then nothing below it is removed.
    pub(crate) keeps: bool,
    /// True if the record says that the run's folder could not be removed.
    pub(crate) not_removed: bool,
    pub(crate) children: ThinVec<RunIndex>,
    pub(crate) body: Body,
}

/// Alive, or over.
#[derive(Debug)]
pub(crate) enum Body {
    /// Everything about a run that is not over.
    Live(Box<Live>),
    /// The status at the end.
    Ended(RunStatus),
}

/// A run that is not over.
// Small, because queues hold many: what most runs never have is behind a pointer.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) key: SessionKey,
    pub(crate) origin: Origin,
    /// The terms under which it spawns.
    pub(crate) terms: Arc<Terms>,
    /// The terms under which it lives: those of the session that asked for it, and a root's own.
    pub(crate) under: Arc<Terms>,
    pub(crate) lineage: Arc<Lineage>,
    pub(crate) grant: Arc<Grant>,
    /// The last child: pieces of one map share a grant.
    pub(crate) last_child: Option<Box<LastChild>>,
    pub(crate) phase: SlotState,
    pub(crate) clock: RunClock,
    /// CPU time used in waits, while it is too little to be recorded by itself.
    pub(super) small_work: Option<Box<Busy>>,
    /// The moment at which the run got its first slot.
    pub(crate) started_at: Option<Timestamp>,
    /// The moment of the next check for silence.
    pub(crate) idle_armed: Option<Timestamp>,
    /// Children that are not over.
    pub(crate) live_children: BTreeSet<RunIndex>,
    /// Waits that this run has open.
    pub(crate) waits: ThinVec<WaitId>,
    /// Waits of others that this run's end may satisfy.
    pub(crate) watchers: ThinVec<WaitId>,
    /// Mail that is held until the run's next wait or turn. Most runs never have any.
    pub(super) mail: Option<Box<Mail>>,
    /// True if the runtime can take a further turn.
    pub(super) takes_turns: bool,
    /// True if the result goes to the session that asked for the run.
    pub(super) announces: bool,
    /// The number of children that interrupted attempts asked for: the present attempt knows nothing of them.
    pub(crate) earlier_children: u32,
    /// The use of earlier attempts. Reports count from the beginning of an attempt.
    pub(super) earlier: ThinVec<AttemptUse>,
    /// The usage and cost that it has reported in this attempt.
    pub(super) told: Option<Box<(Usage, Cost)>>,
    /// Requests to models that go through the meter, in this attempt. Most runs make none.
    pub(super) requests: Option<Box<Requests>>,
    /// The kind of its cost, as its runtime knows it.
    pub(super) cost: CostKnowledge,
    /// The same, where it is metered and asks nothing through the meter.
    pub(super) unasked_cost: CostKnowledge,
    /// True if its runtime costs nothing, or the operator says so.
    pub(super) costs_nothing: bool,
    /// The number of the attempt, from 1.
    pub(super) attempt: u32,
    /// The moment at which the wait before its next attempt is over.
    pub(super) again_at: Option<Timestamp>,
    /// The number of attempts that ended by a fault of the runtime.
    pub(super) faults: u32,
    /// True if the runtime can continue where an attempt ended.
    pub(super) resumes: bool,
    /// Other runtimes that may take over. Most runs have none.
    pub(super) fallbacks: Option<Box<Fallbacks>>,
    /// The memory that its processes take, in bytes, as far as its runtime knows.
    pub(super) memory: u64,
    /// The account whose quotas it shares; none where it runs nothing, or its runtime is not here.
    pub(super) account: Option<Arc<Account>>,
    /// The long prompt that it sends first; none where no other run waits for the answer to it.
    pub(super) prefix: Option<PrefixId>,
    /// The reason of the ending, once the run was asked to stop.
    pub(crate) stopping: Option<Box<Reason>>,
    /// The refusals that it got. Most runs get none.
    pub(super) refusals: Option<Box<Refusals>>,
    /// The number of its reports that may still be kept.
    pub(super) reports: Allowance,
    /// The number of its uses of tools that may still be kept.
    pub(super) tool_uses: Allowance,
    /// The calls to its service that failed and are made again. Most runs have none.
    pub(super) backoff: Option<Box<Backoff>>,
    /// The tool that it used last, if its runtime says its input.
    pub(super) streak: Option<Box<Streak>>,
    /// The tasks with a type that it does itself. Most runs have none.
    pub(super) observations: Option<Box<Observations>>,
    /// True if the run holds pieces of which some were at work when it was to stop.
    pub(crate) cut_off: bool,
    /// True if there is another reason to stop it than its own time, which has no further attempt.
    pub(crate) is_last_attempt: bool,
}

/// The use of an attempt that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AttemptUse {
    /// The number of the attempt; none where this is the use of all attempts that an earlier supervisor held.
    pub(super) attempt: Option<u32>,
    pub(super) usage: Usage,
    pub(super) cost: Cost,
}

/// The state of a live run with regard to its slot.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SlotState {
    /// In line for its first slot.
    Queued,
    /// Starting, then running.
    Holding {
        /// The slot of the run.
        lease: Lease,
        /// True if the runtime has said that the run has started.
        started: bool,
    },
    /// Blocked on its children. Its slot is lent.
    Lent,
    /// A wait of it has succeeded; in line for its slot.
    Returning {
        /// The waits that are answered once the slot is there.
        waits: ThinVec<WaitId>,
    },
    /// A root that runs nothing itself and needs no slot.
    Holder,
}

/// The time for which a run has held a slot, which its time limit counts.
#[derive(Debug, Default)]
pub(crate) struct RunClock {
    used: Duration,
    since: Option<Timestamp>,
    last_sign: Timestamp,
}

impl RunIndex {
    /// The first run of a tree.
    pub(crate) const ROOT: Self = Self(0);

    pub(crate) fn new(index: usize) -> Self {
        Self(u32::try_from(index).expect("a tree of four billion runs does not fit in memory"))
    }

    pub(crate) fn get(self) -> usize {
        self.0 as usize
    }
}

impl Run {
    /// The place at which it stands in line for its first slot.
    pub(super) fn place(&self) -> Place {
        Place { parent: self.parent, position: self.position }
    }

    /// Levels below the root.
    pub(crate) fn depth(&self) -> u32 {
        self.position.depth
    }

    pub(crate) fn live(&self) -> Option<&Live> {
        match &self.body {
            Body::Live(live) => Some(live),
            Body::Ended(_) => None,
        }
    }

    /// The run while an attempt of it runs or waits; none while it stands in line for an attempt.
    pub(crate) fn running(&self) -> Option<&Live> {
        self.live().filter(|live| live.phase != SlotState::Queued)
    }

    pub(crate) fn live_mut(&mut self) -> Option<&mut Live> {
        match &mut self.body {
            Body::Live(live) => Some(live),
            Body::Ended(_) => None,
        }
    }

    pub(crate) fn status(&self) -> RunStatus {
        match &self.body {
            Body::Live(live) => live.phase.status(),
            Body::Ended(status) => *status,
        }
    }
}

impl Live {
    /// True if the work of the run is done again where a supervisor dies under it.
    pub(super) fn may_repeat(&self) -> bool {
        self.under.on_interrupt(self.origin) == OnInterrupt::Rerun
    }

    /// True from a call to its service that failed until the service answers.
    pub(super) fn backs_off(&self) -> bool {
        self.backoff.as_ref().is_some_and(|backoff| backoff.is_open)
    }

    /// True if the last answer to a request of it to a model said that a quota is used up.
    pub(super) fn met_wall(&self) -> bool {
        self.requests.as_ref().is_some_and(|requests| requests.met_wall())
    }

    /// True if a request of this attempt to a model has gone through the meter, or has wanted to.
    pub(super) fn has_asked(&self) -> bool {
        self.requests.as_ref().is_some_and(|requests| requests.has_asked)
    }

    /// Returns usage and cost of all attempts, given those of the last one.
    pub(crate) fn in_all(&self, usage: Usage, cost: Cost) -> (Usage, Cost) {
        let add = |sum: (Usage, Cost), earlier: &AttemptUse| {
            (earlier.usage + sum.0, earlier.cost + sum.1)
        };
        self.earlier.iter().fold((usage, cost), add)
    }

    /// Returns what a metered run has used of which no request has left through the meter. A program that asks the meter, and is told to wait or
    /// that a request is too much, does not ask elsewhere.
    pub(super) fn unasked(&self) -> (Usage, Cost) {
        match self.asks_elsewhere() {
            false => (Usage::default(), Cost::NONE),
            true => (Usage::UNKNOWN, Cost::unknown()),
        }
    }

    /// True if a metered run may have asked a model elsewhere in this attempt: it has asked nothing through the meter.
    fn asks_elsewhere(&self) -> bool {
        !self.has_asked() && self.unasked_cost != CostKnowledge::None
    }

    /// Returns what it has used in an attempt of which its runtime says nothing more at its end.
    pub(super) fn so_far(&self, reason: &Reason) -> (Usage, Cost) {
        match &self.told {
            Some(told) if reason.status().is_success() => **told,
            None if never_started(reason) => (Usage::default(), Cost::NONE),
            told => self.cut_off(told.as_deref().copied()),
        }
    }

    /// Returns what it has used where it was cut off after it had reported this.
    pub(super) fn cut_off(&self, told: Option<(Usage, Cost)>) -> (Usage, Cost) {
        match (told, self.cost) {
            (None, CostKnowledge::Metered) => self.unasked(),
            (None, CostKnowledge::None) => (Usage::default(), Cost::NONE),
            // What an earlier supervisor has found is none, and no report of a program that might have used more since.
            (Some((usage, cost)), CostKnowledge::None) if usage == Usage::default() => {
                (usage, cost)
            }
            // Whatever it has used went through the meter, and is charged. An attempt before this one may have told it.
            (Some(told), CostKnowledge::Metered) if !self.asks_elsewhere() => told,
            (None, _) => (Usage::UNKNOWN, Cost::unknown()),
            (Some((usage, cost)), CostKnowledge::None) => (usage.cut_off(), cost),
            (Some((usage, cost)), _) => (usage.cut_off(), cost.cut_off()),
        }
    }

    /// Returns the same of a run that was charged in full for what its last attempt may have used: `lost` is the charge, and part of what was
    /// told. In a unit in which there was one, nothing is unknown any more, and nothing is charged for it a second time.
    pub(super) fn cut_off_and_charged(
        &self,
        told: Option<(Usage, Cost)>,
        lost: (Usage, Cost),
    ) -> (Usage, Cost) {
        let (mut usage, mut cost) = self.cut_off(told);
        let (told_usage, told_cost) = told.unwrap_or_default();
        if lost.0 != Usage::default() {
            usage = told_usage;
        }
        if !lost.1.is_none() {
            cost = told_cost;
        }
        (usage, cost)
    }
}

/// Returns true if no program has worked where an attempt ended so.
pub(super) const fn never_started(reason: &Reason) -> bool {
    matches!(reason, Reason::CannotStart { .. } | Reason::InputUnreadable { .. })
}

impl SlotState {
    pub(crate) fn status(&self) -> RunStatus {
        match self {
            Self::Queued => RunStatus::Queued,
            Self::Holding { started: false, .. } => RunStatus::Starting,
            Self::Holding { started: true, .. } | Self::Holder => RunStatus::Running,
            Self::Lent | Self::Returning { .. } => RunStatus::Waiting,
        }
    }
}

/// A run that waits for a service for longer than this gives no sign of life.
const LONGEST_SILENT_WAIT: Duration = Duration::from_secs(60 * 60);

impl RunClock {
    /// Starts counting: the run holds a slot.
    pub(crate) fn resume(&mut self, now: Timestamp) {
        self.since = Some(now);
        self.last_sign = now;
    }

    /// Stops counting: the run holds no slot.
    pub(crate) fn pause(&mut self, now: Timestamp) {
        if let Some(since) = self.since.take() {
            self.used = self.used.saturating_add(now.since(since));
        }
    }

    /// Counts time in which the run has worked without a slot.
    pub(crate) fn spend(&mut self, time: Duration) {
        self.used = self.used.saturating_add(time);
    }

    /// True if a limit of this many seconds is over, with or without a slot.
    pub(crate) fn is_over(&self, now: Timestamp, seconds: u64) -> bool {
        let held = self.since.map_or(Duration::ZERO, |since| now.since(since));
        seconds > 0 && self.used.saturating_add(held) >= Duration::from_secs(seconds)
    }

    /// Notes a sign of life.
    pub(crate) fn sign(&mut self, now: Timestamp) {
        self.last_sign = self.last_sign.max(now);
    }

    /// Notes that the run waits until this moment, and may be silent until then.
    pub(crate) fn waits_until(&mut self, until: Timestamp, now: Timestamp) {
        self.sign(until.min(now.plus(LONGEST_SILENT_WAIT)));
    }

    /// Notes that the wait is over.
    pub(crate) fn waits_no_more(&mut self, now: Timestamp) {
        self.last_sign = self.last_sign.min(now);
    }

    /// Returns the moment at which a limit of so many seconds is over, if the run keeps its slot until then. None without
    /// limit or slot.
    pub(crate) fn timeout_at(&self, seconds: u64) -> Option<Timestamp> {
        let left = Duration::from_secs(seconds).saturating_sub(self.used);
        (seconds > 0).then_some(self.since?.plus(left))
    }

    /// Returns the moment of the last sign of life.
    pub(crate) fn last_sign(&self) -> Timestamp {
        self.last_sign
    }

    /// Returns the moment at which the run will have been silent for so many seconds. None without limit or slot.
    pub(crate) fn idle_at(&self, seconds: u64) -> Option<Timestamp> {
        self.since?;
        (seconds > 0).then(|| self.last_sign.plus(Duration::from_secs(seconds)))
    }
}
