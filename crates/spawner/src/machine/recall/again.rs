//! A tree that is over, with which the operator goes on: its root is reopened, and pieces without an answer run again.
//!
//! Ended runs stay ended. A piece that runs again is a new run in the same place, which names the one that it replaces.

use std::sync::Arc;

use offshoot_model::{
    AgentId, BudgetGrant, EventKind, MicroUsd, PiecesAgain, RootReopened, RunId, RunStatus,
};
use offshoot_policy::budget::{Balance, Unit};

use super::super::Machine;
use super::super::run::{Body, Live, RunIndex, SlotState};
use super::{Past, Recall};

/// The reason why a root is not reopened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotReopened {
    /// The root is not over: its supervisor was killed.
    #[error("the tree has lost its supervisor, and is not over")]
    Alive,
    /// The root is an agent itself.
    #[error(
        "its root is the agent `{agent}` on the runtime `{runtime}`, whose run is over ({status}): \
         only pieces of a map or a fanout run again"
    )]
    Agent {
        /// The agent.
        agent: AgentId,
        /// The runtime.
        runtime: Arc<str>,
        /// The way its run ended.
        status: RunStatus,
    },
    /// The time of the tree is over.
    #[error("the time of the tree is over")]
    OutOfTime,
    /// The budget of the tree is used up, or what is left of it is less than its last pieces used, as its pool measures it.
    #[error("the budget of the tree is too small: {}", shortage(*.unit, *.granted, *.used, *.each))]
    OutOfBudget {
        /// In this unit.
        unit: Unit,
        /// The amount that it had or would have, in tokens or millionths of a dollar.
        granted: u64,
        /// The amount that it has used.
        used: u64,
        /// The amount that one of its last pieces used.
        each: Option<u64>,
    },
    /// The budget that was given is not more than what the tree had.
    #[error("the tree had {} {}, and is given {}", show(*.unit, *.granted), .unit.as_str(), show(*.unit, *.given))]
    NotMore {
        /// In this unit.
        unit: Unit,
        /// The amount that it had.
        granted: u64,
        /// The amount that it would have.
        given: u64,
    },
    /// A budget was given to a tree that has none.
    #[error("the tree has no budget of {unit}, and gets none while it goes on", unit = .0.as_str())]
    Unbounded(Unit),
}

/// The pieces of a tree that have no answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unanswered {
    /// The number of those that would run.
    pub again: usize,
    /// The number of those that failed and would stay without an answer.
    pub failed: usize,
    /// The number of those that were cancelled and would stay without an answer.
    pub cancelled: usize,
}

/// The limits that the operator gives to a tree that was over, each in place of what it had; the others stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewLimits {
    /// The seconds that the tree has from here on.
    pub deadline_seconds: Option<u64>,
    /// The seconds that a piece may run which is admitted from here on; 0 = no limit. The configuration that the tree goes on with must
    /// say the same.
    pub run_timeout_seconds: Option<u64>,
    /// The seconds for which such a piece may be silent; 0 = no limit. The configuration must say the same.
    pub idle_timeout_seconds: Option<u64>,
    /// The budget of the whole tree with what it has used, in each unit in which one is given.
    pub budget: BudgetGrant,
}

/// The decision to reopen a root.
pub(super) struct Reopening {
    event: RootReopened,
    /// The amounts that its budget grows by.
    more: BudgetGrant,
}

/// The last run of a piece that is over.
pub(super) struct OverPiece {
    pub(super) run: RunId,
    pub(super) past: Past,
    pub(super) label: Option<Arc<str>>,
    /// True of a run that a merge asked for, which is no piece of the request.
    pub(super) merges: bool,
    /// True if it runs again with those that failed.
    pub(super) has_failed: bool,
    /// True if it runs again with those that were cancelled.
    pub(super) was_cancelled: bool,
    /// True if the budget was at its end while it was at work.
    pub(super) was_too_expensive: bool,
    /// True if it is to run again, and was not admitted since.
    pub(super) again: bool,
}

impl Recall {
    /// Decides to reopen the root, and which pieces run again. Nothing is recorded before [`Recall::reopen`].
    ///
    /// # Errors
    ///
    /// Fails if the root is not over, or is an agent.
    pub(crate) fn go_on(&mut self, again: PiecesAgain) -> Result<(), NotReopened> {
        if self.machine.is_open() {
            return Err(NotReopened::Alive);
        }
        if let Some(runtime) = &self.runtime {
            return Err(NotReopened::Agent {
                agent: self.agent.clone(),
                runtime: Arc::clone(runtime),
                status: self.machine.runs[RunIndex::ROOT].status(),
            });
        }
        self.choose(&again);
        let event = RootReopened { again, ..RootReopened::default() };
        self.reopening = Some(Reopening { event, more: BudgetGrant::default() });
        Ok(())
    }

    /// Gives a tree that is to be reopened these limits. What it has used stays used.
    ///
    /// # Errors
    ///
    /// Fails if it would have no time, or nothing to spend.
    pub(crate) fn give(&mut self, limits: NewLimits) -> Result<(), NotReopened> {
        let NewLimits { deadline_seconds, run_timeout_seconds, idle_timeout_seconds, budget } =
            limits;
        let Some(reopening) = &mut self.reopening else { return Ok(()) };
        let machine = &self.machine;
        if deadline_seconds.is_none() && machine.deadlines.has_passed(RunIndex::ROOT, self.last_at)
        {
            return Err(NotReopened::OutOfTime);
        }
        let added = |unit: Unit| machine.added(unit, unit.of(budget));
        let more = Unit::amounts([added(Unit::Tokens)?, added(Unit::Usd)?]);
        let again = std::mem::take(&mut reopening.event.again);
        reopening.event =
            RootReopened { again, deadline_seconds, run_timeout_seconds, idle_timeout_seconds };
        reopening.more = more;
        Ok(())
    }

    /// Counts the pieces without an answer that are over.
    pub(crate) fn unanswered(&self) -> Unanswered {
        let mut count = Unanswered::default();
        for piece in self.over.values() {
            match piece {
                OverPiece { has_failed: false, was_cancelled: false, .. } => {}
                OverPiece { again: true, .. } => count.again += 1,
                OverPiece { has_failed: true, .. } => count.failed += 1,
                OverPiece { .. } => count.cancelled += 1,
            }
        }
        count
    }

    /// Returns the places of pieces that do not run again, and true of those with an answer. They are over, or end with the supervisor that
    /// they lost.
    pub(crate) fn staying(&self) -> Vec<(u32, bool)> {
        let staying = self.over.iter().filter(|(_, piece)| !piece.again && !piece.merges);
        let staying = staying.map(|(&place, piece)| (place, piece.past.has_answer()));
        let ending = self.ending().into_iter().map(|place| (place, false));
        staying.chain(ending).collect()
    }

    /// Returns the label of the only pieces that may run of those that were never admitted, where they were chosen by one.
    pub(crate) fn only(&self) -> Option<&Arc<str>> {
        self.only.as_ref()
    }

    /// Returns the balance of the whole tree in each unit that a budget bounds, with what is added to it.
    pub(crate) fn budget(&self) -> Vec<(Unit, Balance)> {
        let more = self.reopening.as_ref().map_or(BudgetGrant::default(), |it| it.more);
        let root = self.machine.id(RunIndex::ROOT);
        let balance = |unit: Unit| {
            let balance = self.machine.books.ledger.balance(root, unit)?;
            let granted = balance.granted?.saturating_add(unit.of(more).unwrap_or(0));
            let taken = balance.used + balance.overrun + balance.reserved;
            let (whole, granted) = (u128::from(granted), Some(granted));
            let free = Some(whole.saturating_sub(taken));
            let deficit = taken.saturating_sub(whole);
            Some((unit, Balance { granted, free, deficit, ..balance }))
        };
        Unit::ALL.into_iter().filter_map(balance).collect()
    }

    /// Returns the number of pieces that are over or were taken up again, whatever became of them.
    pub(crate) fn pieces(&self) -> usize {
        let live = self.about.values().map(|about| &about.admitted);
        let live = live.filter(|admitted| admitted.place.is_some() && admitted.merges().is_none());
        self.over.values().filter(|piece| !piece.merges).count() + live.count()
    }

    /// Records that the root goes on.
    pub(super) fn record_reopening(&mut self) {
        let Some(Reopening { event, more }) = self.reopening.take() else { return };
        self.root_reopened(&event);
        self.machine.record(RunIndex::ROOT, EventKind::RootReopened(Box::new(event)));
        let [tokens, micro_usd] = Unit::ALL.map(|unit| unit.of(more).unwrap_or(0));
        if tokens > 0 || micro_usd > 0 {
            self.machine.record(RunIndex::ROOT, EventKind::BudgetRaised { tokens, micro_usd });
        }
    }

    /// The root goes on, in a live step or as the record says.
    pub(super) fn root_reopened(&mut self, event: &RootReopened) {
        self.choose(&event.again);
        if let Some(root) = self.root.take() {
            self.machine.revive(root, event);
        }
    }

    /// Chooses the pieces that run again. One that was chosen before, and has not run since, runs again too.
    fn choose(&mut self, again: &PiecesAgain) {
        for piece in self.over.values_mut() {
            // A run of a merge for which too little was left is asked for again with the others: the merge is not made without it.
            let unpaid = piece.merges && (piece.was_cancelled || piece.was_too_expensive);
            let by_end = again.failed && piece.has_failed
                || again.cancelled && piece.was_cancelled
                || unpaid;
            piece.again = (piece.again || by_end) && again.may_be(piece.label.as_deref());
        }
        self.only.clone_from(&again.only);
    }
}

impl Machine {
    /// Returns the amount by which the budget of a root that is to go on grows in a unit, if this one is given in place of what
    /// it had. Refuses what pays for no piece.
    fn added(&self, unit: Unit, given: Option<u64>) -> Result<u64, NotReopened> {
        let (root, ledger) = (self.id(RunIndex::ROOT), &self.books.ledger);
        let balance = ledger.balance(root, unit);
        let Some((had, balance)) = balance.and_then(|it| Some((it.granted?, it))) else {
            return given.map_or(Ok(0), |_| Err(NotReopened::Unbounded(unit)));
        };
        if let Some(given) = given.filter(|&given| given <= had) {
            return Err(NotReopened::NotMore { unit, granted: had, given });
        }
        let granted = given.unwrap_or(had);
        let used = u64::try_from(balance.used + balance.overrun).unwrap_or(u64::MAX);
        let each = ledger.piece_size(root, unit);
        // Under a budget of which nothing was used, that of zero too, what costs nothing runs.
        if used > 0 && granted.saturating_sub(used) < each.unwrap_or(1) {
            return Err(NotReopened::OutOfBudget { unit, granted, used, each });
        }
        Ok(granted - had)
    }

    /// Puts a root that is over back into the tree. What it has used stays used.
    fn revive(&mut self, mut root: Box<Live>, event: &RootReopened) {
        let children = &self.runs[RunIndex::ROOT].children;
        let lives = |run: &RunIndex| self.runs.live(*run).is_some();
        root.live_children = children.iter().copied().filter(lives).collect();
        root.phase = SlotState::Holder;
        (root.stopping, root.cut_off, root.mail) = (None, false, None);
        // What a root was given bounds its pieces where it is less than its terms: both say the new limits now.
        if event.run_timeout_seconds.or(event.idle_timeout_seconds).is_some() {
            let grant = Arc::make_mut(&mut root.grant);
            let (time, silence) = (event.run_timeout_seconds, event.idle_timeout_seconds);
            grant.run_timeout_seconds = time.unwrap_or(grant.run_timeout_seconds);
            grant.idle_timeout_seconds = silence.unwrap_or(grant.idle_timeout_seconds);
        }
        root.waits.clear();
        root.watchers.clear();
        self.runs[RunIndex::ROOT].body = Body::Live(root);
        self.live += 1;
        self.books.ledger.reopen(self.id(RunIndex::ROOT));
        if let Some(seconds) = event.deadline_seconds {
            self.set_deadline(RunIndex::ROOT, seconds);
        }
    }
}

/// The amounts of a budget that pays for no piece.
fn shortage(unit: Unit, granted: u64, used: u64, each: Option<u64>) -> String {
    let left = show(unit, granted.saturating_sub(used));
    let each = each.map(|each| format!(", and its last pieces used {} each", show(unit, each)));
    let (word, granted, used) = (unit.as_str(), show(unit, granted), show(unit, used));
    format!("{granted} {word} granted, {used} used, {left} left{}", each.unwrap_or_default())
}

/// An amount without its unit.
fn show(unit: Unit, amount: u64) -> String {
    match unit {
        Unit::Tokens => amount.to_string(),
        Unit::Usd => MicroUsd::from_micros(amount).to_string(),
    }
}
