//! Sums over runs with everything below them.

use std::collections::HashMap;

use super::Node;
use crate::{Cost, RunId, RunStatus, Usage};

/// The sums over runs with everything below them.
#[derive(Clone, Debug)]
pub struct Subtrees<'a> {
    pub(super) index: &'a HashMap<RunId, usize>,
    pub(super) sums: Vec<Subtree>,
}

/// The sums over a run and everything below it.
#[derive(Clone, Copy, Debug)]
pub struct Subtree {
    /// The usage of all.
    pub usage: Usage,
    /// The cost of all.
    pub cost: Cost,
    /// The number of runs, with itself.
    pub runs: u64,
    /// The statuses that occur.
    pub statuses: Statuses,
}

/// A set of statuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statuses(u16);

impl Subtrees<'_> {
    /// The sums over a run of the tree and everything below it.
    pub fn of(&self, node: &Node) -> &Subtree {
        &self.sums[self.index[&node.run]]
    }
}

impl Statuses {
    /// The set with one more status.
    #[must_use]
    pub const fn with(self, status: RunStatus) -> Self {
        Self(self.0 | 1 << status as u16)
    }

    /// The union of both sets.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// True if this status is among them.
    pub const fn has(self, status: RunStatus) -> bool {
        self.0 & 1 << status as u16 != 0
    }

    /// True if any of these statuses is among them.
    pub fn has_any(self, statuses: &[RunStatus]) -> bool {
        statuses.iter().any(|status| self.has(*status))
    }

    /// True if there is no other status among them.
    pub fn are_all(self, status: RunStatus) -> bool {
        self == Self::default().with(status)
    }
}
