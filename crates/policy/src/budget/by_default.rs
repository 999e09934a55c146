//! Dollars of a tree that no budget bounds: what its paid runs may cost together by default.

use offshoot_model::MicroUsd;

use super::account::Passed;

/// The dollars of the runs that have a part of what a tree may cost by default, with all below them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ByDefault {
    passed: Passed,
    /// The amount that was added to their budgets from outside of the tree.
    added: u64,
}

impl ByDefault {
    /// Takes in the change of one of these accounts.
    pub(super) fn replace(&mut self, before: Passed, after: Passed) {
        self.passed.replace(before, after);
    }

    /// Takes in what was added to one of these accounts from outside of the tree.
    pub(super) fn add(&mut self, more: u64) {
        self.added = self.added.saturating_add(more);
    }

    /// Returns the amount that is left of the most that they may cost together, in millionths of a dollar.
    pub(super) fn left_of(&self, most: MicroUsd) -> u64 {
        let most = u128::from(most.as_micros()) + u128::from(self.added);
        let left = most.saturating_sub(self.passed.taken());
        u64::try_from(left).unwrap_or(u64::MAX)
    }
}
