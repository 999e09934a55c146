//! The share of one tree in the budget of a day.

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{BudgetGrant, Cost, EventKind, MicroUsd, RootId, Timestamp, Tree, Usage};
use offshoot_spawner::{Clock, EventStream, Session, SystemClock};
use offshoot_store::{Store, StoreError};
use parking_lot::Mutex;

use super::local_day::{local_day, until_midnight};
use super::{Amounts, DayBudget, DayError, Written, add, amounts};

/// The longest wait for an event before the day is looked at again. Timers of tokio stand still while the computer sleeps.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The share of one tree.
#[derive(Debug)]
pub(crate) struct DayShare {
    of: DayBudget,
    path: PathBuf,
    file: File,
    /// The content that an earlier supervisor of the tree has left, which stands again where this one does not go on.
    earlier: Option<Written>,
    state: Mutex<State>,
}

/// The content of the file, as this process has written it last.
#[derive(Debug)]
struct State {
    written: Written,
    /// True once the tree is over: nothing more is reserved for it.
    is_settled: bool,
}

impl DayShare {
    /// The share whose file was just written, and is locked.
    pub(super) fn new(
        of: DayBudget,
        (path, file): (PathBuf, File),
        written: Written,
        earlier: Option<Written>,
    ) -> Self {
        let state = Mutex::new(State { written, is_settled: false });
        Self { of, path, file, earlier, state }
    }

    /// Keeps what is reserved for a tree that was opened, and gives it back where it was not.
    pub(crate) fn kept_by<E>(
        share: Option<Self>,
        opened: Result<Session, E>,
    ) -> Result<(Session, Option<Arc<Self>>), E> {
        match opened {
            Ok(session) => {
                share.iter().for_each(|share| share.opened(session.root()));
                Ok((session, share.map(Arc::new)))
            }
            Err(error) => {
                share.into_iter().for_each(Self::release);
                Err(error)
            }
        }
    }

    /// The tree is open, and has this root.
    pub(crate) fn opened(&self, root: RootId) {
        self.rewrite(|State { written, .. }| written.root = Some(root));
    }

    /// The tree was not opened, or did not go on.
    pub(crate) fn release(self) {
        let given_back = self.of.turn().and_then(|_turn| match self.earlier {
            Some(earlier) => earlier.write(&self.file),
            None => fs::remove_file(&self.path),
        });
        // The tree then counts as having spent what was reserved.
        if let Err(error) = given_back {
            tracing::warn!(%error, "what was reserved for a tree that was not opened is not given back");
        }
    }

    /// Reserves more, for a budget that is raised. For a tree that is over nothing is reserved.
    pub(crate) fn reserve_more(&self, more: BudgetGrant, now: Timestamp) -> Result<(), DayError> {
        let more = in_units(more);
        self.lives_on(now);
        let look = || {
            let _turn = self.of.turn()?;
            let counted = self.of.count(None, now, Some(&self.path))?;
            let mut state = self.state.lock();
            if state.is_settled {
                return Ok(Ok(()));
            }
            let own = add(state.written.reserved, state.written.spent);
            let checked = self.of.check(add(counted.taken, own), more, [0; 2]);
            if checked.is_ok() {
                let reserved = add(state.written.reserved, more);
                let written = Written { reserved, ..state.written };
                written.write(&self.file)?;
                state.written = written;
            }
            Ok(checked)
        };
        let folder = self.of.folder.clone();
        look().map_err(|source| DayError::Folder { folder, source })?
    }

    /// Gives back what was reserved for a raise that was refused.
    pub(crate) fn give_back(&self, more: BudgetGrant) {
        let more = in_units(more);
        self.rewrite(|State { written, is_settled }| {
            if !*is_settled {
                written.reserved =
                    [0, 1].map(|unit| written.reserved[unit].saturating_sub(more[unit]));
            }
        });
    }

    /// Follows a tree to its end, and writes down what it has spent. Where the record ends before the tree, all that was reserved stays so.
    pub(crate) async fn follow(self: Arc<Self>, root: RootId, mut events: EventStream) {
        let (mut usage, mut cost, mut is_over) = (Usage::default(), Cost::NONE, false);
        loop {
            let today = until_midnight(SystemClock.now()).min(LONGEST_WAIT);
            let Ok(event) = tokio::time::timeout(today, events.next()).await else {
                self.lives_on(SystemClock.now());
                continue;
            };
            let Some(event) = event else { break };
            let Ok(event) = event else { return };
            self.lives_on(event.at);
            match &event.kind {
                EventKind::Ended(ending) => {
                    (usage, cost) = (usage + ending.usage, cost + ending.cost);
                    is_over |= event.run == root.run();
                }
                EventKind::RootReopened(_) => is_over = false,
                _ => {}
            }
        }
        if is_over {
            self.settle(usage, cost, SystemClock.now());
        }
    }

    /// The tree lives at this time: on a new day it counts with what is reserved for it.
    pub(super) fn lives_on(&self, now: Timestamp) {
        let today = local_day(now);
        if self.state.lock().written.day < today {
            self.rewrite(|State { written, .. }| (written.day, written.spent) = (today, [0; 2]));
        }
    }

    /// The tree is over, and has used so much in all its lives. What is not known counts as all that was reserved.
    pub(super) fn settle(&self, usage: Usage, cost: Cost, now: Timestamp) {
        self.lives_on(now);
        self.rewrite(|State { written, is_settled }| {
            let used = amounts(usage, cost, add(written.before, written.reserved));
            let spent = [0, 1].map(|unit| used[unit].saturating_sub(written.before[unit]));
            written.spent = add(written.spent, spent);
            written.reserved = [0; 2];
            *is_settled = true;
        });
    }

    /// Changes the file in its turn, which is always taken before the lock of the state.
    fn rewrite(&self, change: impl FnOnce(&mut State)) {
        let turn = self.of.turn();
        let mut state = self.state.lock();
        change(&mut state);
        if let Err(error) = turn.and_then(|_turn| state.written.write(&self.file)) {
            tracing::warn!(%error, "what a tree has spent of the day is not written down");
        }
    }
}

/// Returns what a tree may still spend by its record, where its budget is raised to `given`, and what it has used.
pub(crate) fn left(
    store: &dyn Store,
    root: RootId,
    given: BudgetGrant,
) -> Result<(BudgetGrant, (Usage, Cost)), StoreError> {
    let (mut tree, mut granted) = (Tree::new(), BudgetGrant::default());
    for event in store.events(root, 0) {
        let event = event?;
        match &event.kind {
            EventKind::Admitted(admitted) if event.run == root.run() => {
                granted = admitted.grant.budget;
            }
            // A raise of any run is one of all runs above it.
            EventKind::BudgetRaised { tokens, micro_usd } => {
                granted.tokens = granted.tokens.map(|had| had.saturating_add(*tokens));
                let more = |had: MicroUsd| {
                    MicroUsd::from_micros(had.as_micros().saturating_add(*micro_usd))
                };
                granted.usd = granted.usd.map(more);
            }
            _ => {}
        }
        tree.apply(&event);
    }
    let (usage, cost) = tree.total();
    let [usd, tokens] = amounts(usage, cost, [0; 2]);
    let usd_left = |had: MicroUsd| MicroUsd::from_micros(had.as_micros().saturating_sub(usd));
    let left = BudgetGrant {
        usd: granted.usd.max(given.usd).map(usd_left),
        tokens: granted.tokens.max(given.tokens).map(|had| had.saturating_sub(tokens)),
    };
    Ok((left, (usage, cost)))
}

fn in_units(budget: BudgetGrant) -> Amounts {
    [budget.usd.map_or(0, MicroUsd::as_micros), budget.tokens.unwrap_or(0)]
}
