//! Who gets the next slot.
//!
//! Returning parents first, for they hold results that others wait for. Then deeper runs before shallower ones, so
//! that what was begun is finished before more is begun. Within a level parents take turns, and the children of one
//! parent come first come first served.
//!
//! Entries that are no longer wanted are not searched for: whoever takes an entry that has ended meanwhile skips it.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::run::RunIndex;

/// The queue of one tree.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    returning: VecDeque<(RunIndex, u32)>,
    levels: BTreeMap<u32, Level>,
}

/// One level. Invariant: `turns` holds each parent that has entries, once.
#[derive(Debug, Default)]
struct Level {
    turns: VecDeque<Option<RunIndex>>,
    entries: HashMap<Option<RunIndex>, VecDeque<RunIndex>>,
}

/// An entry whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A parent whose wait has succeeded.
    Returning(RunIndex),
    /// A run that has not started.
    New(RunIndex),
}

impl Queue {
    /// Whether nobody stands in line.
    pub(crate) fn is_empty(&self) -> bool {
        self.returning.is_empty() && self.levels.is_empty()
    }

    /// Those that have not started, and entries that are out of date.
    pub(crate) fn entries(&self) -> impl Iterator<Item = RunIndex> {
        let lines = self.levels.values().flat_map(|level| level.entries.values());
        lines.flatten().copied()
    }

    /// How many parents wait to go on.
    pub(crate) fn returning(&self) -> usize {
        self.returning.len()
    }

    /// A run that has not started takes its place.
    pub(crate) fn push(&mut self, depth: u32, parent: Option<RunIndex>, run: RunIndex) {
        self.level(depth, parent).push_back(run);
    }

    /// A run that was set aside gets its place at the head of its parent's line back.
    pub(crate) fn push_front(&mut self, depth: u32, parent: Option<RunIndex>, run: RunIndex) {
        self.level(depth, parent).push_front(run);
    }

    /// A parent whose wait has succeeded takes its place.
    pub(crate) fn push_returning(&mut self, depth: u32, run: RunIndex) {
        self.returning.push_back((run, depth));
    }

    /// The next returning parent on a level that has room.
    pub(crate) fn pop_returning(&mut self, has_room: impl Fn(u32) -> bool) -> Option<RunIndex> {
        let at = self.returning.iter().position(|&(_, depth)| has_room(depth))?;
        let (run, _) = self.returning.remove(at).expect("its position was just found");
        Some(run)
    }

    /// The next entry on a level that has room.
    pub(crate) fn pop(&mut self, has_room: impl Fn(u32) -> bool) -> Option<Next> {
        if let Some(run) = self.pop_returning(&has_room) {
            return Some(Next::Returning(run));
        }
        let depth = self.levels.keys().rev().copied().find(|&depth| has_room(depth))?;
        let level = self.levels.get_mut(&depth).expect("its key was just found");
        let run = level.pop();
        if level.turns.is_empty() {
            self.levels.remove(&depth);
        }
        Some(Next::New(run))
    }

    fn level(&mut self, depth: u32, parent: Option<RunIndex>) -> &mut VecDeque<RunIndex> {
        let level = self.levels.entry(depth).or_default();
        let entries = level.entries.entry(parent).or_default();
        if entries.is_empty() {
            level.turns.push_back(parent);
        }
        entries
    }
}

impl Level {
    fn pop(&mut self) -> RunIndex {
        let parent = self.turns.pop_front().expect("a level without turns is removed");
        let entries = self.entries.get_mut(&parent).expect("a parent with a turn has entries");
        let run = entries.pop_front().expect("a parent with a turn has entries");
        if entries.is_empty() {
            self.entries.remove(&parent);
        } else {
            self.turns.push_back(parent);
        }
        run
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(number: usize) -> RunIndex {
        RunIndex::new(number)
    }

    fn order(queue: &mut Queue) -> Vec<usize> {
        std::iter::from_fn(|| queue.pop(|_| true))
            .map(|next| match next {
                Next::Returning(run) | Next::New(run) => run.get(),
            })
            .collect()
    }

    #[test]
    fn returning_first_then_deeper_then_in_turns() {
        let mut queue = Queue::default();
        let (a, b) = (Some(run(1)), Some(run(2)));
        queue.push(1, None, run(10));
        queue.push(2, a, run(20));
        queue.push(2, a, run(21));
        queue.push(2, a, run(22));
        queue.push(2, b, run(30));
        queue.push(3, a, run(40));
        queue.push_returning(1, run(1));
        assert_eq!(queue.returning(), 1);
        assert_eq!(order(&mut queue), [1, 40, 20, 30, 21, 22, 10]);
        assert_eq!(queue.returning(), 0);
    }

    #[test]
    fn a_full_level_is_passed_over() {
        let mut queue = Queue::default();
        queue.push(1, None, run(10));
        queue.push(2, Some(run(10)), run(20));
        queue.push_returning(2, run(5));
        assert_eq!(queue.pop(|depth| depth != 2), Some(Next::New(run(10))));
        assert_eq!(queue.pop(|depth| depth != 2), None);
        assert_eq!(order(&mut queue), [5, 20]);
    }

    #[test]
    fn what_was_set_aside_comes_back_in_front() {
        let mut queue = Queue::default();
        queue.push(1, None, run(10));
        queue.push(1, None, run(11));
        assert_eq!(queue.pop(|_| true), Some(Next::New(run(10))));
        queue.push_front(1, None, run(10));
        assert_eq!(order(&mut queue), [10, 11]);
    }
}
