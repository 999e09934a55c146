//! The part of one tree in slots that all trees of a user share.

use crate::host_slots::{HostClaim, HostGrant};

/// Slots that were given to a tree, and what it claims.
#[derive(Debug, Default)]
pub(super) struct Share {
    given: u32,
    /// The number that is due to the tree, of what all trees want.
    due: u32,
    /// Slots that go back at the end of the step.
    back: u32,
    /// The last claim.
    claimed: HostClaim,
    /// True once the host has answered to it.
    is_answered: bool,
    /// True once the host has answered to any.
    is_known: bool,
}

impl Share {
    /// Takes in what was given.
    pub(super) fn take(&mut self, grant: HostGrant) {
        let HostGrant { more, due, claim } = grant;
        self.given += more;
        self.due = due;
        // A grant to the claim before may still be on its way when the tree wants more.
        self.is_answered = claim == self.claimed.number;
        self.is_known = true;
    }

    /// The number of slots that no run holds, where so many runs hold one.
    pub(super) fn unused(&self, live: u32) -> u32 {
        self.given.saturating_sub(live)
    }

    /// True once the host has answered to the last claim: before, it is not known that there is no slot.
    pub(super) fn is_answered(&self) -> bool {
        self.is_answered
    }

    /// True if more slots were claimed than were given, and the host has not answered yet.
    pub(super) fn asks(&self) -> bool {
        self.claimed.wants > self.given && !self.is_answered
    }

    /// True if so many runs hold a slot as were given, and were claimed last.
    pub(super) fn is_settled(&self, live: u32) -> bool {
        let HostClaim { number: _, back: _, debt, wants } = self.claimed;
        (self.given, self.back, debt, wants) == (live, 0, 0, live)
    }

    /// True once it is known how many slots there are for the tree, from the first answer of the host on.
    pub(super) fn is_known(&self) -> bool {
        self.is_known
    }

    /// True if other trees wait for a slot that this one has.
    pub(super) fn is_due_to_others(&self) -> bool {
        self.given > self.due
    }

    /// Gives back slots that no run holds.
    pub(super) fn give_back(&mut self, slots: u32) {
        self.given -= slots;
        self.back += slots;
    }

    /// Gives back what is due to other trees and no run holds, but for so many slots that are kept.
    pub(super) fn give_back_due(&mut self, live: u32, keeps: u32) {
        let unused = self.unused(live).saturating_sub(keeps);
        self.give_back(unused.min(self.given.saturating_sub(self.due)));
    }

    /// Claims what it has claimed before, and a slot for each run that holds one.
    pub(super) fn claim_again(&mut self, live: u32) -> Option<HostClaim> {
        self.claim(live, self.claimed.wants.max(live))
    }

    /// Returns what the tree claims, where so many of its runs hold a slot and it wants so many in all; none where it has claimed that already.
    pub(super) fn claim(&mut self, live: u32, wants: u32) -> Option<HostClaim> {
        let debt = live.saturating_sub(self.given);
        let back = std::mem::take(&mut self.back);
        let number = self.claimed.number;
        let claim = HostClaim { number, back: 0, debt, wants };
        if back == 0 && claim == self.claimed {
            return None;
        }
        let claim = HostClaim { number: number + 1, ..claim };
        self.is_answered = false;
        self.claimed = claim;
        Some(HostClaim { back, ..claim })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_to_the_claim_before_is_no_answer_to_the_last_one() {
        let mut share = Share::default();
        let [first, second] = [1, 2].map(|wants| share.claim(0, wants).map(|claim| claim.wants));
        assert_eq!((first, second), (Some(1), Some(2)));
        share.take(HostGrant { more: 1, due: 1, claim: 1 });
        assert!(!share.is_answered(), "the host has not heard of the second");
        assert_eq!(share.claim(1, 2), None);
        share.take(HostGrant { more: 0, due: 1, claim: 2 });
        assert!(share.is_answered());
    }

    #[test]
    fn what_is_claimed_is_asked_for_until_the_host_has_answered() {
        let mut share = Share::default();
        assert!(!share.asks() && !share.is_known(), "nothing was claimed");
        share.claim(0, 2);
        assert!(share.asks() && !share.is_known());
        share.take(HostGrant { more: 1, due: 2, claim: 1 });
        assert!(!share.asks() && share.is_known(), "there is no second slot");
        share.claim(1, 3);
        assert!(share.asks(), "more is claimed than was given");
        share.claim(1, 1);
        assert!(!share.asks(), "as much is claimed as was given");
    }

    #[test]
    fn a_share_is_settled_that_holds_what_it_was_given_and_claims_no_more() {
        let mut share = Share::default();
        assert!(share.is_settled(0));
        share.claim(0, 1);
        share.take(HostGrant { more: 1, due: 1, claim: 1 });
        assert!(share.is_settled(1));
        assert!(!share.is_settled(0), "no run holds the slot");
        share.claim(1, 2);
        assert!(!share.is_settled(1), "another one is claimed");
        share.claim(1, 1);
        share.give_back(1);
        assert!(!share.is_settled(1) && !share.is_settled(0), "one goes back");
    }

    #[test]
    fn what_was_claimed_is_claimed_again_with_what_is_held() {
        let mut share = Share::default();
        share.claim(0, 3);
        share.take(HostGrant { more: 1, due: 3, claim: 1 });
        assert_eq!(share.claim_again(0), None, "it was claimed already");
        let again = HostClaim { number: 2, back: 0, debt: 1, wants: 3 };
        assert_eq!(share.claim_again(2), Some(again), "two runs hold the one slot");
        let more = HostClaim { number: 3, back: 0, debt: 3, wants: 4 };
        assert_eq!(share.claim_again(4), Some(more));
    }
}
