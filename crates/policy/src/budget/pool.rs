//! Budgets that children share: each draws its part as it starts, and more when it has used that.
//!
//! The use of a piece is known only once it has ended. So each piece draws the median of what the last ones used; before the
//! first of them has ended, a plausible amount, and all together at most half of what there is. A piece for which too
//! little is left waits while another one runs, because that may leave some of its part.
//!
//! One cheap piece says little about the others. So the number that work at once grows with the number that have ended, to twice as many
//! at each moment, where more than work before the first end.

use std::collections::VecDeque;

use offshoot_config::{Config, Valued};
use offshoot_model::{BudgetGrant, MicroUsd, Pooled, RunId};

use super::account::Account;
use super::{Ledger, Unit};

/// So many ends are remembered: enough for a median, and what pieces use may change in the course of a map.
const REMEMBERED: usize = 63;

/// The amount that a piece draws before any has ended: a short task of a coding agent. Only a first guess: what the first
/// pieces use takes its place. Where the price of its model is known, the dollars are those of so many tokens.
const PLAUSIBLE: [u64; 2] = [100_000, 250_000];

/// The part of the plausible tokens that a model writes: one in twenty.
const WRITTEN: u64 = 20;

/// The pool of one parent.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    /// Children that hold a part of it.
    holders: u32,
    /// Children that have ended, of which it is known what they used.
    ended: u32,
    /// The amounts that the last children used, by unit.
    used: [VecDeque<u64>; 2],
}

/// The part of a pool that a run is to have as it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Draw {
    /// The run starts with what it has.
    Nothing,
    /// The run draws so much first.
    Take(BudgetGrant),
    /// The run waits for the end of one beside it.
    Wait,
    /// There is too little, and no run beside it could leave any.
    Never(Shortage),
}

/// An amount that a pool does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// Of what.
    pub unit: Unit,
    /// The whole budget.
    pub granted: u64,
    /// The amount that is used.
    pub used: u64,
    /// The amount that was to be drawn.
    pub asked: u64,
}

/// Returns what the first child of a parent with these amounts draws from the pool, where it asks for no amount. `plausible` are the
/// dollars that it plausibly uses, where they are known.
pub fn first_part(whole: BudgetGrant, plausible: Option<MicroUsd>) -> BudgetGrant {
    Unit::grant(|unit| unit.of(whole).map(|whole| first_of(plausible_in(unit, plausible), whole)))
}

/// Returns the number of children of a parent with these amounts that work at once before the first of them has ended, where they ask for no
/// amount: those whose plausible parts are together at most half of the whole, and one in any case.
pub fn first_pieces(whole: BudgetGrant, plausible: Option<MicroUsd>) -> u64 {
    let parts = |unit: Unit| Some(unit.of(whole)? / 2 / plausible_in(unit, plausible).max(1));
    Unit::ALL.into_iter().filter_map(parts).min().unwrap_or(u64::MAX).max(1)
}

/// Returns the amount that a child plausibly uses in a unit, with the dollars where they are known.
fn plausible_in(unit: Unit, usd: Option<MicroUsd>) -> u64 {
    let by_price = usd.filter(|_| unit == Unit::Usd).map(MicroUsd::as_micros);
    by_price.unwrap_or(PLAUSIBLE[unit as usize])
}

/// Before any child has ended: a guess, and no more than half of the whole.
fn first_of(guess: u64, whole: u64) -> u64 {
    guess.min(whole.div_ceil(2))
}

/// Returns the dollars that a piece plausibly uses, where the configuration has the price of its model: the one that is named, or that of its
/// runtime's options.
pub fn plausible_usd(
    config: &Config,
    runtime: Option<&str>,
    model: Option<&str>,
) -> Option<MicroUsd> {
    if config.prices().is_empty() {
        return None;
    }
    let options = runtime.and_then(|runtime| config.runtime(runtime)?.options.as_ref());
    let of_runtime = options.and_then(|options| options.value.get("model")?.as_str());
    let price = config.prices().get(model.or(of_runtime)?)?;
    let per_million = |price: &Option<Valued<MicroUsd>>| Some(price.as_ref()?.value.as_micros());
    let (input, output) =
        (per_million(&price.input_per_million)?, per_million(&price.output_per_million)?);
    let written = PLAUSIBLE[0] / WRITTEN;
    let cost = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price) / 1_000_000;
    let cost = cost(PLAUSIBLE[0] - written, input) + cost(written, output);
    Some(MicroUsd::from_micros(u64::try_from(cost).unwrap_or(u64::MAX)))
}

impl Pool {
    /// The amount that a child probably uses.
    fn size(&self, unit: Unit) -> Option<u64> {
        let mut used: Vec<u64> = self.used[unit as usize].iter().copied().collect();
        let middle = used.len() / 2;
        (!used.is_empty()).then(|| *used.select_nth_unstable(middle).1)
    }

    /// The number of children that have ended; as good as infinite where a median says enough of the others.
    fn ended(&self) -> u64 {
        match self.ended {
            ended if ended >= REMEMBERED as u32 => u64::from(u32::MAX),
            ended => ended.into(),
        }
    }

    fn remember(&mut self, unit: Unit, used: u64) {
        let last = &mut self.used[unit as usize];
        if last.len() == REMEMBERED {
            last.pop_front();
        }
        last.push_back(used);
    }
}

impl Ledger {
    /// Says in which units a run draws from its parent's budget. In these it was admitted with nothing.
    pub fn pool(&mut self, run: RunId, pooled: Pooled) {
        let Some(account) = self.accounts.get_mut(&run) else { return };
        for (unit, is_pooled) in [(Unit::Tokens, pooled.tokens), (Unit::Usd, pooled.usd)] {
            let book = account.book_mut(unit);
            book.is_pooled = is_pooled && book.is_bounded();
        }
    }

    /// Takes in what a run plausibly uses, for the time in which no run beside it has ended.
    pub fn expect(&mut self, run: RunId, plausible: MicroUsd) {
        if let Some(account) = self.accounts.get_mut(&run) {
            account.plausible = Some(plausible.as_micros());
        }
    }

    /// Returns what a run draws as it starts. `most` is what it may ever have.
    pub fn draw(&self, run: RunId, most: BudgetGrant) -> Draw {
        let Some((account, parent)) = self.with_parent(run) else { return Draw::Nothing };
        let holders = parent.pool.as_ref().map_or(0, |pool| pool.holders);
        let mut taken = [0; 2];
        for unit in Unit::ALL {
            let (book, above) = (account.book(unit), parent.book(unit));
            let (Some(granted), Some(whole), Some(free)) =
                (book.granted, above.granted, above.left())
            else {
                continue;
            };
            if !book.is_pooled || (granted > 0 && u128::from(granted) > book.spent()) {
                continue;
            }
            let known = parent.pool.as_ref().and_then(|pool| pool.size(unit));
            // What it has used above its part, in an attempt before: its parent has paid that already.
            let above_part = book.above_grant();
            let most = unit
                .of(most)
                .map_or(u64::MAX, |most| most.saturating_sub(granted).saturating_sub(above_part));
            let asked = known.unwrap_or_else(|| guess(account, unit)).min(most).max(1);
            let half = u128::from(whole / 2);
            let (asked, fits) = match known {
                Some(_) => {
                    let ended = parent.pool.as_ref().map_or(0, |pool| pool.ended());
                    let first = whole / 2 / guess(account, unit).min(most).max(1);
                    (asked, asked <= free && u64::from(holders) < first.max(2 * ended))
                }
                None if holders == 0 => {
                    let first = asked.min(first_of(guess(account, unit), whole));
                    (first.min(free).max(1), free > 0)
                }
                None => (asked, asked <= free && above.below.held + u128::from(asked) <= half),
            };
            taken[unit as usize] = match fits {
                true => asked + above_part,
                false if holders > 0 => return Draw::Wait,
                false => {
                    let used = u64::try_from(above.spent()).unwrap_or(u64::MAX);
                    return Draw::Never(Shortage { unit, granted: whole, used, asked });
                }
            };
        }
        match taken {
            [0, 0] => Draw::Nothing,
            taken => Draw::Take(Unit::amounts(taken)),
        }
    }

    /// Returns the amount that a piece below a run draws as it starts: what the last ones used. None before one has used any.
    pub fn piece_size(&self, run: RunId, unit: Unit) -> Option<u64> {
        self.accounts.get(&run)?.pool.as_ref()?.size(unit)
    }

    /// Returns what a run takes more out of the pool so that it may use up to this in a unit, and `beyond` that what one
    /// child probably uses, as far as there is any. What it has used above its part already is the first of it.
    pub fn more(&self, run: RunId, unit: Unit, target: u128, beyond: bool) -> BudgetGrant {
        let nothing = BudgetGrant::default();
        let Some((account, parent)) = self.with_parent(run) else { return nothing };
        let (book, above) = (account.book(unit), parent.book(unit));
        let (Some(granted), true) = (book.granted, book.is_pooled) else { return nothing };
        let Some(free) = above.left() else { return nothing };
        let granted = u128::from(granted);
        let deficit = above.balance().deficit;
        let paid = book.spent().saturating_sub(granted).saturating_sub(deficit);
        let size = parent.pool.as_ref().and_then(|pool| pool.size(unit));
        let size = size.unwrap_or_else(|| guess(account, unit)).max(1);
        let wanted = target.saturating_sub(granted) + u128::from(if beyond { size } else { 0 });
        unit.amount(u64::try_from(wanted.min(paid + u128::from(free))).unwrap_or(u64::MAX))
    }

    /// A run takes so much out of the pool.
    ///
    /// # Panics
    ///
    /// When there is not that much: it is asked first, in the same step.
    pub fn take(&mut self, run: RunId, drawn: BudgetGrant) {
        let Some(account) = self.accounts.get_mut(&run) else { return };
        let before = Unit::ALL.map(|unit| account.book(unit).spent());
        for unit in Unit::ALL {
            account.book_mut(unit).raise(unit.of(drawn).unwrap_or(0));
        }
        let is_first = !std::mem::replace(&mut account.has_drawn, true);
        let parent = account.parent;
        if let Some(parent) = parent.and_then(|parent| self.accounts.get_mut(&parent)) {
            parent.pool.get_or_insert_default().holders += u32::from(is_first);
        }
        self.carry_up(run, &mut Vec::new());
        debug_assert_eq!(before, Unit::ALL.map(|unit| self.account(run).book(unit).spent()));
    }

    /// A run stands in line again: what it has not used of its part returns to the pool.
    pub fn return_to_pool(&mut self, run: RunId) {
        let Some(account) = self.accounts.get_mut(&run) else { return };
        account.keep_of_pool(|book| book.spent() + book.below.held);
        let has_drawn = std::mem::take(&mut account.has_drawn);
        let parent = account.parent;
        if has_drawn && let Some(pool) = self.pool_of(parent) {
            pool.holders -= 1;
        }
        self.carry_up(run, &mut Vec::new());
    }

    /// A request of a run to a model is over: what the run does not hold for others of its requests returns to the pool, so that pieces beside it
    /// can ask their models. One unit stays, because a part that is used up would stop the run.
    pub fn return_unused(&mut self, run: RunId) {
        let Some(account) = self.accounts.get_mut(&run) else { return };
        account.keep_of_pool(|book| book.taken() + 1);
        self.carry_up(run, &mut Vec::new());
    }

    /// Returns the amount that a run could have for one request once all requests beside it are over: its own and, of a pool, those of other
    /// pieces. In all the run uses `most` at most, where that is given.
    pub fn once_others_are_over(&self, run: RunId, unit: Unit, most: Option<u64>) -> u128 {
        let Some(account) = self.accounts.get(&run) else { return 0 };
        let book = account.book(unit);
        let own = u128::from(book.left().unwrap_or(0)) + book.requests();
        let Some((_, parent)) = self.with_parent(run).filter(|_| book.is_pooled) else {
            return own;
        };
        let pool = parent.book(unit);
        // Held for this one is what it has and has not used, of which its own part is counted already.
        let held = u128::from(book.granted.unwrap_or(0)).saturating_sub(book.spent());
        let all = own + u128::from(pool.left().unwrap_or(0)) + pool.below.held.saturating_sub(held);
        let taken = book.spent() + book.below.held;
        most.map_or(all, |most| all.min(u128::from(most).saturating_sub(taken)))
    }

    /// Returns the amounts that a run may come to use at most, now: its part, and what the pool has left.
    pub fn reach(&self, run: RunId, most: BudgetGrant) -> BudgetGrant {
        let Some(account) = self.accounts.get(&run) else { return BudgetGrant::default() };
        let parent = account.parent.and_then(|parent| self.accounts.get(&parent));
        Unit::grant(|unit| {
            let book = account.book(unit);
            let free = parent.filter(|_| book.is_pooled).and_then(|above| above.book(unit).left());
            let reach = book.granted?.saturating_add(free.unwrap_or(0));
            Some(unit.of(most).map_or(reach, |most| reach.min(most)))
        })
    }

    /// Returns the amounts that a run may still use, now: what it may come to use at most, without what it and everything below it used and
    /// hold.
    pub fn within_reach(&self, run: RunId, most: BudgetGrant) -> BudgetGrant {
        let reach = self.reach(run, most);
        Unit::grant(|unit| {
            let taken = u64::try_from(self.taken(run, unit)).unwrap_or(u64::MAX);
            Some(unit.of(reach)?.saturating_sub(taken))
        })
    }

    /// True if a run draws from a pool in this unit.
    pub fn is_pooled(&self, run: RunId, unit: Unit) -> bool {
        self.accounts.get(&run).is_some_and(|account| account.book(unit).is_pooled)
    }

    /// Returns the amount that a run and everything below it used and holds in a unit, for requests to models too.
    pub fn taken(&self, run: RunId, unit: Unit) -> u128 {
        self.accounts.get(&run).map_or(0, |account| account.book(unit).taken())
    }

    /// A run that is over gives its part back, and what it used is remembered.
    pub(super) fn leave_pool(&mut self, run: RunId) {
        let account = self.account(run);
        if !std::mem::take(&mut account.has_drawn) {
            return;
        }
        let (parent, has_lost) = (account.parent, account.has_lost);
        let used = Unit::ALL.map(|unit| {
            let book = account.book(unit);
            book.is_pooled.then(|| u64::try_from(book.spent()).unwrap_or(u64::MAX))
        });
        let Some(pool) = self.pool_of(parent) else { return };
        pool.holders -= 1;
        pool.ended = pool.ended.saturating_add(u32::from(!has_lost));
        for (unit, used) in Unit::ALL.into_iter().zip(used) {
            if let Some(used) = used.filter(|&used| used > 0 && !has_lost) {
                pool.remember(unit, used);
            }
        }
    }

    fn pool_of(&mut self, parent: Option<RunId>) -> Option<&mut Pool> {
        self.accounts.get_mut(&parent?)?.pool.as_deref_mut()
    }

    fn with_parent(&self, run: RunId) -> Option<(&Account, &Account)> {
        let account = self.accounts.get(&run)?;
        Some((account, self.accounts.get(&account.parent?)?))
    }
}

/// Returns what a run plausibly uses, while no run beside it has ended.
fn guess(account: &Account, unit: Unit) -> u64 {
    plausible_in(unit, account.plausible.map(MicroUsd::from_micros))
}

#[cfg(test)]
mod tests;
