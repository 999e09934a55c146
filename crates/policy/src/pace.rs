//! The number of runs of an account that work at once, after its service had too much to do, or a quota of it was used up.
//!
//! ```text
//!             too much to do: half of those that work
//!  no bound ──────────────────────────────────────────▶ bound ──as many were answered as may work──▶ one more
//!     ▲ └──────── the reset of a quota: two ───────────▶ │ │ └─────too much to do once more──────────▶ half
//!     └───────────none is in line, or all may work───────┘
//! ```
//!
//! A bound grows by one each time that as many runs were answered as may work, each counted once: a run alone that is answered often says
//! nothing of what several would meet. The owner of the tree counts the runs that work, without those that have children: a parent mostly waits, and what it waits
//! for must be able to start.

use std::collections::{BTreeMap, BTreeSet};

use offshoot_model::{Account, RunId};

/// The bounds of one tree, one for each account that has one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paces(BTreeMap<Account, Pace>);

/// The bound of one account.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pace {
    /// The most runs that work at once.
    most: u32,
    /// The runs that worked when the bound was lowered, and were not answered before it grew: a fault of the service that one of them meets
    /// is no news.
    before: BTreeSet<RunId>,
    /// The runs that were answered since the bound was set.
    answered: BTreeSet<RunId>,
}

impl Paces {
    /// The smallest bound, and that after the reset of a quota: one run that hangs does not hold up all others.
    pub const LEAST: u32 = 2;

    /// Returns true if no account has a bound.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if another run of this account may start, where so many work.
    pub fn may_start(&self, account: &Account, working: u32) -> bool {
        self.0.get(account).is_none_or(|pace| working < pace.most)
    }

    /// Takes in that an attempt of a run is over.
    pub fn over(&mut self, account: &Account, run: RunId) {
        if let Some(pace) = self.0.get_mut(account) {
            pace.before.remove(&run);
        }
    }

    /// Returns true if a fault of the service that a run meets says more than is known: it began after the bound was set, or was answered
    /// before the bound grew.
    pub fn is_news(&self, account: &Account, run: RunId) -> bool {
        self.0.get(account).is_none_or(|pace| !pace.before.contains(&run))
    }

    /// Returns the bound that follows where the service had too much to do for a run of this account while so many worked; none where the
    /// run began before the bound that there is, or the bound is the least one.
    pub fn bound_by_pressure(&self, account: &Account, run: RunId, working: u32) -> Option<u32> {
        let Some(pace) = self.0.get(account) else { return Some((working / 2).max(Self::LEAST)) };
        let less = (working.min(pace.most) / 2).max(Self::LEAST);
        Some(less).filter(|less| *less < pace.most && !pace.before.contains(&run))
    }

    /// Takes in that the service answers a run of this account while so many work. Returns the bound that follows, if one does: inside,
    /// none is no bound. `limit` is the number of runs that the tree allows at once.
    pub fn answered(
        &mut self,
        account: &Account,
        run: RunId,
        (working, limit): (u32, u32),
    ) -> Option<Option<u32>> {
        let pace = self.0.get_mut(account)?;
        pace.answered.insert(run);
        if pace.answered.len() < pace.most as usize || working > pace.most {
            return None;
        }
        Some(Some(pace.most + 1).filter(|more| *more < limit))
    }

    /// Returns the accounts that have a bound.
    pub fn accounts(&self) -> Vec<Account> {
        self.0.keys().cloned().collect()
    }

    /// Takes in that so many runs of this account work at once at most, where these do now; none is no bound.
    pub fn paced(
        &mut self,
        account: &Account,
        most: Option<u32>,
        working: impl IntoIterator<Item = RunId>,
    ) {
        let Some(most) = most else {
            self.0.remove(account);
            return;
        };
        let known = self.0.get_mut(account);
        let before = match known {
            // It grows because so many were answered.
            Some(pace) if pace.most <= most => &pace.before - &pace.answered,
            _ => working.into_iter().collect(),
        };
        self.0.insert(account.clone(), Pace { most, before, answered: BTreeSet::new() });
    }

    /// Takes in that another supervisor holds the tree: nothing works.
    pub fn interrupt(&mut self) {
        for pace in self.0.values_mut() {
            (pace.before, pace.answered) = Default::default();
        }
    }

    /// Returns the bound of an account.
    pub fn most(&self, account: &Account) -> Option<u32> {
        self.0.get(account).map(|pace| pace.most)
    }

    /// Returns the accounts of the same runtime with another credential than this one that have a bound: the runtime has another account
    /// now.
    pub fn replaced_by(&self, account: &Account) -> Vec<Account> {
        let is_other = |it: &&Account| it.runtime == account.runtime && *it != account;
        self.0.keys().filter(is_other).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(number: u8) -> RunId {
        RunId::from_bytes([number; 16])
    }

    fn runs(numbers: std::ops::Range<u8>) -> impl Iterator<Item = RunId> {
        numbers.map(run)
    }

    fn paced(most: u32) -> (Paces, Account) {
        let (mut paces, account) = (Paces::default(), Account::of_runtime("claude"));
        paces.paced(&account, Some(most), runs(0..4));
        (paces, account)
    }

    /// The bounds that follow where these are answered, while so many work.
    fn answers(
        paces: &mut Paces,
        account: &Account,
        runs: impl IntoIterator<Item = RunId>,
        now: (u32, u32),
    ) -> Vec<Option<Option<u32>>> {
        runs.into_iter().map(|run| paces.answered(account, run, now)).collect()
    }

    #[test]
    fn pressure_halves_once_for_all_that_meet_it_together() {
        let (mut paces, account) = (Paces::default(), Account::of_runtime("claude"));
        assert!(paces.is_empty() && paces.may_start(&account, 8));
        assert_eq!(paces.bound_by_pressure(&account, run(3), 8), Some(4));
        assert_eq!(paces.bound_by_pressure(&account, run(3), 1), Some(2), "two is the least");
        paces.paced(&account, Some(4), runs(0..8));
        assert!(!paces.is_empty());
        for run in runs(0..8) {
            assert_eq!(paces.bound_by_pressure(&account, run, 8), None, "it is no news");
        }
        assert_eq!([3, 4].map(|working| paces.may_start(&account, working)), [true, false]);
        // One that began under the bound, and one that has another attempt under it.
        assert_eq!(paces.bound_by_pressure(&account, run(10), 4), Some(2));
        paces.over(&account, run(1));
        assert_eq!(paces.bound_by_pressure(&account, run(1), 9), Some(2));
        paces.paced(&account, Some(2), runs(10..14));
        assert_eq!(paces.bound_by_pressure(&account, run(15), 4), None, "two is the least");
    }

    #[test]
    fn a_lower_bound_is_news_to_those_that_begin_under_it() {
        let (mut paces, account) = (Paces::default(), Account::of_runtime("claude"));
        paces.paced(&account, Some(9), runs(0..18));
        let next = |paces: &Paces, number, working| {
            paces.bound_by_pressure(&account, run(number), working)
        };
        assert_eq!([9, 20].map(|working| next(&paces, 20, working)), [Some(4), Some(4)]);
        paces.paced(&account, Some(4), runs(18..22));
        assert_eq!(next(&paces, 20, 4), None, "it worked when the bound was set");
        assert_eq!(next(&paces, 1, 4), Some(2), "it is not of those that worked then");
    }

    #[test]
    fn a_bound_grows_by_one_when_as_many_are_answered_as_may_work() {
        let (mut paces, account) = paced(2);
        let told = answers(&mut paces, &account, [run(1), run(1), run(2)], (2, 9));
        assert_eq!(told, [None, None, Some(Some(3))], "one run may be answered often");
        paces.paced(&account, Some(3), runs(0..9));
        assert_eq!(paces.bound_by_pressure(&account, run(0), 3), None, "it is no news still");
        assert_eq!(paces.bound_by_pressure(&account, run(8), 3), Some(2));
        assert!(paces.may_start(&account, 2) && !paces.may_start(&account, 3));
        let told = answers(&mut paces, &account, runs(1..4), (3, 9));
        assert_eq!(told, [None, None, Some(Some(4))]);
        paces.paced(&account, None, runs(0..4));
        assert!(paces.is_empty() && paces.may_start(&account, 100));
        assert_eq!(paces.answered(&account, run(1), (1, 9)), None);
    }

    /// One answer of a run is several events: its words, its use, its end.
    #[test]
    fn a_run_that_works_alone_makes_its_bound_grow_by_nothing() {
        let (mut paces, account) = paced(2);
        assert_eq!(answers(&mut paces, &account, [run(1); 9], (1, 9)), [None; 9]);
        // One after the other is as good as two at once.
        assert_eq!(paces.answered(&account, run(2), (1, 9)), Some(Some(3)));
        paces.paced(&account, Some(3), runs(2..3));
        assert_eq!(answers(&mut paces, &account, [run(2), run(3)], (2, 9)), [None; 2]);
    }

    #[test]
    fn a_bound_ends_where_the_tree_allows_no_more() {
        let (mut paces, account) = paced(2);
        assert_eq!(answers(&mut paces, &account, runs(1..3), (2, 3)), [None, Some(None)]);
    }

    #[test]
    fn more_than_the_bound_end_before_it_grows() {
        let (mut paces, account) = paced(2);
        assert_eq!(answers(&mut paces, &account, runs(0..5), (4, 9)), [None; 5]);
        assert_eq!(paces.answered(&account, run(0), (2, 9)), Some(Some(3)));
    }

    #[test]
    fn accounts_are_not_mixed_and_a_bound_outlives_its_supervisor() {
        let (mut paces, account) = paced(2);
        let other = Account::of_runtime("codex");
        assert!(paces.may_start(&other, 9) && !paces.may_start(&account, 2));
        assert_eq!((paces.most(&account), paces.most(&other)), (Some(2), None));
        assert_eq!(paces.bound_by_pressure(&account, run(0), 4), None);
        assert_eq!(paces.answered(&account, run(0), (2, 9)), None);
        paces.interrupt();
        assert_eq!((paces.most(&account), paces.accounts()), (Some(2), vec![account.clone()]));
        let told = answers(&mut paces, &account, runs(1..3), (2, 9));
        assert_eq!(told, [None, Some(Some(3))], "from anew");
        let new = Account::of_credential("claude", &[7; 32], b"another login");
        assert_eq!(paces.replaced_by(&new), [account]);
        assert_eq!(paces.replaced_by(&other), []);
    }
}
