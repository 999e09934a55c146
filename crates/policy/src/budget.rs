//! Budgets: reserved down the tree before anything is spent, charged up the tree as it is.
//!
//! ```text
//!  root   granted 1000 = used 200 + overrun 0 + reserved 300 + free 500
//!   └─ a  granted  500 = used 200 + overrun 0 + reserved   0 + free 300
//! ```
//!
//! One account per run that has a budget. A grant is taken out of the parent's free part when the run is admitted, so
//! children that are admitted together cannot promise the same money twice. What a run uses moves from *reserved* to
//! *used* in every account above it, as it is reported. What it uses beyond its grant is its parent's *overrun*: paid
//! from what the parent has free, and by the runs above where that is not enough. What a run leaves returns to
//! its parent when it ends. At every moment, in integers, for tokens and for millionths of a dollar apart:
//!
//! ```text
//!  used + overrun + reserved + free = granted + deficit
//! ```
//!
//! where *free* is never below zero and *deficit* is what no account had left to pay with. No budget is not a budget of
//! zero: an account without a grant in one unit bounds nothing there.

mod account;
mod by_default;
mod divide;
mod pool;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use offshoot_model::{BudgetGrant, Cost, Ending, MicroUsd, RunId, Usage};

pub use account::Balance;
pub use divide::{Claim, divide, parts};
pub use pool::{Draw, Shortage, first_part, first_pieces, plausible_usd};

use account::{Account, Book};
use by_default::ByDefault;

/// The accounts of one tree.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    accounts: HashMap<RunId, Account>,
    by_default: ByDefault,
}

/// A quantity that a budget counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Tokens of all four kinds.
    Tokens,
    /// Millionths of a dollar.
    Usd,
}

/// A message about a budget, sent once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The run of the budget.
    pub run: RunId,
    /// Of what.
    pub unit: Unit,
    /// The part of the budget that is used, by the run and everything below it.
    pub mark: Mark,
}

/// The marks that a budget can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// Four fifths: the run is told.
    Near,
    /// All of it: the run is stopped, and everything below it.
    Limit,
}

impl Unit {
    /// All units.
    pub const ALL: [Self; 2] = [Self::Tokens, Self::Usd];

    /// The word of the configuration and of an ending's reason.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Usd => "usd",
        }
    }

    /// The part of a grant in this unit, in tokens or in millionths of a dollar.
    pub fn of(self, grant: BudgetGrant) -> Option<u64> {
        match self {
            Self::Tokens => grant.tokens,
            Self::Usd => grant.usd.map(MicroUsd::as_micros),
        }
    }

    /// Returns a grant of the amount that there is in each unit.
    pub fn grant(amount: impl Fn(Self) -> Option<u64>) -> BudgetGrant {
        BudgetGrant::new(amount(Self::Tokens), amount(Self::Usd))
    }

    /// Returns these amounts by unit, of which zero is none.
    pub fn amounts(amounts: [u64; 2]) -> BudgetGrant {
        Self::grant(|unit| Some(amounts[unit as usize]).filter(|&amount| amount > 0))
    }

    /// Returns this amount in this unit and nothing in the other; zero is nothing too.
    pub fn amount(self, amount: u64) -> BudgetGrant {
        Self::grant(|unit| Some(amount).filter(|&amount| unit == self && amount > 0))
    }

    /// An amount for people: `120 tokens`, `0.25 usd`.
    pub fn show(self, amount: u64) -> String {
        match self {
            Self::Tokens => format!("{amount} tokens"),
            Self::Usd => format!("{} usd", MicroUsd::from_micros(amount)),
        }
    }
}

impl Ledger {
    /// Returns the amount that this run may still promise to children. `None` in a unit that nothing bounds.
    pub fn left(&self, run: RunId) -> BudgetGrant {
        self.accounts.get(&run).map_or_else(BudgetGrant::default, Account::left)
    }

    /// Opens the account of a run that is being admitted, and takes its grant out of what its parent has free. A grant
    /// that bounds nothing needs no account.
    ///
    /// # Panics
    ///
    /// When the parent has not that much left: admission asks first, in the same step.
    pub fn open(&mut self, run: RunId, parent: Option<RunId>, grant: BudgetGrant) {
        self.open_account(run, parent, grant, false);
    }

    /// Opens the account of a run whose dollars are a part of what its tree may cost where no budget bounds it.
    ///
    /// # Panics
    ///
    /// As [`open`](Self::open).
    pub fn open_by_default(&mut self, run: RunId, parent: Option<RunId>, grant: BudgetGrant) {
        self.open_account(run, parent, grant, true);
    }

    /// Returns the millionths of a dollar that are left of what the runs may cost together whose dollars no budget bounds.
    pub fn left_by_default(&self, most: MicroUsd) -> u64 {
        self.by_default.left_of(most)
    }

    /// True if the dollars of a run, or of one above it, are a part of what its tree may cost where no budget bounds it.
    pub fn is_by_default(&self, run: RunId) -> bool {
        let above = |account: &&Account| self.accounts.get(&account.parent?);
        std::iter::successors(self.accounts.get(&run), above).any(|account| account.by_default)
    }

    fn open_account(
        &mut self,
        run: RunId,
        parent: Option<RunId>,
        grant: BudgetGrant,
        by_default: bool,
    ) {
        let left = parent.map_or_else(BudgetGrant::default, |parent| self.left(parent));
        for unit in Unit::ALL {
            let pays = |left| unit.of(grant).is_some_and(|amount| amount <= left);
            let fits = unit.of(left).is_none_or(pays);
            assert!(fits, "a grant was admitted that its parent cannot pay");
        }
        if grant == BudgetGrant::default() {
            return;
        }
        let is_root = parent.is_none();
        let parent = parent.filter(|parent| self.accounts.contains_key(parent));
        if let Some(parent) = parent {
            self.account(parent).children += 1;
        }
        let account = Account { is_root, by_default, ..Account::new(parent, grant) };
        let before = self.accounts.insert(run, account);
        assert!(before.is_none(), "run ids are minted once");
        self.carry_up(run, &mut Vec::new());
    }

    /// Adds to the grant of a run and to every grant above it: money from outside of the tree, so that no other run has less
    /// for it. A unit in which nothing bounds a run stays so.
    pub fn raise(&mut self, run: RunId, more: BudgetGrant) {
        let mut at = Some(run).filter(|run| self.accounts.contains_key(run));
        while let Some(run) = at {
            let account = self.account(run);
            for unit in Unit::ALL {
                let (book, more) = (account.book_mut(unit), unit.of(more).unwrap_or(0));
                book.raise(more);
                book.added = book.added.saturating_add(more);
            }
            at = account.parent;
            if account.by_default {
                self.by_default.add(Unit::Usd.of(more).unwrap_or(0));
            }
            // From each: above one that is over, and holds nothing for those below it, none of the others is felt.
            self.carry_up(run, &mut Vec::new());
        }
    }

    /// Returns the amount that was added to the budget of a run from outside of the tree.
    pub fn added(&self, run: RunId, unit: Unit) -> u64 {
        self.accounts.get(&run).map_or(0, |account| account.book(unit).added)
    }

    /// True if a run and everything below it have used all that it has in this unit.
    pub fn is_used_up(&self, run: RunId, unit: Unit) -> bool {
        let account = self.accounts.get(&run);
        account.is_some_and(|account| account.book(unit).reached() == Some(Mark::Limit))
    }

    /// True if a run's own budget bounds it in this unit.
    pub fn is_bounded(&self, run: RunId, unit: Unit) -> bool {
        self.accounts.get(&run).is_some_and(|account| account.book(unit).is_bounded())
    }

    /// Charges what a run has used so far. Reports are cumulative: each replaces the one before, except that nothing
    /// spent is ever unspent. An unknown count charges nothing yet and is settled at the end.
    pub fn charge(&mut self, run: RunId, usage: &Usage, cost: &Cost) -> Vec<Notice> {
        self.charge_by(run, |account| account.report(Book::report, usage, cost))
    }

    /// Holds so much of what a run has left for a request to a model. In a unit in which nothing bounds the run nothing is held.
    pub fn hold(&mut self, run: RunId, amount: BudgetGrant) {
        let Some(account) = self.accounts.get_mut(&run) else { return };
        for unit in Unit::ALL {
            let book = account.book_mut(unit);
            if book.is_bounded() {
                book.hold(unit.of(amount).unwrap_or(0));
            }
        }
    }

    /// A request to a model is over: what was held for it is free again.
    pub fn release(&mut self, run: RunId, amount: BudgetGrant) {
        let Some(account) = self.accounts.get_mut(&run) else { return };
        for unit in Unit::ALL {
            account.book_mut(unit).release(unit.of(amount).unwrap_or(0));
        }
    }

    /// Charges what one request of a run has used, beside what is charged by then. `is_guess` is true where an attempt was lost that had told
    /// nothing, so that the charge says nothing of what other runs use.
    pub fn charge_more(
        &mut self,
        run: RunId,
        usage: &Usage,
        cost: &Cost,
        is_guess: bool,
    ) -> Vec<Notice> {
        self.charge_by(run, |account| {
            account.has_lost |= is_guess;
            account.report(Book::report_more, usage, cost);
        })
    }

    fn charge_by(&mut self, run: RunId, report: impl FnOnce(&mut Account)) -> Vec<Notice> {
        let mut notices = Vec::new();
        if let Some(account) = self.accounts.get_mut(&run).filter(|account| !account.ended) {
            report(account);
            self.carry_up(run, &mut notices);
        }
        notices
    }

    /// A run has ended: what it used is charged, and what it leaves returns to its parent. Where that is unknown or a
    /// lower bound, because the run was cut off or its runtime reports nothing, its whole grant is charged.
    ///
    /// Children that go on keep what is reserved for them; what they leave passes through to the runs above. Returns the budgets
    /// above that this has used up.
    pub fn settle(&mut self, run: RunId, ending: &Ending) -> Vec<Notice> {
        let mut notices = Vec::new();
        let Some(account) = self.accounts.get_mut(&run).filter(|account| !account.ended) else {
            return notices;
        };
        account.close(ending);
        self.leave_pool(run);
        self.carry_up(run, &mut notices);
        notices.retain(|notice| notice.run != run);
        self.drop_if_over(run);
        notices
    }

    /// A root that was over goes on, with what it has left.
    pub fn reopen(&mut self, root: RunId) {
        if let Some(account) = self.accounts.get_mut(&root) {
            account.ended = false;
        }
    }

    /// Returns the tokens and the dollars beyond its grant that a run will have used once it is settled with this ending.
    pub fn overrun(&self, run: RunId, ending: &Ending) -> (u64, MicroUsd) {
        let account = self.accounts.get(&run).filter(|account| !account.ended);
        account.cloned().map_or((0, MicroUsd::default()), |mut account| {
            account.close(ending);
            (account.tokens.above_grant(), MicroUsd::from_micros(account.usd.above_grant()))
        })
    }

    /// Returns the balance of an account. `None` for a run without a budget, and for one that is over together with everything
    /// below it.
    ///
    /// # Panics
    ///
    /// When the account does not add up, which is a defect here.
    pub fn balance(&self, run: RunId, unit: Unit) -> Option<Balance> {
        let balance = self.accounts.get(&run)?.book(unit).balance();
        assert!(balance.adds_up(), "an account that does not add up: {balance:?}");
        Some(balance)
    }

    /// Takes a change of one account to those above it, as far as it is felt.
    fn carry_up(&mut self, run: RunId, notices: &mut Vec<Notice>) {
        let mut at = Some(run);
        while let Some(run) = at {
            let account = self.account(run);
            let changes = account.changes();
            for unit in Unit::ALL {
                if let Some(mark) = account.book_mut(unit).new_mark() {
                    notices.push(Notice { run, unit, mark });
                }
            }
            at = account.parent;
            if account.by_default {
                let [_, (before, after)] = changes;
                self.by_default.replace(before, after);
            }
            if changes.iter().all(|(before, after)| before == after) {
                return;
            }
            if let Some(parent) = at {
                let parent = self.account(parent);
                for (unit, (before, after)) in Unit::ALL.into_iter().zip(changes) {
                    parent.book_mut(unit).replace(before, after);
                }
            }
        }
    }

    /// Accounts that are over and have nothing below them are forgotten: what they used stands in the parent's. That of a root
    /// stays, because its tree may go on.
    fn drop_if_over(&mut self, run: RunId) {
        let mut at = Some(run);
        while let Some(run) = at {
            let account = self.account(run);
            if !account.ended || account.children > 0 || account.is_root {
                return;
            }
            at = account.parent;
            self.accounts.remove(&run);
            if let Some(parent) = at {
                self.account(parent).children -= 1;
            }
        }
    }

    fn account(&mut self, run: RunId) -> &mut Account {
        self.accounts.get_mut(&run).expect("an account outlives those below it")
    }
}
