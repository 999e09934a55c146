//! Budgets, added up again.
//!
//! An account for each run, bounded or not. What a run and everything below it has spent is one number; what is still
//! held for it is what its grant leaves of that, or, once it is over, no more than what is held below it. What is free
//! follows from the two, and nothing else is kept.

use std::collections::HashMap;

use offshoot_model::{Cost, Ending, Grant, MicroUsd, RunId, Usage, number};

use crate::findings::{Account, Unit};

const UNITS: [Unit; 2] = [Unit::Tokens, Unit::MicroUsd];

/// All accounts of a tree.
#[derive(Default)]
pub(crate) struct Books {
    accounts: HashMap<RunId, Entry>,
    /// The dollars of runs that have a part of what the tree may cost where no budget bounds it.
    by_default: Carried,
    /// The amount that the tree may cost where no budget bounds it, as the last of these runs was granted it.
    default_usd: Option<MicroUsd>,
    /// The dollars that were added to these from outside.
    added_by_default: u64,
    /// Promises that were found to be made of dollars that were spent by then.
    belated: Vec<(RunId, String)>,
}

#[derive(Default)]
struct Entry {
    parent: Option<RunId>,
    is_over: bool,
    /// True if its dollars are a part of what the tree may cost where no budget bounds it.
    is_by_default: bool,
    sums: [Sum; 2],
    /// Reserved for its requests to models that are not over, by their numbers.
    requests: HashMap<u64, [u64; 2]>,
    /// The number of tokens that it had reported when it last reported dollars.
    priced_tokens: u128,
    /// The promises that it has made since then.
    promises: Vec<Promise>,
}

/// Dollars that were promised to a child.
struct Promise {
    child: RunId,
    micro_usd: u64,
    /// The amount that its parent seemed to have free.
    free: u128,
    /// The number of tokens that its parent had reported.
    tokens: u128,
}

/// One account in one unit.
#[derive(Clone, Copy, Default)]
struct Sum {
    granted: Option<u64>,
    /// True if it draws from its parent's.
    is_pooled: bool,
    /// Reported by the run itself.
    own: u128,
    /// True if the sum is complete.
    is_whole: bool,
    /// Reserved for requests to models.
    requests: u128,
    /// By everything directly below, with what is below that.
    below: Carried,
    /// The amounts that the parent has counted of this account.
    carried: Carried,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Carried {
    within: u128,
    above: u128,
    held: u128,
}

impl Carried {
    /// Takes in the change of one of the accounts that these amounts are the sum of.
    fn replace(&mut self, before: Self, now: Self) {
        self.within = self.within - before.within + now.within;
        self.above = self.above - before.above + now.above;
        self.held = self.held - before.held + now.held;
    }
}

impl Books {
    /// Opens an account; in words what its parent could not promise.
    pub(crate) fn open(&mut self, run: RunId, parent: Option<RunId>, grant: &Grant) -> Vec<String> {
        let Grant { budget: grant, pooled, default_usd, .. } = grant;
        let pooled = [pooled.tokens, pooled.usd];
        let amounts = [grant.tokens, grant.usd.map(MicroUsd::as_micros)];
        let mut broken = Vec::new();
        for (at, amount) in amounts.into_iter().enumerate() {
            let free = parent.and_then(|parent| self.accounts.get(&parent)?.sums[at].free());
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
        if let Some(most) = default_usd {
            self.default_usd = Some(*most);
            broken.extend(self.beyond_default(*most, parent, amounts[1]));
        }
        let above = parent.and_then(|parent| self.accounts.get_mut(&parent));
        if let Some(above) = above
            && let [tokens, usd] = &above.sums
            && let (Some(free), Some(micro_usd)) = (usd.free(), amounts[1])
        {
            let tokens = tokens.own;
            above.promises.push(Promise { child: run, micro_usd, free, tokens });
        }
        let sum = |at: usize| Sum { granted: amounts[at], is_pooled: pooled[at], ..Sum::default() };
        let entry = Entry {
            parent,
            is_by_default: default_usd.is_some(),
            sums: [sum(0), sum(1)],
            ..Entry::default()
        };
        self.accounts.insert(run, entry);
        self.carry(run);
        broken
    }

    /// Returns in words why a run cannot have so many dollars of what its tree may cost where no budget bounds it.
    fn beyond_default(
        &self,
        most: MicroUsd,
        parent: Option<RunId>,
        amount: Option<u64>,
    ) -> Option<String> {
        let above = parent.and_then(|parent| self.accounts.get(&parent));
        if above.is_some_and(|above| above.sums[1].granted.is_some()) {
            return Some("has dollars by default below a run that a budget bounds".to_owned());
        }
        let Carried { within, above, held } = self.by_default;
        let most = u128::from(most.as_micros()) + u128::from(self.added_by_default);
        let free = most.saturating_sub(within + above + held);
        let Some(amount) = amount else {
            return Some("has no limit of dollars where no budget bounds them".to_owned());
        };
        (u128::from(amount) > free).then(|| {
            let unit = Unit::MicroUsd.as_str();
            format!("was promised {amount} {unit} of {free} that the tree may cost by default")
        })
    }

    /// Returns the balance of the dollars that the tree may cost where no budget bounds it; none where no run has a part of them.
    pub(crate) fn by_default(&self) -> Option<Account> {
        let granted = self.default_usd?.as_micros().saturating_add(self.added_by_default);
        let Carried { within, above, held } = self.by_default;
        Some(Account::new(Unit::MicroUsd, granted, within, above, held))
    }

    /// Takes in what the operator has added from outside: to a run, and to every run above it.
    pub(crate) fn raise(&mut self, run: RunId, more: [u64; 2]) {
        let mut at = Some(run);
        while let Some(entry) = at.and_then(|run| self.accounts.get_mut(&run)) {
            entry.sums.iter_mut().zip(more).for_each(|(sum, more)| sum.grant(more));
            at = entry.parent;
            if entry.is_by_default {
                self.added_by_default = self.added_by_default.saturating_add(more[1]);
            }
        }
        self.carry(run);
    }

    /// A run takes so much more of what its parent has left; in words what there was not, or why it may not. What it has used
    /// above its part already is paid by its parent before and after.
    pub(crate) fn draw(&mut self, run: RunId, more: [u64; 2]) -> Option<String> {
        let entry = self.accounts.get(&run)?;
        let parent = entry.parent.and_then(|parent| self.accounts.get(&parent));
        let mut wrong = None;
        for at in (0..UNITS.len()).filter(|&at| more[at] > 0) {
            let (sum, more, unit) = (&entry.sums[at], more[at], UNITS[at].as_str());
            let free = parent.and_then(|parent| parent.sums[at].with(sum.beyond()));
            if !sum.is_pooled {
                wrong = Some(format!("drew {more} {unit}, and draws from no pool"));
            } else if let Some(free) = free.filter(|&free| u128::from(more) > free) {
                wrong = Some(format!("drew {more} {unit} of {free} that were free"));
            }
        }
        let entry = self.accounts.get_mut(&run)?;
        entry.sums.iter_mut().zip(more).for_each(|(sum, more)| sum.grant(more));
        self.carry(run);
        wrong
    }

    /// So much is reserved for a request of a run to a model; in words what was not free.
    pub(crate) fn reserve(
        &mut self,
        run: RunId,
        request: u64,
        amounts: [u64; 2],
    ) -> Option<String> {
        let entry = self.accounts.get_mut(&run)?;
        let mut wrong = None;
        for ((sum, amount), unit) in entry.sums.iter_mut().zip(amounts).zip(UNITS) {
            if let Some(free) = sum.free().filter(|&free| u128::from(amount) > free) {
                let unit = unit.as_str();
                wrong = Some(format!(
                    "asked a model for up to {amount} {unit} of {free} that were free"
                ));
            }
            sum.requests += u128::from(amount);
        }
        let before = entry.requests.insert(request, amounts);
        before.map(|_| format!("sent the request {request} twice")).or(wrong)
    }

    /// A request of a run to a model is over. In words what is wrong with its charge, and the runs whose limit is reached now.
    pub(crate) fn settle(
        &mut self,
        run: RunId,
        request: u64,
        (usage, cost): (&Usage, &Cost),
    ) -> (Option<String>, Vec<RunId>) {
        let before = self.exhausted(run);
        let Some(entry) = self.accounts.get_mut(&run) else { return Default::default() };
        let Some(amounts) = entry.requests.remove(&request) else {
            return (
                Some(format!("was charged for the request {request}, which was not reserved")),
                Vec::new(),
            );
        };
        let count = usage.total();
        let charged = [count.charged(), cost.dollars().as_micros()];
        let whole = [count.is_settled(), cost.unknown_runs == 0];
        let mut wrong = None;
        for (at, sum) in entry.sums.iter_mut().enumerate() {
            let (amount, charged, unit) = (amounts[at], charged[at], UNITS[at].as_str());
            sum.requests = sum.requests.saturating_sub(amount.into());
            let is_whole = whole[at] && (sum.is_whole || sum.own == 0);
            (sum.own, sum.is_whole) = (sum.own + u128::from(charged), is_whole);
            sum.return_unused();
            if charged > amount && sum.granted.is_some() {
                wrong =
                    Some(format!("was charged {charged} {unit} for a request of at most {amount}"));
            }
        }
        self.carry(run);
        (wrong, self.newly(run, &before))
    }

    /// A request of a run waits for others: what the run does not hold for its other requests is its parent's again.
    pub(crate) fn return_unused(&mut self, run: RunId) {
        let Some(entry) = self.accounts.get_mut(&run) else { return };
        entry.sums.iter_mut().for_each(Sum::return_unused);
        self.carry(run);
    }

    /// A run stands in line again: what it has not used of what it drew is its parent's.
    pub(crate) fn return_to_pool(&mut self, run: RunId) {
        let Some(entry) = self.accounts.get_mut(&run) else { return };
        for sum in entry.sums.iter_mut().filter(|sum| sum.is_pooled) {
            sum.keep(sum.spent() + sum.below.held);
        }
        self.carry(run);
    }

    /// True if a run has used all it had in a unit.
    pub(crate) fn is_exhausted(&self, run: RunId) -> bool {
        self.accounts.get(&run).is_some_and(|entry| entry.sums.iter().any(Sum::is_exhausted))
    }

    /// A root that was over goes on, with what it has left.
    pub(crate) fn reopen(&mut self, root: RunId) {
        if let Some(entry) = self.accounts.get_mut(&root) {
            entry.is_over = false;
        }
    }

    /// Promises that were found, since this was last asked, to be made of dollars that were spent by then.
    pub(crate) fn belated(&mut self) -> Vec<(RunId, String)> {
        std::mem::take(&mut self.belated)
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
        self.take_in(run, &ending.usage, &ending.cost);
        let Some(entry) = self.accounts.get_mut(&run) else { return Default::default() };
        for sum in &mut entry.sums {
            // Unknown use costs all that was left.
            if !sum.is_whole {
                sum.own += sum.free().unwrap_or(0);
            }
        }
        entry.is_over = true;
        let beyond = entry.sums.map(|sum| sum.beyond());
        self.carry(run);
        (beyond, self.newly(run, &before))
    }

    /// Returns the balance of a run's account, in each unit in which it is bounded.
    pub(crate) fn accounts(&self, run: RunId) -> Vec<Account> {
        let Some(entry) = self.accounts.get(&run) else { return Vec::new() };
        let bounded = |(unit, sum): (Unit, &Sum)| {
            let Carried { within, above, held } = sum.below;
            Some(Account::new(unit, sum.granted?, sum.own + within, above, held + sum.requests))
        };
        UNITS.into_iter().zip(&entry.sums).filter_map(bounded).collect()
    }

    fn take_in(&mut self, run: RunId, usage: &Usage, cost: &Cost) {
        let Some(entry) = self.accounts.get_mut(&run).filter(|entry| !entry.is_over) else {
            return;
        };
        let [tokens, usd] = &mut entry.sums;
        let told_before = usd.own;
        let count = usage.total();
        tokens.own = tokens.own.max(count.charged().into());
        tokens.is_whole = count.is_settled();
        let priced = cost.dollars().as_micros();
        usd.own = usd.own.max(priced.into());
        usd.is_whole = cost.unknown_runs == 0;
        let more = usd.own - told_before;
        if more == 0 {
            return;
        }
        // The cost of a call may be reported after its tokens. A promise in between was made of what seemed to be left.
        let priced = tokens.own.saturating_sub(entry.priced_tokens);
        for Promise { child, micro_usd, free, tokens } in entry.promises.drain(..) {
            let unpriced = tokens.saturating_sub(entry.priced_tokens);
            let spent = (more * unpriced).checked_div(priced).unwrap_or(0);
            if spent > 0 && u128::from(micro_usd) + spent > free {
                let dollars = |micros: u128| {
                    let micros = u64::try_from(micros).unwrap_or(u64::MAX);
                    number::exact_dollars(MicroUsd::from_micros(micros))
                };
                let message = format!(
                    "was promised {} of {} that were free, and its parent had spent {} of these",
                    dollars(micro_usd.into()),
                    dollars(free),
                    dollars(spent)
                );
                self.belated.push((child, message));
            }
        }
        entry.priced_tokens = tokens.own;
    }

    /// Passes a change on to all runs above.
    fn carry(&mut self, run: RunId) {
        let mut at = Some(run);
        while let Some(run) = at {
            let Some(entry) = self.accounts.get_mut(&run) else { return };
            let is_over = entry.is_over;
            let changes = entry.sums.each_mut().map(|sum| {
                let now = sum.to_carry(is_over);
                (std::mem::replace(&mut sum.carried, now), now)
            });
            at = entry.parent;
            if entry.is_by_default {
                let [_, (before, now)] = changes;
                self.by_default.replace(before, now);
            }
            let Some(parent) = at.and_then(|parent| self.accounts.get_mut(&parent)) else { return };
            for (sum, (before, now)) in parent.sums.iter_mut().zip(changes) {
                sum.below.replace(before, now);
            }
        }
    }

    /// Returns this run and those above it that have used all they had.
    fn exhausted(&self, run: RunId) -> Vec<RunId> {
        let mut found = Vec::new();
        let mut at = Some(run);
        while let Some((run, entry)) = at.and_then(|run| Some((run, self.accounts.get(&run)?))) {
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

    fn taken(&self) -> u128 {
        self.spent() + self.below.held + self.requests
    }

    fn free(&self) -> Option<u128> {
        self.with(0)
    }

    /// The amount that is free, and so much that is taken already.
    fn with(&self, taken: u128) -> Option<u128> {
        Some((u128::from(self.granted?) + taken).saturating_sub(self.taken()))
    }

    /// Adds to what is granted, where that is bounded.
    fn grant(&mut self, more: u64) {
        self.granted = self.granted.map(|granted| granted.saturating_add(more));
    }

    /// Grants no more than this.
    fn keep(&mut self, most: u128) {
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        self.granted = self.granted.map(|granted| granted.min(most));
    }

    /// Of a pool, all but what is taken is the parent's again. One unit stays, because a part that is used up would stop the run.
    fn return_unused(&mut self) {
        if self.is_pooled {
            self.keep(self.taken() + 1);
        }
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

#[cfg(test)]
mod tests {
    use offshoot_model::{BudgetGrant, MicroUsd, TokenCount};

    use super::*;

    fn used(tokens: u64, micros: u64) -> (Usage, Cost) {
        let usage = Usage { input: TokenCount::Known(tokens), ..Usage::default() };
        (usage, Cost::known(MicroUsd::from_micros(micros)))
    }

    /// Reports what a parent with a dollar used before and after it promises so much, and checks if that is found to be too
    /// much.
    #[track_caller]
    fn check(before: &[(u64, u64)], promised: u64, after: &[(u64, u64)], is_belated: bool) {
        let [parent, child] = [1, 2].map(|id| RunId::from_bytes([id; 16]));
        let usd = |micros| Grant {
            budget: BudgetGrant { tokens: None, usd: Some(MicroUsd::from_micros(micros)) },
            ..Grant::unbounded()
        };
        let mut books = Books::default();
        assert_eq!(books.open(parent, None, &usd(1_000_000)), [""; 0]);
        let tell = |books: &mut Books, reports: &[(u64, u64)]| {
            for &(tokens, micros) in reports {
                let (usage, cost) = used(tokens, micros);
                books.report(parent, &usage, &cost);
            }
        };
        tell(&mut books, before);
        assert_eq!(books.open(child, Some(parent), &usd(promised)), [""; 0]);
        tell(&mut books, after);
        let found: Vec<RunId> = books.belated().into_iter().map(|(run, _)| run).collect();
        assert_eq!(found, if is_belated { vec![child] } else { vec![] }, "{before:?} {after:?}");
    }

    #[test]
    fn what_was_spent_before_a_promise_counts_whenever_it_is_told() {
        check(&[(100, 0)], 500_000, &[(100, 800_000)], true);
        check(&[(100, 0)], 200_000, &[(100, 800_000)], false);
        check(&[(100, 800_000)], 200_000, &[(200, 900_000)], false);
        // Half of the tokens came later, and half of the dollars with them.
        check(&[(100, 0)], 500_000, &[(200, 0), (200, 800_000)], false);
        check(&[(100, 0)], 700_000, &[(200, 800_000)], true);
        check(&[], 1_000_000, &[(100, 0), (100, 800_000)], false);
        check(&[(100, 0)], 1_000_000, &[(200, 0)], false);
    }
}
