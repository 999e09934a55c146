//! Pieces that draw from one pool: as they start, as they use more than they took, and for what they ask for below them.

use std::collections::BTreeSet;
use std::sync::Arc;

use offshoot_model::{BudgetGrant, Ending, EventKind, Grant, Pooled, Reason, SpawnRequest};
use offshoot_policy::budget::{Draw, Mark, Notice, Shortage, Unit};

use super::Machine;
use super::budget::own_budget;
use super::run::{Live, RunIndex};
use super::schedule::Halt;
use super::slots::Position;

impl Machine {
    /// Returns what a run that stands first in line draws as it starts.
    pub(super) fn draw(&self, run: RunIndex) -> Draw {
        match self.runs.live(run) {
            Some(live) if !live.grant.pooled.is_none() => {
                self.books.ledger.draw(self.id(run), self.most(run, live))
            }
            _ => Draw::Nothing,
        }
    }

    /// All that may start has started: of each run whose next piece waits because of the budget that its pieces share, and has a slot, it goes on
    /// record when that begins and ends.
    pub(super) fn tell_of_pools(&mut self, halt: Halt, mut short: BTreeSet<RunIndex>) {
        let has_none = short.is_empty() && self.short_pools.is_empty();
        if has_none || !self.is_open() {
            return;
        }
        // Not all of them were tried.
        if halt == Halt::Held {
            short.extend(&self.short_pools);
        }
        // Where no slot is free, its pieces wait for one.
        short.retain(|&parent| {
            let entry = &self.runs[parent];
            let below = Position { part: entry.below, depth: entry.position.depth + 1 };
            let is_live = entry.live().is_some();
            is_live && self.queue.new_of(Some(parent)) > 0 && self.slots.free_at(below)
        });
        let over: Vec<RunIndex> = self.short_pools.difference(&short).copied().collect();
        let new: Vec<RunIndex> = short.difference(&self.short_pools).copied().collect();
        for run in over {
            self.record(RunIndex::ROOT, EventKind::PoolEnough { run: self.id(run) });
        }
        for run in new {
            self.record(RunIndex::ROOT, EventKind::PoolShort { run: self.id(run) });
        }
    }

    /// A run takes its part. Recorded, so that it is never computed again.
    pub(super) fn take_from_pool(&mut self, run: RunIndex, drawn: BudgetGrant) {
        let [tokens, micro_usd] = Unit::ALL.map(|unit| unit.of(drawn).unwrap_or(0));
        if tokens > 0 || micro_usd > 0 {
            self.record(run, EventKind::BudgetDrawn { tokens, micro_usd });
        }
    }

    /// A run for which too little is left ends without having started.
    pub(super) fn cannot_pay(&mut self, run: RunIndex, shortage: Shortage) {
        let Shortage { unit, granted, used, asked } = shortage;
        let unit = unit.as_str().to_owned();
        self.finished(run, Ending::of(Reason::BudgetPool { unit, granted, used, asked }));
    }

    /// A run that has reached its part of the pool takes more out of it. False where the mark stands all the same.
    pub(super) fn draws_more(&mut self, run: RunIndex, notice: Notice) -> bool {
        let (id, unit) = (self.id(run), notice.unit);
        if !self.books.ledger.is_pooled(id, unit) {
            return false;
        }
        // A late report of an attempt that is over: the next one draws its part when it starts.
        if self.is_in_line(run) || self.takes_over {
            return true;
        }
        let more = self.more(run, unit, self.books.ledger.taken(id, unit), true);
        match notice.mark {
            // Told where nothing is left that it could take at its limit.
            Mark::Near => unit.of(more).is_some(),
            Mark::Limit => {
                self.take_from_pool(run, more);
                !self.books.ledger.is_used_up(id, unit)
            }
        }
    }

    /// A run that ends has used more than it took: the pool pays, as far as it can.
    pub(super) fn cover(&mut self, run: RunIndex, ending: &Ending) {
        let id = self.id(run);
        for unit in Unit::ALL {
            let (tokens, usd) = self.books.ledger.overrun(id, ending);
            let above = match unit {
                Unit::Tokens => tokens,
                Unit::Usd => usd.as_micros(),
            };
            if above > 0 && self.books.ledger.is_pooled(id, unit) {
                let granted = self.books.ledger.balance(id, unit).and_then(|it| it.granted);
                let target = u128::from(granted.unwrap_or(0)) + u128::from(above);
                let more = self.more(run, unit, target, false);
                self.take_from_pool(run, more);
            }
        }
    }

    /// A run asks for a child that its part cannot pay: it takes more out of the pool. True if it could.
    pub(super) fn draws_for_child(&mut self, run: RunIndex, request: &SpawnRequest) -> bool {
        self.draws(run, own_budget(request))
    }

    /// A run takes more out of the pool where what it has left is less than this, or nothing where no amount is named. True if it could.
    pub(super) fn draws(&mut self, run: RunIndex, asked: BudgetGrant) -> bool {
        let id = self.id(run);
        let mut drawn = Vec::new();
        for unit in Unit::ALL {
            let asked = unit.of(asked);
            let left = unit.of(self.books.ledger.left(id)).unwrap_or(0);
            // One unit is left to a run that has given back what it did not use.
            let fits = asked.map_or(left > 1, |asked| asked <= left);
            if fits || !self.books.ledger.is_pooled(id, unit) {
                continue;
            }
            let target = self.books.ledger.taken(id, unit) + u128::from(asked.unwrap_or(0));
            let more = self.more(run, unit, target, asked.is_none());
            let enough =
                asked.is_none_or(|asked| left.saturating_add(unit.of(more).unwrap_or(0)) >= asked);
            match enough && unit.of(more).is_some() {
                true => drawn.push(more),
                // One unit without the other pays for nothing, and others could use it.
                false => return false,
            }
        }
        drawn.iter().for_each(|&more| self.take_from_pool(run, more));
        !drawn.is_empty()
    }

    /// The grant of a run, for its launch: of a pool it may use all that others have not taken.
    pub(super) fn grant_of(&self, run: RunIndex, live: &Live) -> Arc<Grant> {
        if live.grant.pooled.is_none() {
            return Arc::clone(&live.grant);
        }
        let budget = self.books.ledger.reach(self.id(run), self.most(run, live));
        Arc::new(Grant { budget, pooled: Pooled::default(), ..(*live.grant).clone() })
    }

    /// The amounts that a run may still use at its launch: an attempt before it may have used a part.
    pub(super) fn left_at_launch(&self, run: RunIndex, live: &Live) -> BudgetGrant {
        self.books.ledger.within_reach(self.id(run), self.most(run, live))
    }

    /// As far as the run's own budget permits.
    fn more(&self, run: RunIndex, unit: Unit, target: u128, beyond: bool) -> BudgetGrant {
        let id = self.id(run);
        let more = self.books.ledger.more(id, unit, target, beyond);
        let own = self.runs.live(run).and_then(|live| unit.of(self.most(run, live)));
        let granted = self.books.ledger.balance(id, unit).and_then(|balance| balance.granted);
        let room = own.map_or(u64::MAX, |own| own.saturating_sub(granted.unwrap_or(0)));
        unit.amount(unit.of(more).unwrap_or(0).min(room))
    }
}
