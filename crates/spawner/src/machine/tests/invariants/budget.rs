//! Invariants of budgets: used is what was reported, and reserved is what was promised.

use offshoot_model::{Ending, RunId, Usage};
use offshoot_policy::budget::Unit;

use super::Ledger;
use crate::machine::Machine;

impl Ledger {
    /// The runtime of a run panics after it has told this.
    pub(in crate::machine::tests) fn panics(&mut self, run: RunId, told: u64) {
        self.panicked.insert(run, told);
    }

    /// Checks that what a run reported before a panic stays counted, as the least that it used.
    pub(super) fn assert_panic_is_counted(&mut self, run: RunId, ending: &Ending) {
        let Some(told) = self.panicked.remove(&run) else { return };
        let total = ending.usage.total();
        assert!(total.charged() >= told, "{total:?} after {told} were told");
        let may_be_exact = told == 0 && self.limits.budget_tokens.is_none();
        let is_exact = total.known().is_some();
        assert!(may_be_exact || self.limits.metered || !is_exact, "{total:?} after a panic");
        *self.seen.entry("panic after a report").or_default() += u32::from(told > 0);
    }

    /// The tokens that stand on record for a run.
    pub(in crate::machine::tests) fn reported(&self, run: RunId) -> u64 {
        self.reported.get(&run).copied().unwrap_or(0)
    }

    /// Counts a report of a run for all runs above it.
    pub(super) fn spend(&mut self, run: RunId, usage: &Usage) {
        let total = usage.total().charged();
        let before = self.reported.insert(run, total).unwrap_or(0);
        assert!(total >= before, "nothing spent is unspent");
        let mut at = Some(run);
        while let Some(run) = at {
            *self.spent.entry(run).or_default() += total - before;
            at = self.admitted[&run].parent;
        }
    }

    /// Counts as used all that a run had and had not promised, because it is not known in full what it used.
    pub(super) fn spend_all(&mut self, run: RunId) {
        let granted = self.granted(run).unwrap_or(0).saturating_sub(self.held_below(run));
        let spent = self.spent.get(&run).copied().unwrap_or(0);
        let mut at = Some(run);
        while let Some(run) = at {
            *self.spent.entry(run).or_default() += granted.saturating_sub(spent);
            at = self.admitted[&run].parent;
        }
    }

    /// Returns the tokens that are held for the runs below this one.
    fn held_below(&self, run: RunId) -> u64 {
        let children = self.admitted.iter().filter(|(_, it)| it.parent == Some(run));
        let held = |(id, _): (&RunId, _)| {
            let spent = self.spent.get(id).copied().unwrap_or(0);
            let rest = self.granted(*id).unwrap_or(0).saturating_sub(spent);
            if self.ended.contains_key(id) { rest.min(self.held_below(*id)) } else { rest }
        };
        children.map(held).sum()
    }

    /// A piece takes more out of the pool: never more than there is.
    pub(super) fn draw(&mut self, run: RunId, more: u64) {
        let parent = self.admitted[&run].parent.expect("a root draws from nothing");
        assert!(self.admitted[&run].grant.pooled.tokens, "only pooled pieces draw");
        let spent = |run: RunId| self.spent.get(&run).copied().unwrap_or(0);
        let above = spent(run).saturating_sub(self.granted(run).unwrap_or(0));
        let taken = spent(parent) + self.held_below(parent) + more;
        let has = self.granted(parent).expect("a pool is bounded") + above;
        assert!(taken <= has, "{taken} are taken of {has}");
        *self.drawn.entry(run).or_default() += more as i64;
        *self.seen.entry("drawn while it runs").or_default() += u32::from(spent(run) > 0);
    }

    /// A piece that stands in line again holds nothing that it has not used.
    pub(super) fn return_to_pool(&mut self, run: RunId) {
        if self.admitted[&run].grant.pooled.tokens {
            let granted = self.granted(run).unwrap_or(0);
            let kept = self.spent.get(&run).copied().unwrap_or(0) + self.held_below(run);
            *self.drawn.entry(run).or_default() -= granted.saturating_sub(kept) as i64;
        }
    }

    /// A piece of which a request is over holds of the pool what it has used and what it holds for other requests, and one token.
    pub(super) fn return_unused(&mut self, run: RunId) {
        if self.admitted[&run].grant.pooled.tokens {
            let granted = self.granted(run).unwrap_or(0);
            let spent = self.spent.get(&run).copied().unwrap_or(0);
            let requests = u64::try_from(self.held_for_requests(run)).expect("a few requests");
            let kept = spent + self.held_below(run) + requests + 1;
            *self.drawn.entry(run).or_default() -= granted.saturating_sub(kept) as i64;
        }
    }

    /// Returns the grant of a run, with what was added and what it has drawn.
    pub(super) fn granted(&self, run: RunId) -> Option<u64> {
        let added = self.added.get(&run).copied().unwrap_or(0);
        let drawn = self.drawn.get(&run).copied().unwrap_or(0);
        let granted = self.admitted[&run].grant.budget.tokens? + added;
        Some(granted.checked_add_signed(drawn).expect("no part is below zero"))
    }

    /// Reserved, used, overrun and free add up for all runs, and what was used is what was reported.
    pub(super) fn assert_budgets(&mut self, machine: &Machine) {
        if self.limits.budget_tokens.is_none() {
            return;
        }
        for &run in self.admitted.keys() {
            let Some(granted) = self.granted(run) else { continue };
            let Some(balance) = machine.books.ledger.balance(run, Unit::Tokens) else { continue };
            let spent = self.spent.get(&run).copied().unwrap_or(0);
            assert_eq!(balance.granted, Some(granted));
            assert_eq!(balance.used + balance.overrun, spent.into(), "what was used was reported");
            let children = self
                .admitted
                .iter()
                .filter(|(id, it)| it.parent == Some(run) && !self.ended.contains_key(id));
            let promised = children.map(|(id, _)| {
                let spent = self.spent.get(id).copied().unwrap_or(0);
                u128::from(self.granted(*id).unwrap_or(0).saturating_sub(spent))
            });
            let promised = promised.sum::<u128>() + self.held_for_requests(run);
            assert!(promised <= balance.reserved, "what was promised is reserved");
            let exceeds = balance.overrun > 0 || spent > granted;
            assert!(!self.limits.metered || !exceeds, "what is metered never exceeds its budget");
            let is_over = spent > 0 && spent >= granted && self.holding.contains(&run);
            assert!(
                !is_over || self.stopping.contains(&run),
                "a run that reaches its limit is stopped"
            );
            *self.seen.entry("out of budget").or_default() += u32::from(is_over);
        }
    }
}
