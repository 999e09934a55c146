//! Slots of accounts, which all trees of a user share: so many runs of one account hold one at once.
//!
//! ```text
//!   in line, a slot of the tree is free ──▶ has the tree a slot of the account that no run holds? ──yes──▶ the host ──▶ starts
//!                                             └ no: stands in the line of the account, and the tree claims one
//! ```
//!
//! The line of an account stays while the tree is full by its own caps, and so does the place of the tree among all trees. A tree that is
//! given a slot that it cannot use at once keeps it as long as no other tree waits for it. Where others wait, it keeps one of them if none of its
//! runs holds any, so that it is not passed over for ever:
//!
//! - while its next run waits for the host, until the tree has started another run: it is the next of the tree that the host lets start;
//! - else for a minute, and for half as long each time that this was in vain. Then it goes to the other tree, and this one is the last in line.
//!
//! A tree keeps none while no run can start for another reason: the tree is paused, or memory is short. It keeps those that come free while
//! the memory of the computer is read, but not while the processes of its runs are measured.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use offshoot_model::{Account, Ending, EventKind, Reason};
use offshoot_runtime::EXEC;

use super::account_pool::Pool;
use super::queue::{Queue, Turn};
use super::run::{RunIndex, SlotState};
use super::slots::Lease;
use super::timer::Due;
use super::{Effect, Machine};
use crate::host_slots::{HostGrant, SlotPool};

/// The slots of the accounts of a tree, as far as they are not on record.
#[derive(Debug, Default)]
pub(super) struct AccountSlots {
    /// The most runs of one account that all trees hold; none where the tree counts alone.
    max: Option<u32>,
    /// One for each account of which a run has wanted to start.
    pools: BTreeMap<Arc<Account>, Pool>,
    /// The accounts of which runs wait for a slot, which is on record.
    full: BTreeSet<Account>,
    /// True if the pool of budget holds up the first run of the queue in this step. What stands before it, because it is deeper, is not held up.
    budget_waits: bool,
}

impl AccountSlots {
    /// Takes in that runs of an account wait for a slot, or that none does any more.
    pub(super) fn recorded(&mut self, account: &Account, is_full: bool) {
        match is_full {
            true => self.full.insert(account.clone()),
            false => self.full.remove(account),
        };
    }

    /// Returns true if runs of any account wait for a slot.
    pub(super) fn is_any_full(&self) -> bool {
        !self.full.is_empty()
    }

    /// Takes in that a run holds no slot, stands in no line, or both.
    pub(super) fn leave(&mut self, run: RunIndex) {
        for pool in self.pools.values_mut() {
            pool.holders.remove(&run);
            pool.leave(run);
        }
    }

    /// A run that was taken from the queue cannot start: another one may use the slot.
    pub(super) fn pass_on(&mut self, run: RunIndex) {
        for pool in self.pools.values_mut() {
            pool.going_on.remove(&run);
            pool.first.take_if(|first| *first == run);
            pool.were_first.remove(&run);
        }
    }

    /// Returns the runs that have not started and wait for a slot.
    pub(super) fn in_line(&self) -> impl Iterator<Item = RunIndex> {
        self.pools.values().flat_map(|pool| pool.new.keys()).copied()
    }

    /// Returns the number of the same.
    pub(super) fn in_line_count(&self) -> usize {
        self.pools.values().map(|pool| pool.new.len()).sum()
    }

    /// Returns the number of parents that wait for a slot to go on.
    pub(super) fn returning(&self) -> usize {
        self.pools.values().map(|pool| pool.returning.len()).sum()
    }

    /// Returns true if a run of the tree has wanted a slot of an account.
    pub(super) fn are_counted(&self) -> bool {
        !self.pools.is_empty()
    }

    /// Returns true if a run waits in the line of an account.
    pub(super) fn waits(&self, account: &Account) -> bool {
        self.pools.get(account).is_some_and(|pool| pool.has_line() || pool.first.is_some())
    }

    /// Returns true if runs stand in the line of an account.
    pub(super) fn has_line(&self, account: &Account) -> bool {
        self.pools.get(account).is_some_and(Pool::has_line)
    }

    /// Returns true if a run stands in the line of its account.
    pub(super) fn is_in_line(&self, run: RunIndex) -> bool {
        self.pools.values().any(|pool| pool.new.contains_key(&run) || pool.returning.contains(&run))
    }
}

impl Machine {
    /// A host shares out slots of accounts: from here on runs wait for them, where the configuration bounds them.
    pub(super) fn share_account_slots(&mut self) {
        let most = self.config.host().max_concurrent_per_account();
        self.account_slots.max = most.map(|most| most.get());
    }

    /// Takes in what was given of an account.
    pub(super) fn account_gives(&mut self, account: &Account, grant: HostGrant) {
        if let Some(pool) = self.account_slots.pools.get_mut(account) {
            pool.share.take(grant);
        }
    }

    /// Gives back what is due to others, before anything starts.
    pub(super) fn give_back_account_slots(&mut self) {
        let now = self.now;
        self.account_slots.budget_waits = false;
        for pool in self.account_slots.pools.values_mut() {
            // One that has just come free was not kept.
            let most = pool.kept;
            pool.give_back_due(most, now);
        }
    }

    /// Puts runs that wait for a slot of their account back into the queue: all parents that have one and room in the tree, and of the others
    /// the first.
    pub(super) fn offer_account_slots(&mut self) {
        if self.account_slots.pools.is_empty() {
            return;
        }
        let starts_none = self.starts_none();
        let mut pools = std::mem::take(&mut self.account_slots.pools);
        for pool in pools.values_mut() {
            let position = |run: RunIndex| self.runs[run].position;
            let has_room = |run: RunIndex| self.slots.free_at(position(run));
            pool.is_first_no_more(|run| !has_room(run));
            while pool.unused() > pool.going_on.len()
                && let Some(run) = pool.next_parent(&self.slots)
            {
                pool.going_on.insert(run);
                self.queue.push_returning(&self.slots, position(run), run);
            }
            if starts_none || pool.first.is_some() || pool.unused() <= pool.going_on.len() {
                continue;
            }
            if let Some(run) = pool.were_first.iter().copied().find(|run| has_room(*run)) {
                pool.were_first.remove(&run);
                pool.first = Some(run);
            } else if let Some((run, turn)) = pool.next_new(&self.slots) {
                pool.first = Some(run);
                self.put_back_in_turn(run, turn);
            }
        }
        self.account_slots.pools = pools;
    }

    /// A run holds a slot of the tree from here on, and so one of its account.
    pub(super) fn hold_account_slot(&mut self, run: RunIndex) {
        if self.account_slots.pools.is_empty() {
            return;
        }
        let account = self.account_of(run);
        for (of, pool) in &mut self.account_slots.pools {
            pool.leave(run);
            if Some(of) == account.as_ref() {
                pool.holders.insert(run);
                pool.in_vain = 0;
            } else {
                pool.holders.remove(&run);
                // Of one that keeps nothing this is forgotten at the end of the step.
                pool.is_passed = true;
            }
        }
    }

    /// Takes the lease of a run back, and what it holds of its account.
    pub(super) fn let_go(&mut self, run: RunIndex, lease: Lease) {
        self.slots.give_back(lease);
        self.account_slots.leave(run);
    }

    /// Returns true if a run that was taken from the queue waits for a slot of its account, or fails because those cannot be counted. It stands
    /// in the line of the account then.
    pub(super) fn waits_for_account_slot(&mut self, run: RunIndex, turn: Turn) -> bool {
        let Some(account) = self.shared_account(run) else { return false };
        let pool = self.account_slots.pools.entry(account).or_default();
        if let Some(message) = pool.fault.clone() {
            let reason = Reason::RuntimeError { message, retryable: false };
            self.finished(run, Ending::of(reason));
            return true;
        }
        let was_first = pool.were_first.remove(&run) || pool.first == Some(run);
        if pool.unused() > 0 {
            // Kept for it, should it have to wait for the host.
            let before = pool.first.replace(run).filter(|before| *before != run);
            pool.were_first.extend(before);
            return false;
        }
        pool.first.take_if(|first| *first == run);
        match was_first {
            true => pool.line.push_front(&self.slots, self.runs[run].place(), run),
            false => pool.line.push(&self.slots, self.runs[run].place(), run),
        }
        pool.new.insert(run, turn);
        true
    }

    /// Returns true if a parent whose wait has succeeded waits for a slot of its account. It stands in the line of the account then.
    pub(super) fn waits_to_return(&mut self, run: RunIndex) -> bool {
        let live = self.runs.live(run);
        if !live.is_some_and(|live| matches!(live.phase, SlotState::Returning { .. })) {
            self.account_slots.pass_on(run);
            return false;
        }
        let Some(account) = self.shared_account(run) else { return false };
        let pool = self.account_slots.pools.entry(account).or_default();
        if pool.unused() > 0 || pool.fault.is_some() {
            return false;
        }
        pool.line.push_returning(&self.slots, self.runs[run].position, run);
        pool.going_on.remove(&run);
        pool.returning.insert(run);
        true
    }

    /// Returns true if a run, and those behind it of its parent, stay in the queue of the tree for this step: how many slots their account has is
    /// not known before its first grant, and as many runs stand in its line as could start. Else all of them would be moved to that line, and
    /// back one by one. A program behind them waits for the first grant as well.
    pub(super) fn waits_for_first_grant(&self, run: RunIndex) -> bool {
        let account = self.runs.live(run).and_then(|live| live.account.as_ref());
        let pool = account.and_then(|account| self.account_slots.pools.get(account));
        pool.is_some_and(|pool| {
            let is_known = pool.share.is_known() || pool.fault.is_some();
            !is_known && pool.new.len() >= self.slots.room() as usize
        })
    }

    /// Returns the account of a run whose slots are shared. The first run of an account makes its pool. Programs have no account: what they
    /// ask is not known.
    fn shared_account(&mut self, run: RunIndex) -> Option<Arc<Account>> {
        let max_concurrent = self.account_slots.max?;
        let account = self.account_of(run).filter(|account| *account.runtime != *EXEC)?;
        if !self.account_slots.pools.contains_key(&account) {
            self.account_slots.pools.insert(Arc::clone(&account), Pool::default());
            let bound = Account::clone(&account);
            self.record_of_tree(EventKind::AccountBound { account: bound, max_concurrent });
        }
        Some(account)
    }

    /// The slots of an account cannot be counted: no run of it starts beyond a bound that would not hold.
    pub(super) fn cannot_count(&mut self, account: &Account, message: String) {
        if let Some(pool) = self.account_slots.pools.get_mut(account) {
            pool.fault = Some(message);
        }
        self.leave_account_line(account);
    }

    /// Something has happened to an account: its runs go back to the queue, to hear of it.
    pub(super) fn leave_account_line(&mut self, account: &Account) {
        let Some(pool) = self.account_slots.pools.get_mut(account) else { return };
        let new = std::mem::take(&mut pool.new).into_iter();
        let mut runs: Vec<(Turn, RunIndex)> = new.map(|(run, turn)| (turn, run)).collect();
        runs.sort_unstable();
        pool.line = Queue::default();
        for run in &pool.returning {
            pool.line.push_returning(&self.slots, self.runs[*run].position, *run);
        }
        runs.into_iter().rev().for_each(|(turn, run)| self.put_back_in_turn(run, turn));
    }

    /// Returns true if no run that has not started can, whatever slots there are.
    pub(super) fn starts_none(&self) -> bool {
        self.paused || self.held || self.is_memory_short()
    }

    /// The pool of budget holds up the first run of the queue.
    pub(super) fn is_held_up_by_budget(&mut self) {
        self.account_slots.budget_waits = true;
    }

    /// All that may start has started: what is not kept goes back, and what could start is claimed. Where the first run of an account
    /// waits, or none any more, that goes on record. While the supervisor is about to say how much memory there is, the tree keeps what is not due to
    /// others.
    pub(super) fn claim_account_slots(&mut self) {
        let is_settled = self.account_slots.pools.values().all(Pool::is_settled);
        if is_settled && self.account_slots.full.is_empty() {
            return;
        }
        let starts_none = self.starts_none();
        let waits_for_host = self.waits_for_host() || self.looks_at_memory();
        let keeps = self.looks_briefly();
        let room = if self.account_slots.budget_waits { 1 } else { self.slots.room().max(1) };
        let mut pools = std::mem::take(&mut self.account_slots.pools);
        for (account, pool) in &mut pools {
            let live = pool.live();
            let effect = |claim| Effect::ClaimSlots(SlotPool::Account(Arc::clone(account)), claim);
            if keeps {
                pool.kept = pool.kept.min(pool.share.unused(live));
                pool.is_passed &= pool.kept > 0;
                if pool.fault.is_none() {
                    self.out.extend(pool.share.claim_again(live).map(effect));
                }
                continue;
            }
            let returning = pool.returning.len() + pool.going_on.len();
            let returning = u32::try_from(returning).expect("there are fewer runs than 2^32");
            pool.is_first_no_more(|_| starts_none);
            let first = usize::from(pool.first.is_some());
            let new = first + pool.were_first.len() + pool.new.len();
            let new =
                if starts_none { 0 } else { u32::try_from(new).unwrap_or(u32::MAX).min(room) };
            let waiting = returning + new;
            let unused = pool.share.unused(live);
            pool.share.give_back(unused - unused.min(waiting));
            pool.give_back_due(u32::MAX, self.now);
            pool.kept = pool.share.unused(live);
            let keeps_from_others = pool.kept > 0 && pool.share.is_due_to_others();
            (pool.kept_since, pool.is_passed) = match keeps_from_others {
                true => (Some(pool.kept_since.unwrap_or(self.now)), pool.is_passed),
                false => (None, false),
            };
            pool.waits_for_host = waits_for_host;
            if let Some(until) = pool.kept_until() {
                self.timers.arm(until.max(self.now), Due::AccountSlot);
            }
            if pool.fault.is_none() {
                self.out.extend(pool.share.claim(live, live + waiting).map(effect));
            }
            let is_full = self.account_slots.full.contains(&**account);
            // A slot for which it is looked at memory is taken when that is answered, and the account is full as before.
            let is_taken = pool.unused() == 0 || is_full && self.looks_at_memory();
            let event = match (pool.has_line() && is_taken, is_full) {
                // Until the host has answered it is not known that there is no slot.
                (true, false) if pool.share.is_answered() => {
                    EventKind::AccountFull { account: Account::clone(account) }
                }
                (false, true) => EventKind::AccountFree { account: Account::clone(account) },
                _ => continue,
            };
            self.record_of_tree(event);
        }
        self.account_slots.pools = pools;
        if keeps {
            return;
        }
        // Told by the supervisor before this one.
        let pools = &self.account_slots.pools;
        let is_left = |account: &&Account| !pools.contains_key(*account);
        let left: Vec<Account> = self.account_slots.full.iter().filter(is_left).cloned().collect();
        for account in left {
            self.record_of_tree(EventKind::AccountFree { account });
        }
    }
}
