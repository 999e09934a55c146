//! Waits: who is blocked on which runs, and what satisfies it.

use std::collections::HashMap;

use offshoot_runtime::WaitMode;

use super::run::RunIndex;

/// One wait of one run, minted by whoever brings it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct WaitId(pub(crate) u64);

/// An open wait.
#[derive(Debug)]
pub(crate) struct Wait {
    pub(crate) caller: RunIndex,
    pub(crate) targets: Vec<RunIndex>,
    mode: WaitMode,
    pending: usize,
}

/// All open waits of a tree.
#[derive(Debug, Default)]
pub(crate) struct Waits(HashMap<WaitId, Wait>);

impl Wait {
    /// A wait for these, of which so many are not over.
    pub(crate) fn new(
        caller: RunIndex,
        targets: Vec<RunIndex>,
        mode: WaitMode,
        pending: usize,
    ) -> Self {
        Self { caller, targets, mode, pending }
    }

    /// Whether there is nothing left to wait for.
    pub(crate) fn is_satisfied(&self) -> bool {
        match self.mode {
            WaitMode::All => self.pending == 0,
            WaitMode::Any => self.pending < self.targets.len() || self.targets.is_empty(),
        }
    }
}

impl Waits {
    pub(crate) fn insert(&mut self, id: WaitId, wait: Wait) {
        let before = self.0.insert(id, wait);
        assert!(before.is_none(), "wait ids are minted once");
    }

    pub(crate) fn get(&self, id: WaitId) -> Option<&Wait> {
        self.0.get(&id)
    }

    pub(crate) fn remove(&mut self, id: WaitId) -> Option<Wait> {
        self.0.remove(&id)
    }

    /// One of its targets is over; answers whether that satisfied it just now.
    pub(crate) fn target_ended(&mut self, id: WaitId) -> bool {
        let Some(wait) = self.0.get_mut(&id) else { return false };
        let before = wait.is_satisfied();
        wait.pending -= 1;
        !before && wait.is_satisfied()
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
