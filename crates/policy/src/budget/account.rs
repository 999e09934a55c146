//! One account: two books, one for each unit.

use offshoot_model::{BudgetGrant, Cost, Ending, RunId, Usage};

use super::pool::Pool;
use super::{Mark, Unit};

/// The account of one run.
#[derive(Clone, Debug, Default)]
pub(super) struct Account {
    pub(super) parent: Option<RunId>,
    /// True if it is the account of a root.
    pub(super) is_root: bool,
    /// Accounts directly below this one.
    pub(super) children: u32,
    /// True if its dollars are a part of what the tree may cost where no budget bounds it.
    pub(super) by_default: bool,
    /// The run is over: what it has free is its parent's.
    pub(super) ended: bool,
    /// The pool that its children draw from, once one has.
    pub(super) pool: Option<Box<Pool>>,
    /// True if it holds a part of the pool of its parent.
    pub(super) has_drawn: bool,
    /// True if a request of it was lost, and charged at all that it might have cost: what it used says nothing about others.
    pub(super) has_lost: bool,
    /// The millionths of a dollar that it plausibly uses, by the price of its model.
    pub(super) plausible: Option<u64>,
    pub(super) tokens: Book,
    pub(super) usd: Book,
}

/// An account in one unit.
#[derive(Clone, Debug, Default)]
pub(super) struct Book {
    pub(super) granted: Option<u64>,
    /// True if the grant is drawn from the parent's, as it is needed.
    pub(super) is_pooled: bool,
    /// The amount that was added from outside of the tree.
    pub(super) added: u64,
    /// The amount that the run itself has reported.
    own: u64,
    /// True if everything it used is in `own`.
    is_known: bool,
    /// Held for requests to models that are open. It is the run's own, so its parent counts it with what the run has left.
    requests: u128,
    pub(super) below: Passed,
    /// The amounts of this account that the parent has counted.
    passed: Passed,
    level: Level,
}

/// The amounts of an account that its parent counts. In 128 bits, because a runtime may report anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Passed {
    /// Used within its grant.
    within: u128,
    /// Used above its grant.
    above: u128,
    /// Still held for it.
    pub(super) held: u128,
}

impl Passed {
    /// Takes in the change of one of the accounts that these amounts are the sum of.
    pub(super) fn replace(&mut self, before: Self, after: Self) {
        self.within = self.within - before.within + after.within;
        self.above = self.above - before.above + after.above;
        self.held = self.held - before.held + after.held;
    }

    /// Returns the amount that is used or held.
    pub(super) fn taken(&self) -> u128 {
        self.within + self.above + self.held
    }
}

/// The last mark that was told.
pub(super) type Level = Option<Mark>;

/// The balance of an account in one unit: tokens, or millionths of a dollar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balance {
    /// The amount that was reserved when it was opened; `None` bounds nothing.
    pub granted: Option<u64>,
    /// Used by the run itself, and by everything below it within what was reserved there.
    pub used: u128,
    /// Used below it beyond what was reserved there.
    pub overrun: u128,
    /// Held for what lives below it, and for requests to models that are open.
    pub reserved: u128,
    /// Left to use or to promise. `None` where nothing bounds it.
    pub free: Option<u128>,
    /// The amount that was used or promised beyond the grant.
    pub deficit: u128,
}

impl Account {
    pub(super) fn new(parent: Option<RunId>, grant: BudgetGrant) -> Self {
        let book = |unit: Unit| Book { granted: unit.of(grant), ..Book::default() };
        let (tokens, usd) = (book(Unit::Tokens), book(Unit::Usd));
        Self { parent, tokens, usd, ..Self::default() }
    }

    pub(super) fn book(&self, unit: Unit) -> &Book {
        match unit {
            Unit::Tokens => &self.tokens,
            Unit::Usd => &self.usd,
        }
    }

    pub(super) fn book_mut(&mut self, unit: Unit) -> &mut Book {
        match unit {
            Unit::Tokens => &mut self.tokens,
            Unit::Usd => &mut self.usd,
        }
    }

    pub(super) fn left(&self) -> BudgetGrant {
        Unit::grant(|unit| self.book(unit).left())
    }

    /// Tells both books what was used, and whether that is known in full: [`Book::report`] or [`Book::report_more`].
    pub(super) fn report(&mut self, to: fn(&mut Book, u64, bool), usage: &Usage, cost: &Cost) {
        let count = usage.total();
        to(&mut self.tokens, count.charged(), count.is_settled());
        to(&mut self.usd, cost.dollars().as_micros(), cost.unknown_runs == 0);
    }

    /// Closes the account with what the run reports at its end; where that is unknown, all that is left is charged.
    pub(super) fn close(&mut self, ending: &Ending) {
        self.report(Book::report, &ending.usage, &ending.cost);
        self.ended = true;
        for unit in Unit::ALL {
            let book = self.book_mut(unit);
            if let (false, Some(left)) = (book.is_known, book.left()) {
                book.own += left;
            }
        }
    }

    /// Leaves so much, at most, of what was drawn of a pool.
    pub(super) fn keep_of_pool(&mut self, kept: impl Fn(&Book) -> u128) {
        for book in [&mut self.tokens, &mut self.usd].into_iter().filter(|book| book.is_pooled) {
            let kept = u64::try_from(kept(book)).unwrap_or(u64::MAX);
            book.granted = book.granted.map(|granted| granted.min(kept));
        }
    }

    /// Returns the amounts that the parent has counted, and those that it is to count now.
    pub(super) fn changes(&mut self) -> [(Passed, Passed); 2] {
        let ended = self.ended;
        Unit::ALL.map(|unit| self.book_mut(unit).pass(ended))
    }
}

impl Book {
    pub(super) fn is_bounded(&self) -> bool {
        self.granted.is_some()
    }

    /// A mark that is not reached any more may be told again.
    pub(super) fn raise(&mut self, more: u64) {
        self.granted = self.granted.map(|granted| granted.saturating_add(more));
        self.level = self.reached().min(self.level);
    }

    /// Holds so much for a request to a model.
    pub(super) fn hold(&mut self, amount: u64) {
        self.requests += u128::from(amount);
    }

    /// Holds so much less for requests to models.
    pub(super) fn release(&mut self, amount: u64) {
        self.requests = self.requests.saturating_sub(amount.into());
    }

    /// Returns the amount that is held for requests to models.
    pub(super) fn requests(&self) -> u128 {
        self.requests
    }

    /// Takes in what the run has used in all.
    pub(super) fn report(&mut self, amount: u64, is_whole: bool) {
        self.own = self.own.max(amount);
        self.is_known = is_whole;
    }

    /// Takes in what the run has used beside what was reported by then.
    pub(super) fn report_more(&mut self, more: u64, is_whole: bool) {
        // Of what was reported before, a part may be unknown already.
        let is_whole = is_whole && (self.is_known || self.own == 0);
        self.report(self.own.saturating_add(more), is_whole);
    }

    /// Used by the run and everything below it, and held for these and for requests to models.
    pub(super) fn taken(&self) -> u128 {
        self.spent() + self.below.held + self.requests
    }

    /// By the run and everything below it.
    pub(super) fn spent(&self) -> u128 {
        u128::from(self.own) + self.below.within + self.below.above
    }

    fn pass(&mut self, ended: bool) -> (Passed, Passed) {
        let spent = self.spent();
        let now = match self.granted {
            None => Passed { within: spent, above: 0, held: self.below.held },
            Some(granted) => {
                let within = spent.min(granted.into());
                let rest = u128::from(granted) - within;
                let held = if ended { rest.min(self.below.held) } else { rest };
                Passed { within, above: spent - within, held }
            }
        };
        (std::mem::replace(&mut self.passed, now), now)
    }

    /// One account below has changed.
    pub(super) fn replace(&mut self, before: Passed, after: Passed) {
        self.below.replace(before, after);
    }

    /// The highest mark that is reached and was not told.
    pub(super) fn new_mark(&mut self) -> Option<Mark> {
        let reached = self.reached();
        (reached > self.level).then(|| self.level = reached)?;
        reached
    }

    /// The highest mark that is reached. A budget of which nothing was used reaches none, even if it is zero: an agent
    /// that costs nothing runs under it.
    pub(super) fn reached(&self) -> Level {
        let (spent, granted) = (self.spent(), u128::from(self.granted?));
        match spent {
            0 => None,
            _ if spent >= granted => Some(Mark::Limit),
            _ if spent * 5 >= granted * 4 => Some(Mark::Near),
            _ => None,
        }
    }

    pub(super) fn left(&self) -> Option<u64> {
        let free = self.balance().free?;
        Some(u64::try_from(free).expect("what is free is a part of the grant"))
    }

    /// Returns the amount that the run and everything below it used beyond the grant.
    pub(super) fn above_grant(&self) -> u64 {
        let above = self.granted.map_or(0, |granted| self.spent().saturating_sub(granted.into()));
        u64::try_from(above).unwrap_or(u64::MAX)
    }

    pub(super) fn balance(&self) -> Balance {
        let used = u128::from(self.own) + self.below.within;
        let (overrun, reserved) = (self.below.above, self.below.held + self.requests);
        let taken = used + overrun + reserved;
        let free = self.granted.map(|granted| u128::from(granted).saturating_sub(taken));
        let deficit = self.granted.map_or(0, |granted| taken.saturating_sub(granted.into()));
        Balance { granted: self.granted, used, overrun, reserved, free, deficit }
    }
}

impl Balance {
    /// True if `used + overrun + reserved + free = granted + deficit`.
    pub fn adds_up(&self) -> bool {
        match (self.granted, self.free) {
            (None, None) => self.deficit == 0,
            (Some(granted), Some(free)) => {
                let parts = self.used + self.overrun + self.reserved + free;
                parts == u128::from(granted) + self.deficit && (free == 0 || self.deficit == 0)
            }
            _ => false,
        }
    }
}
