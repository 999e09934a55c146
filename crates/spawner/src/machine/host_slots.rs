//! Slots of the host, which all trees of a user share.
//!
//! ```text
//!   in line, a slot of the tree is free ──▶ do fewer hold one than the host has given? ──yes──▶ starts
//!                                              └ no: the tree claims as many as could start, and waits
//! ```
//!
//! A slot that was given and is not used goes back in the same step, or once the memory of the computer has been read. While other trees have less than is due to them, each slot that
//! becomes free beyond what is due to this one goes back, before the next run of the tree starts.

use offshoot_model::EventKind;

use super::run::RunIndex;
use super::share::Share;
use super::{Effect, Machine};
use crate::host_slots::{HostClaim, HostGrant, SlotPool};

/// The slots that the host has given to a tree, as far as they are not on record.
#[derive(Debug, Default)]
pub(super) struct HostSlots {
    /// The most that all trees hold; none where the tree counts alone.
    max: Option<u32>,
    share: Share,
    /// True if a run of this step could start but for the host.
    waits: bool,
    /// The number of runs that were set aside when runs were tried last: they could not start.
    aside: usize,
    /// True while a run waits, which is on record.
    pub(super) is_full: bool,
}

impl HostSlots {
    /// So many runs of the queue were set aside: they could not start, had the host slots for them.
    pub(super) fn could_not_start(&mut self, aside: usize) {
        self.aside = aside;
    }
}

impl Machine {
    /// A host shares out slots: from here on runs wait for them, where the configuration bounds them.
    pub(crate) fn share_host_slots(&mut self) {
        self.host_slots.max = self.config.host().max_concurrent().map(|most| most.get());
        self.share_account_slots();
    }

    /// Says for the record that the slots of the host are bounded.
    pub(super) fn record_host_bound(&mut self) {
        if let Some(max_concurrent) = self.host_slots.max {
            self.record(RunIndex::ROOT, EventKind::HostBound { max_concurrent });
        }
    }

    /// Takes in what was given of a pool.
    pub(super) fn pool_gives(&mut self, pool: &SlotPool, grant: HostGrant) {
        match pool {
            SlotPool::Host => self.host_slots.share.take(grant),
            SlotPool::Account(account) => self.account_gives(account, grant),
        }
    }

    /// Gives back what is due to others, before anything starts.
    pub(super) fn give_back_host_slots(&mut self) {
        self.host_slots.share.give_back_due(self.slots.live(), 0);
    }

    /// Returns true if one more run may hold a slot as far as the host is concerned.
    pub(super) fn has_host_slot(&self) -> bool {
        self.host_slots.max.is_none() || self.host_slots.share.unused(self.slots.live()) > 0
    }

    /// Returns true if the tree has no slot for one more run, and has claimed some: until that is answered none starts.
    pub(super) fn asks_for_host_slots(&self) -> bool {
        !self.has_host_slot() && self.host_slots.share.asks()
    }

    /// A run could start, but for the host.
    pub(super) fn waits_for_host_slot(&mut self) {
        self.host_slots.waits = true;
    }

    /// Returns true if a run of this step could start but for the host.
    pub(super) fn waits_for_host(&self) -> bool {
        self.host_slots.waits
    }

    /// True while a run waits for a slot of the host.
    pub(super) fn is_host_full(&self) -> bool {
        self.host_slots.is_full
    }

    /// All that may start has started: what is not used goes back, and what could start is claimed. Where the first run waits, or none
    /// any more, that goes on record.
    ///
    /// While the supervisor is about to say how much memory there is, the tree keeps what is not due to others: the runs that wait for that
    /// start then, or it goes back then.
    pub(super) fn claim_host_slots(&mut self) {
        let waits = std::mem::take(&mut self.host_slots.waits);
        // The run for which it is looked at memory asks for the host again when that is answered: the tree keeps its place in line.
        let waits = waits || self.host_slots.is_full && self.looks_at_memory();
        let keeps = self.looks_briefly();
        if !waits {
            self.host_slots.aside = 0;
        }
        if self.host_slots.max.is_some() {
            let claim = match keeps {
                true => self.host_slots.share.claim_again(self.slots.live()),
                false => self.claim(waits),
            };
            self.out.extend(claim.map(|claim| Effect::ClaimSlots(SlotPool::Host, claim)));
        }
        if keeps {
            return;
        }
        let host = &self.host_slots;
        let event = match (waits, host.is_full) {
            // Until the host has answered it is not known that there is no slot.
            (true, false) if host.share.is_answered() => EventKind::HostFull,
            (false, true) => EventKind::HostFree,
            _ => return,
        };
        self.record_of_tree(event);
    }

    fn claim(&mut self, waits: bool) -> Option<HostClaim> {
        let live = self.slots.live();
        let wants = if waits { live + self.could_start() } else { live };
        let share = &mut self.host_slots.share;
        share.give_back(share.unused(live));
        share.claim(live, wants)
    }

    /// Returns how many runs could start at most, had the host slots for all: one where it waits, whatever the numbers say.
    fn could_start(&self) -> u32 {
        let aside = self.aside_entries() + self.account_slots.returning() + self.host_slots.aside;
        let in_line = self.queued().saturating_sub(aside);
        let in_line = u32::try_from(in_line).unwrap_or(u32::MAX);
        self.slots.room().min(in_line).max(1)
    }
}
