//! Slots: how many runs may hold one at once, in the whole tree, on one level, and below a run whose own values say less.
//!
//! ```text
//!   the tree: at most 8            a, b, c, d and e count here
//!    └─ a ─┬─ b                    below a: at most 2; b, c, d and e count here as well
//!          └─ c ─┬─ d              below c: at most 1; d and e count here as well
//!                └─ e
//! ```

use std::collections::BTreeSet;

use super::run::RunIndex;

/// A part of the tree that has caps: all of it, or what is strictly below one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Part(u32);

/// The innermost part in which a run is counted, and its depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) part: Part,
    pub(crate) depth: u32,
}

/// One slot. A value that travels with the run and comes back when it stops running; there is no way to copy it, so
/// none can come back twice.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a lease that is dropped without being given back is a slot lost"]
pub(crate) struct Lease {
    run: RunIndex,
    position: Position,
}

/// The slots of one tree. A run is counted in each part around it. All of these are taken in one step, or none.
#[derive(Debug)]
pub(crate) struct Slots {
    parts: Vec<Counter>,
    /// Parts in which as many runs hold a slot as may.
    full: BTreeSet<Part>,
}

/// The slots of one part.
#[derive(Debug)]
struct Counter {
    /// The part around this one.
    around: Option<Part>,
    caps: Caps,
    holders: BTreeSet<RunIndex>,
    level: Vec<u32>,
}

/// The most runs of a part that may hold a slot at once. Both values are at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caps {
    pub(crate) total: u32,
    pub(crate) per_level: Option<u32>,
}

impl Part {
    /// All of the tree.
    pub(crate) const TREE: Self = Self(0);
}

impl Slots {
    /// The slots of a tree in which nothing runs.
    pub(crate) fn new(caps: Caps) -> Self {
        Self { parts: vec![Counter::new(None, caps)], full: BTreeSet::new() }
    }

    /// Adds a part with caps of its own within another.
    pub(crate) fn add(&mut self, around: Part, caps: Caps) -> Part {
        self.parts.push(Counter::new(Some(around), caps));
        Part(u32::try_from(self.parts.len() - 1).expect("there are fewer parts than runs"))
    }

    /// The runs of a part that hold a slot.
    pub(crate) fn holders(&self, part: Part) -> &BTreeSet<RunIndex> {
        &self.counter(part).holders
    }

    /// The number of runs that hold a slot.
    pub(crate) fn live(&self) -> u32 {
        self.counter(Part::TREE).live()
    }

    /// The number of runs that may hold a slot of the tree at once.
    pub(crate) fn total(&self) -> u32 {
        self.counter(Part::TREE).caps.total
    }

    /// The number of runs that could start in the tree as far as its own cap says.
    pub(crate) fn room(&self) -> u32 {
        self.counter(Part::TREE).caps.total.saturating_sub(self.live())
    }

    /// True if some run could start at some place. False also while a debt is being paid: nothing starts while as many
    /// hold a slot as may.
    pub(crate) fn any_free(&self) -> bool {
        !self.full.contains(&Part::TREE)
    }

    /// True if a run could start on this level as far as the caps of this part alone say.
    pub(crate) fn has_room(&self, position: Position) -> bool {
        self.counter(position.part).has_room(position.depth)
    }

    /// True if a run could start at this place.
    pub(crate) fn free_at(&self, position: Position) -> bool {
        self.and_around(position.part).all(|part| self.has_room(Position { part, ..position }))
    }

    /// The parts in which nothing can start on any level.
    pub(crate) fn full(&self) -> impl Iterator<Item = Part> {
        self.full.iter().copied()
    }

    /// The part around this one; none around the tree.
    pub(crate) fn around(&self, part: Part) -> Option<Part> {
        self.counter(part).around
    }

    /// True if the part is the outer one or lies within it.
    pub(crate) fn is_within(&self, part: Part, outer: Part) -> bool {
        self.and_around(part).any(|part| part == outer)
    }

    /// Takes a slot, where one is free.
    pub(crate) fn take(&mut self, run: RunIndex, position: Position) -> Option<Lease> {
        self.free_at(position).then(|| self.take_in_debt(run, position))
    }

    /// Takes a slot whether or not one is free: for a run that goes on because its wait ended without success. While
    /// that puts a part over its cap, nothing starts there.
    pub(crate) fn take_in_debt(&mut self, run: RunIndex, position: Position) -> Lease {
        self.change(position, |counter, level| {
            counter.level[level] += 1;
            let is_new = counter.holders.insert(run);
            assert!(is_new, "a run holds one slot");
        });
        Lease { run, position }
    }

    /// Takes a lease back.
    pub(crate) fn give_back(&mut self, lease: Lease) {
        let Lease { run, position } = lease;
        self.change(position, |counter, level| {
            counter.level[level] -= 1;
            counter.holders.remove(&run);
        });
    }

    fn change(&mut self, position: Position, change: impl Fn(&mut Counter, usize)) {
        let mut next = Some(position.part);
        while let Some(part) = next {
            let (counter, level) = (&mut self.parts[part.0 as usize], position.depth as usize);
            if counter.level.len() <= level {
                counter.level.resize(level + 1, 0);
            }
            change(counter, level);
            match counter.has_slot() {
                true => self.full.remove(&part),
                false => self.full.insert(part),
            };
            next = counter.around;
        }
    }

    fn counter(&self, part: Part) -> &Counter {
        &self.parts[part.0 as usize]
    }

    fn and_around(&self, part: Part) -> impl Iterator<Item = Part> {
        std::iter::successors(Some(part), |&part| self.around(part))
    }
}

impl Counter {
    fn new(around: Option<Part>, caps: Caps) -> Self {
        Self { around, caps, holders: BTreeSet::new(), level: Vec::new() }
    }

    fn live(&self) -> u32 {
        u32::try_from(self.holders.len()).expect("there are fewer runs than 2^32")
    }

    fn has_slot(&self) -> bool {
        self.live() < self.caps.total
    }

    fn has_room(&self, depth: u32) -> bool {
        let here = self.level.get(depth as usize).copied().unwrap_or(0);
        self.has_slot() && self.caps.per_level.is_none_or(|cap| here < cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(total: u32, per_level: Option<u32>) -> Slots {
        Slots::new(Caps { total, per_level })
    }

    fn take(slots: &mut Slots, run: usize, part: Part, depth: u32) -> Option<Lease> {
        slots.take(RunIndex::new(run), Position { part, depth })
    }

    #[test]
    fn total_and_level_are_taken_in_one_step() {
        let mut slots = slots(3, Some(2));
        let a = take(&mut slots, 1, Part::TREE, 1).expect("the first of two on level 1");
        let b = take(&mut slots, 2, Part::TREE, 1).expect("the second of two on level 1");
        assert_eq!(take(&mut slots, 3, Part::TREE, 1), None, "level 1 is full, the tree is not");
        assert_eq!(slots.live(), 2, "a refusal takes nothing");
        let c = take(&mut slots, 4, Part::TREE, 2).expect("level 2 has room");
        assert_eq!(take(&mut slots, 5, Part::TREE, 3), None, "the tree is full");
        for lease in [a, b, c] {
            slots.give_back(lease);
        }
        assert_eq!(slots.live(), 0);
    }

    #[test]
    fn nothing_starts_until_a_debt_is_paid() {
        let mut slots = slots(1, None);
        let first = take(&mut slots, 1, Part::TREE, 1).expect("no slot is free");
        let debt = slots.take_in_debt(RunIndex::new(2), Position { part: Part::TREE, depth: 1 });
        slots.give_back(first);
        assert!(!slots.any_free(), "one live at a cap of one");
        slots.give_back(debt);
        assert!(slots.any_free());
    }

    #[test]
    fn a_part_with_room_is_full_where_one_around_it_is() {
        let mut slots = slots(4, None);
        let outer = slots.add(Part::TREE, Caps { total: 1, per_level: None });
        let inner = slots.add(outer, Caps { total: 2, per_level: None });
        let lease = take(&mut slots, 1, outer, 1).expect("the outer part has room");
        assert_eq!(take(&mut slots, 2, inner, 2), None, "one is all that runs in both");
        slots.give_back(lease);
        let lease = take(&mut slots, 2, inner, 2).expect("it came free");
        assert_eq!(take(&mut slots, 3, outer, 1), None);
        slots.give_back(lease);
    }

    #[test]
    fn a_part_is_bounded_by_its_own_caps_and_by_those_around_it() {
        let mut slots = slots(4, None);
        let outer = slots.add(Part::TREE, Caps { total: 2, per_level: None });
        let inner = slots.add(outer, Caps { total: 2, per_level: Some(1) });
        let a = take(&mut slots, 1, inner, 2).expect("level 2 of the inner part has room");
        assert_eq!(take(&mut slots, 2, inner, 2), None, "and has none for a second");
        let b = take(&mut slots, 3, inner, 3).expect("level 3 of it has room");
        assert_eq!(take(&mut slots, 4, outer, 1), None, "both count in the outer part as well");
        assert_eq!(slots.full().collect::<Vec<_>>(), [outer, inner]);
        let c = take(&mut slots, 5, Part::TREE, 1).expect("the tree has room");
        slots.give_back(a);
        let d = take(&mut slots, 6, outer, 1).expect("the slot came back to both parts");
        assert_eq!(slots.holders(outer).iter().map(|run| run.get()).collect::<Vec<_>>(), [3, 6]);
        assert!(slots.is_within(inner, Part::TREE) && !slots.is_within(outer, inner));
        for lease in [b, c, d] {
            slots.give_back(lease);
        }
        assert_eq!((slots.live(), slots.full().count()), (0, 0));
    }
}
