//! The pace of an account: so many of its runs work at once after its service had too much to do, or after the reset of a quota.
//!
//! ```text
//!   a call or an attempt fails: too much to do ──▶ half of those that work ──as many were answered as may work──▶ one more ──▶ …
//!                                                               ──none is in line──▶ no bound
//! ```
//!
//! Each tree has a bound of its own, and tells the others of what it meets, so that all of them ask for half as much. A tree that hears of it once has
//! heard of all that is met within some seconds: many runs end with the same fault together.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{Account, EventKind, Reason, RunId, RunStatus, Timestamp};
use offshoot_policy::pace::Paces;

use super::queue::Turn;
use super::run::RunIndex;
use super::slots::Part;
use super::{Effect, Machine};

/// The time within which faults that other trees meet are one and the same.
const TOGETHER: Duration = Duration::from_secs(10);

/// Runs that wait beside the queue, in its order: the deeper first, then by the turns of their parents. A
/// bound of two among ten thousand runs must not look at all of them at each end of one.
pub(super) type Aside = BTreeMap<(Reverse<u32>, Turn), RunIndex>;

impl Machine {
    /// Takes in that the service of a run had too much to do: fewer runs of its account work at once from here on, as long as runs stand in
    /// line.
    pub(super) fn meets_pressure(&mut self, run: RunIndex) {
        let Some(account) = self.account_of(run) else { return };
        let id = self.id(run);
        if !self.books.paces.is_news(&account, id) {
            return;
        }
        if !self.is_told(&account) {
            self.pressed.insert(Account::clone(&account), self.now);
            self.out.push(Effect::TellPressure { account: Account::clone(&account) });
        }
        let working = self.working(&account).count() as u32;
        let most = self.books.paces.bound_by_pressure(&account, id, working);
        if let Some(most) = most.filter(|most| *most < self.slots.total() && self.queued > 0) {
            self.pace(&account, Some(most));
        }
    }

    /// Takes in that the service of an account had too much to do for a run of another tree, at this moment: fewer runs of this one work at once,
    /// too.
    pub(super) fn hear_of_pressure(&mut self, account: &Account, at: Timestamp) {
        // The clock may have been set, or the news may be from before this tree was opened.
        if at > self.now || at.plus(TOGETHER) <= self.now || self.is_told(account) {
            return;
        }
        self.pressed.insert(account.clone(), self.now);
        let working = self.working(account).count() as u32;
        let before = self.books.paces.most(account);
        let most = (working.min(before.unwrap_or(u32::MAX)) / 2).max(Paces::LEAST);
        let is_less = before.unwrap_or(self.slots.total()) > most;
        if is_less && working > 0 && self.queued > 0 {
            self.pace(account, Some(most));
        }
    }

    /// Returns true if all trees know that the service of an account has too much to do at the moment.
    fn is_told(&self, account: &Account) -> bool {
        self.pressed.get(account).is_some_and(|last| last.plus(TOGETHER) > self.now)
    }

    /// Takes in that a quota of an account has begun anew, and that a run of it works: the others follow one by one.
    pub(super) fn goes_on_slowly(&mut self, account: &Account) {
        let least = Some(Paces::LEAST);
        let is_news = self.books.paces.most(account) != least;
        if is_news && self.queued > 0 && Paces::LEAST < self.slots.total() {
            self.pace(account, least);
        }
    }

    /// Takes in that the service of a run has answered it: where its account has a bound, that may grow.
    pub(super) fn is_answered(&mut self, run: RunIndex) {
        if self.books.paces.is_empty() {
            return;
        }
        let Some(account) = self.account_of(run) else { return };
        let (working, limit) = (self.working(&account).count() as u32, self.slots.total());
        if let Some(most) = self.books.paces.answered(&account, self.id(run), (working, limit)) {
            self.pace(&account, most);
        }
    }

    /// Returns true if a run that was taken from the queue may not start yet, because as many of its account work as may. It waits beside
    /// the queue then.
    pub(super) fn waits_for_pace(&mut self, run: RunIndex, turn: Turn) -> bool {
        if self.books.paces.is_empty() {
            return false;
        }
        let Some(account) = self.account_of(run) else { return false };
        // The operator has logged in to another account.
        for other in self.books.paces.replaced_by(&account) {
            self.pace(&other, None);
        }
        if self.pace_allows(&account) {
            return false;
        }
        let depth = self.runs[run].depth();
        let line = self.paced_lines.entry(Account::clone(&account)).or_default();
        line.insert((Reverse(depth), turn), run);
        true
    }

    /// Returns true if another run of this account may start.
    pub(super) fn pace_allows(&self, account: &Account) -> bool {
        let paces = &self.books.paces;
        paces.is_empty() || paces.may_start(account, self.working(account).count() as u32)
    }

    /// Puts as many runs that wait for a pace back into the queue as may start.
    pub(super) fn reconsider_paces(&mut self) {
        if self.paced_lines.is_empty() || !self.slots.any_free() {
            return;
        }
        let mut lines = std::mem::take(&mut self.paced_lines);
        lines.retain(|account, line| {
            let most = self.books.paces.most(account).map_or(usize::MAX, |most| most as usize);
            self.call_back(line, most.saturating_sub(self.working(account).count()));
            !line.is_empty()
        });
        self.paced_lines = lines;
    }

    /// Puts so many of the runs that wait beside the queue back into it, the first of them in front.
    pub(super) fn call_back(&mut self, line: &mut Aside, most: usize) {
        let mut back = Vec::new();
        while back.len() < most
            && let Some(((_, turn), run)) = line.pop_first()
        {
            if self.is_in_line(run) {
                back.push((run, turn));
            }
        }
        back.into_iter().rev().for_each(|(run, turn)| self.put_back_in_turn(run, turn));
    }

    /// Ends all bounds where no run stands in line.
    pub(super) fn end_paces(&mut self) {
        if self.queued == 0 && !self.books.paces.is_empty() {
            for account in self.books.paces.accounts() {
                self.pace(&account, None);
            }
        }
    }

    /// Returns the runs that wait beside the queue: for a pace, for a first answer, or for a slot of their account.
    pub(super) fn aside(&self) -> impl Iterator<Item = RunIndex> {
        let lines = self.paced_lines.values().chain(self.unprimed.values());
        let runs = lines.flat_map(BTreeMap::values).copied().chain(self.account_slots.in_line());
        runs.filter(|run| self.is_in_line(*run))
    }

    /// Applies that so many runs of this account work at once at most.
    pub(super) fn paced(&mut self, account: &Account, most: Option<u32>) {
        let working: Vec<RunId> = self.working(account).collect();
        self.books.paces.paced(account, most, working);
    }

    /// Returns the number of entries that stand beside the queue, those of runs that are over included.
    pub(super) fn aside_entries(&self) -> usize {
        let lines = self.paced_lines.values().chain(self.unprimed.values());
        lines.map(BTreeMap::len).sum::<usize>() + self.account_slots.in_line_count()
    }

    pub(super) fn is_in_line(&self, run: RunIndex) -> bool {
        self.runs[run].status() == RunStatus::Queued
    }

    pub(super) fn account_of(&self, run: RunIndex) -> Option<Arc<Account>> {
        self.runs.live(run)?.account.clone()
    }

    fn pace(&mut self, account: &Account, most: Option<u32>) {
        self.record_of_tree(EventKind::Paced { account: account.clone(), most });
    }

    /// Returns the runs of this account that hold a slot and have no children: a parent mostly waits for what has to start.
    fn working(&self, account: &Account) -> impl Iterator<Item = RunId> {
        let works = |run: &&RunIndex| {
            self.runs.live(**run).is_some_and(|live| {
                live.live_children.is_empty() && live.account.as_deref() == Some(account)
            })
        };
        self.slots.holders(Part::TREE).iter().filter(works).map(|run| self.id(*run))
    }
}

/// True if a service had too much to do, or was not there.
pub(super) const fn is_pressure(reason: &Reason) -> bool {
    matches!(reason, Reason::RuntimeError { retryable: true, .. })
}
