//! Reasons why trees are held back: the pauses of the operator, breakers that are open, quotas that are used up, paces of accounts, prompts that one
//! run sends first, memory that is short, slots of the host or of an account that other runs hold, and budgets that pieces share.

use std::collections::HashMap;

use crate::{Event, RootId, TreeHolds};

/// The reasons why trees are held back, as their events tell.
#[derive(Clone, Debug, Default)]
pub struct Holds {
    /// The trees that something has held back.
    trees: HashMap<RootId, TreeHolds>,
}

impl Holds {
    /// Takes in one event. Returns true if it says that something is held back, or is no more.
    pub fn apply(&mut self, event: &Event) -> bool {
        if let Some(holds) = self.trees.get_mut(&event.root) {
            return holds.apply(event);
        }
        // Most trees are never held back, and have no entry.
        let mut holds = TreeHolds::NONE;
        let has_told = holds.apply(event);
        if !holds.is_empty() {
            self.trees.insert(event.root, holds);
        }
        has_told
    }

    /// Returns what holds a tree back.
    pub fn of(&self, root: RootId) -> &TreeHolds {
        static NONE: TreeHolds = TreeHolds::NONE;
        self.trees.get(&root).unwrap_or(&NONE)
    }
}
