//! Budgets, added up again.
//!
//! An account for each run, bounded or not. What a run and everything below it has spent is one number; what is still
//! held for it is what its grant leaves of that, or, once it is over, no more than what is held below it. What is free
//! follows from the two, and nothing else is kept.

use std::collections::HashMap;

use offshoot_model::{BudgetGrant, Cost, Ending, Reason, RunId, Usage};

use crate::findings::{Account, Unit};

const UNITS: [Unit; 2] = [Unit::Tokens, Unit::MicroUsd];

/// All accounts of a tree.
#[derive(Default)]
pub(crate) struct Books(HashMap<RunId, Entry>);

struct Entry {
    parent: Option<RunId>,
    is_over: bool,
    sums: [Sum; 2],
}

/// One account in one unit.
#[derive(Clone, Copy, Default)]
struct Sum {
    granted: Option<u64>,
    /// Reported by the run itself.
    own: u128,
    /// Whether that is all.
    is_whole: bool,
    /// By everything directly below, with what is below that.
    below: Carried,
    /// What the parent has counted of this one.
    carried: Carried,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Carried {
    within: u128,
    above: u128,
    held: u128,
}

impl Books {
    /// Opens an account; in words what its parent could not promise.
    pub(crate) fn open(
        &mut self,
        run: RunId,
        parent: Option<RunId>,
        grant: &BudgetGrant,
    ) -> Vec<String> {
        let amounts = [grant.tokens, grant.usd.map(offshoot_model::MicroUsd::as_micros)];
        let mut broken = Vec::new();
        for (at, amount) in amounts.into_iter().enumerate() {
            let free = parent.and_then(|parent| self.0.get(&parent)?.sums[at].free());
            let unit = UNITS[at].as_str();
            match (free, amount) {
                (Some(free), Some(amount)) if u128::from(amount) > free => {
                    broken.push(format!("was promised {amount} {unit} of {free} that were free"));
                }
                (Some(_), None) => {
                    broken.push(format!("has no limit of {unit} below one that has"));
                }
                _ => {}
            }
        }
        let sums = amounts.map(|granted| Sum { granted, ..Sum::default() });
        self.0.insert(run, Entry { parent, is_over: false, sums });
        self.carry(run);
        broken
    }

    /// Takes in what the operator has added from outside: to a run, and to everybody above it.
    pub(crate) fn raise(&mut self, run: RunId, more: [u64; 2]) {
        let mut at = Some(run);
        while let Some(entry) = at.and_then(|run| self.0.get_mut(&run)) {
            for (sum, more) in entry.sums.iter_mut().zip(more) {
                sum.granted = sum.granted.map(|granted| granted.saturating_add(more));
            }
            at = entry.parent;
        }
        self.carry(run);
    }

    /// Takes in a report, which replaces the one before; nothing spent is ever unspent. The runs whose limit is reached
    /// now, from this one upwards.
    pub(crate) fn report(&mut self, run: RunId, usage: &Usage, cost: &Cost) -> Vec<RunId> {
        let before = self.exhausted(run);
        self.take_in(run, usage, cost);
        self.carry(run);
        self.newly(run, &before)
    }

    /// Closes an account. What it used beyond its grant in each unit, and the runs above it whose limit is reached now.
    pub(crate) fn close(&mut self, run: RunId, ending: &Ending) -> ([u128; 2], Vec<RunId>) {
        let before = self.exhausted(run);
        // Whoever was interrupted has said nothing with its end.
        let says_nothing = ending.reason == Reason::Interrupted
            && ending.usage == Usage::default()
            && ending.cost.is_none();
        if !says_nothing {
            self.take_in(run, &ending.usage, &ending.cost);
        }
        let Some(entry) = self.0.get_mut(&run) else { return Default::default() };
        for sum in &mut entry.sums {
            // What nobody knows costs all that was left.
            if !sum.is_whole {
                sum.own += sum.free().unwrap_or(0);
            }
        }
        entry.is_over = true;
        let beyond = entry.sums.map(|sum| sum.beyond());
        self.carry(run);
        (beyond, self.newly(run, &before))
    }

    /// Where a run's account stands, in the units it is bounded in.
    pub(crate) fn accounts(&self, run: RunId) -> Vec<Account> {
        let Some(entry) = self.0.get(&run) else { return Vec::new() };
        let bounded = |(unit, sum): (Unit, &Sum)| {
            let granted = sum.granted?;
            let used = sum.own + sum.below.within;
            let Carried { above: overrun, held: reserved, .. } = sum.below;
            let taken = used + overrun + reserved;
            let free = u128::from(granted).saturating_sub(taken);
            let deficit = taken.saturating_sub(granted.into());
            Some(Account { unit, granted, used, overrun, reserved, free, deficit })
        };
        UNITS.into_iter().zip(&entry.sums).filter_map(bounded).collect()
    }

    fn take_in(&mut self, run: RunId, usage: &Usage, cost: &Cost) {
        let Some(entry) = self.0.get_mut(&run).filter(|entry| !entry.is_over) else { return };
        let [tokens, usd] = &mut entry.sums;
        let known = usage.total().known();
        tokens.own = tokens.own.max(known.unwrap_or(0).into());
        tokens.is_whole = known.is_some();
        let priced = cost.known_usd.as_micros().saturating_add(cost.estimated_usd.as_micros());
        usd.own = usd.own.max(priced.into());
        usd.is_whole = cost.unknown_runs == 0;
    }

    /// Tells everybody above what has changed.
    fn carry(&mut self, run: RunId) {
        let mut at = Some(run);
        while let Some(run) = at {
            let Some(entry) = self.0.get_mut(&run) else { return };
            let is_over = entry.is_over;
            let changes = entry.sums.each_mut().map(|sum| {
                let now = sum.to_carry(is_over);
                (std::mem::replace(&mut sum.carried, now), now)
            });
            at = entry.parent;
            let Some(parent) = at.and_then(|parent| self.0.get_mut(&parent)) else { return };
            for (sum, (before, now)) in parent.sums.iter_mut().zip(changes) {
                sum.below.within = sum.below.within - before.within + now.within;
                sum.below.above = sum.below.above - before.above + now.above;
                sum.below.held = sum.below.held - before.held + now.held;
            }
        }
    }

    /// This run and those above it that have used all they had.
    fn exhausted(&self, run: RunId) -> Vec<RunId> {
        let mut found = Vec::new();
        let mut at = Some(run);
        while let Some((run, entry)) = at.and_then(|run| Some((run, self.0.get(&run)?))) {
            if entry.sums.iter().any(Sum::is_exhausted) {
                found.push(run);
            }
            at = entry.parent;
        }
        found
    }

    fn newly(&self, run: RunId, before: &[RunId]) -> Vec<RunId> {
        self.exhausted(run).into_iter().filter(|run| !before.contains(run)).collect()
    }
}

impl Sum {
    fn spent(&self) -> u128 {
        self.own + self.below.within + self.below.above
    }

    fn free(&self) -> Option<u128> {
        Some(u128::from(self.granted?).saturating_sub(self.spent() + self.below.held))
    }

    fn beyond(&self) -> u128 {
        self.granted.map_or(0, |granted| self.spent().saturating_sub(granted.into()))
    }

    /// A budget of which nothing was used is not used up, even if it is zero.
    fn is_exhausted(&self) -> bool {
        self.granted.is_some_and(|granted| self.spent() > 0 && self.spent() >= granted.into())
    }

    fn to_carry(self, is_over: bool) -> Carried {
        let spent = self.spent();
        let Some(granted) = self.granted else {
            return Carried { within: spent, above: 0, held: self.below.held };
        };
        let within = spent.min(granted.into());
        let rest = u128::from(granted) - within;
        let held = if is_over { rest.min(self.below.held) } else { rest };
        Carried { within, above: spent - within, held }
    }
}
