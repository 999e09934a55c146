//! A tree that is over, with which the operator goes on: its root is reopened, and pieces without an answer run again.
//!
//! Ended runs stay ended. A piece that runs again is a new run in the same place, which names the one that it replaces.

use std::sync::Arc;

use offshoot_model::{BudgetGrant, EventKind, MicroUsd, PiecesAgain, RootReopened, RunId};
use offshoot_policy::budget::Unit;

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
    #[error("the root of the tree is an agent: only pieces of a map or a fanout run again")]
    Agent,
    /// The time of the tree is over.
    #[error("the time of the tree is over")]
    OutOfTime,
    /// The budget of the tree is used up.
    #[error("the budget of the tree is used up: it had {} {}", show(*.unit, *.granted), .unit.as_str())]
    OutOfBudget {
        /// In this unit.
        unit: Unit,
        /// The amount that it had, in tokens or millionths of a dollar.
        granted: u64,
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
    #[error("the tree has no budget of {}, and gets none while it goes on", .0.as_str())]
    Unbounded(Unit),
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
        if self.machine.runs[RunIndex::ROOT.get()].live().is_some() {
            return Err(NotReopened::Alive);
        }
        if self.root.is_none() {
            return Err(NotReopened::Agent);
        }
        self.choose(&again);
        let event = RootReopened { again, deadline_seconds: None };
        self.reopening = Some(Reopening { event, more: BudgetGrant::default() });
        Ok(())
    }

    /// Gives a tree that is to be reopened so many seconds from then on, and this budget in place of what it had, in each unit in
    /// which one is given. What it has used stays used.
    ///
    /// # Errors
    ///
    /// Fails if it would have no time, or nothing to spend.
    pub(crate) fn give(
        &mut self,
        deadline_seconds: Option<u64>,
        budget: BudgetGrant,
    ) -> Result<(), NotReopened> {
        let Some(reopening) = &mut self.reopening else { return Ok(()) };
        let machine = &self.machine;
        if deadline_seconds.is_none() && machine.deadlines.has_passed(RunIndex::ROOT, self.last_at)
        {
            return Err(NotReopened::OutOfTime);
        }
        let mut more = BudgetGrant::default();
        for unit in Unit::ALL {
            let balance = machine.books.ledger.balance(machine.id(RunIndex::ROOT), unit);
            let bound = balance.and_then(|balance| Some((balance.granted?, balance)));
            let added = match (bound, unit.of(budget)) {
                // Under a budget of which nothing was used, that of zero too, what costs nothing runs.
                (Some((granted, left)), None)
                    if left.free == Some(0) && left.used + left.overrun > 0 =>
                {
                    return Err(NotReopened::OutOfBudget { unit, granted });
                }
                (_, None) => continue,
                (None, Some(_)) => return Err(NotReopened::Unbounded(unit)),
                (Some((granted, _)), Some(given)) if given <= granted => {
                    return Err(NotReopened::NotMore { unit, granted, given });
                }
                (Some((granted, _)), Some(given)) => given - granted,
            };
            match unit {
                Unit::Tokens => more.tokens = Some(added),
                Unit::Usd => more.usd = Some(MicroUsd::from_micros(added)),
            }
        }
        reopening.event.deadline_seconds = deadline_seconds;
        reopening.more = more;
        Ok(())
    }

    /// Counts the pieces without an answer: those that are over and are to run again, and those that are over and stay as they are.
    pub(crate) fn unanswered(&self) -> (usize, usize) {
        let over = self.over.values().filter(|piece| piece.has_failed || piece.was_cancelled);
        let (mut again, mut stay) = (0, 0);
        over.for_each(|piece| if piece.again { again += 1 } else { stay += 1 });
        (again, stay)
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
        let BudgetGrant { tokens, usd } = more;
        let (tokens, micro_usd) = (tokens.unwrap_or(0), usd.map_or(0, MicroUsd::as_micros));
        if tokens > 0 || micro_usd > 0 {
            self.machine.record(RunIndex::ROOT, EventKind::BudgetRaised { tokens, micro_usd });
        }
    }

    /// The root goes on, in a live step or as the record says.
    pub(super) fn root_reopened(&mut self, event: &RootReopened) {
        self.choose(&event.again);
        if let Some(root) = self.root.take() {
            self.machine.revive(root, event.deadline_seconds);
        }
    }

    /// Chooses the pieces that run again. One that was chosen before, and has not run since, runs again too.
    fn choose(&mut self, again: &PiecesAgain) {
        for piece in self.over.values_mut() {
            let by_end = again.failed && piece.has_failed || again.cancelled && piece.was_cancelled;
            piece.again = (piece.again || by_end) && again.may_be(piece.label.as_deref());
        }
        self.only.clone_from(&again.only);
    }
}

impl Machine {
    /// Puts a root that is over back into the tree. What it has used stays used.
    fn revive(&mut self, mut root: Box<Live>, deadline_seconds: Option<u64>) {
        let children = &self.runs[RunIndex::ROOT.get()].children;
        let lives = |run: &RunIndex| self.runs[run.get()].live().is_some();
        root.live_children = children.iter().copied().filter(lives).collect();
        root.phase = SlotState::Holder;
        (root.stopping, root.cut_off, root.mail) = (None, false, None);
        root.waits.clear();
        root.watchers.clear();
        self.runs[RunIndex::ROOT.get()].body = Body::Live(root);
        self.live += 1;
        self.books.ledger.reopen(self.id(RunIndex::ROOT));
        if let Some(seconds) = deadline_seconds {
            self.set_deadline(RunIndex::ROOT, seconds);
        }
    }
}

/// An amount without its unit.
fn show(unit: Unit, amount: u64) -> String {
    match unit {
        Unit::Tokens => amount.to_string(),
        Unit::Usd => MicroUsd::from_micros(amount).to_string(),
    }
}
