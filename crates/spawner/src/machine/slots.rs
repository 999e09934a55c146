//! Slots: how many may run at once, in the whole tree and on one level.

/// One slot. A value that travels with the run and comes back when it stops running; there is no way to copy it, so
/// none can come back twice.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a lease that is dropped without being given back is a slot lost"]
pub(crate) struct Lease {
    depth: u32,
}

/// The counters of one tree. Total and level are taken in one step, or not at all.
#[derive(Debug)]
pub(crate) struct Slots {
    total: u32,
    per_level: Option<u32>,
    live: u32,
    level: Vec<u32>,
}

impl Slots {
    /// Limits as configured; both at least 1.
    pub(crate) fn new(total: u32, per_level: Option<u32>) -> Self {
        Self { total, per_level, live: 0, level: Vec::new() }
    }

    /// Runs that hold a lease.
    pub(crate) fn live(&self) -> u32 {
        self.live
    }

    /// Whether anybody could start on any level. False also while a debt is being paid: nobody starts while
    /// `live >= total`.
    pub(crate) fn any_free(&self) -> bool {
        self.live < self.total
    }

    /// Whether somebody could start on this level.
    pub(crate) fn free_at(&self, depth: u32) -> bool {
        let here = self.level.get(depth as usize).copied().unwrap_or(0);
        self.any_free() && self.per_level.is_none_or(|cap| here < cap)
    }

    /// Takes a slot, where one is free.
    pub(crate) fn take(&mut self, depth: u32) -> Option<Lease> {
        self.free_at(depth).then(|| self.take_in_debt(depth))
    }

    /// Takes a slot whether or not one is free: for a run that goes on because its wait ended without success. While
    /// that puts the tree over its cap, nobody starts.
    pub(crate) fn take_in_debt(&mut self, depth: u32) -> Lease {
        let at = depth as usize;
        if self.level.len() <= at {
            self.level.resize(at + 1, 0);
        }
        self.level[at] += 1;
        self.live += 1;
        Lease { depth }
    }

    /// Takes a lease back.
    pub(crate) fn give_back(&mut self, lease: Lease) {
        let Lease { depth } = lease;
        self.level[depth as usize] -= 1;
        self.live -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_and_level_are_taken_in_one_step() {
        let mut slots = Slots::new(3, Some(2));
        let a = slots.take(1).expect("the first of two on level 1");
        let b = slots.take(1).expect("the second of two on level 1");
        assert_eq!(slots.take(1), None, "level 1 is full, the tree is not");
        assert_eq!(slots.live(), 2, "a refusal takes nothing");
        let c = slots.take(2).expect("level 2 has room");
        assert_eq!(slots.take(3), None, "the tree is full");
        for lease in [a, b, c] {
            slots.give_back(lease);
        }
        assert_eq!(slots.live(), 0);
    }

    #[test]
    fn nobody_starts_until_a_debt_is_paid() {
        let mut slots = Slots::new(1, None);
        let first = slots.take(1).expect("one is free");
        let debt = slots.take_in_debt(1);
        slots.give_back(first);
        assert!(!slots.any_free(), "one live at a cap of one");
        slots.give_back(debt);
        assert!(slots.any_free());
    }
}
