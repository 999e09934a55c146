//! The order in which runs get slots.
//!
//! Returning parents first, for they hold results that others wait for. Then deeper runs before shallower ones, so
//! that what was begun is finished before more is begun. Within a level parents take turns, and the children of one
//! parent come first come first served.
//!
//! Each part of the tree has its lines, and stands in the lines of the part around it with its foremost turn. So a part
//! that has no room is passed over in one look, however many stand in line there; and parts without room that lie beside
//! each other are no more than runs that hold a slot.
//!
//! Entries that are no longer wanted are not searched for: the taker of an entry that has ended meanwhile skips it.

use std::collections::{BTreeMap, VecDeque};

use super::run::RunIndex;
use super::slots::{Part, Position, Slots};

/// The queue of one tree.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    lines: BTreeMap<(Part, Line), BTreeMap<Turn, Source>>,
    /// Runs that have not started, by their parent.
    children: BTreeMap<Option<RunIndex>, Children>,
    returning: usize,
    last_turn: Turn,
}

/// The children of one parent that have not started. Invariant: there is at least one, and their turn is in their line unless
/// they are set aside.
#[derive(Debug)]
struct Children {
    turn: Turn,
    runs: VecDeque<RunIndex>,
    /// True while none of them is served.
    is_aside: bool,
}

/// The place of a run that has not started: in the line of this position, in the turns of its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) parent: Option<RunIndex>,
    pub(crate) position: Position,
}

/// A line of one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Line {
    /// Parents of this depth whose waits have succeeded.
    Returning(u32),
    /// Runs of this depth that have not started.
    New(u32),
}

/// The place in a line: the lowest is served first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn(u64);

/// The holder of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// A parent whose wait has succeeded.
    Returning(RunIndex),
    /// The children of this parent, of which one is served.
    ChildrenOf(Option<RunIndex>),
    /// The foremost in the same line of a part within.
    Within(Part),
}

/// An entry whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A parent whose wait has succeeded.
    Returning(RunIndex),
    /// A run that has not started, and the turn that its parent has used up for it.
    New(RunIndex, Turn),
}

/// A turn that was found, and where.
struct FoundTurn {
    turn: Turn,
    part: Part,
    source: Source,
}

impl Queue {
    /// Returns true if no entry stands in line.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// True if a run that has not started, or an entry that is out of date, stands in line in this part.
    pub(crate) fn has_new(&self, part: Part) -> bool {
        let from = (part, Line::New(0));
        self.lines.range(from..).next().is_some_and(|((found, _), _)| *found == part)
    }

    /// Returns the runs that have not started, and entries that are out of date.
    pub(crate) fn entries(&self) -> impl Iterator<Item = RunIndex> {
        self.children.values().flat_map(|children| &children.runs).copied()
    }

    /// Returns the number of parents that wait for a slot to go on.
    pub(crate) fn returning(&self) -> usize {
        self.returning
    }

    /// A run that has not started takes its place.
    pub(crate) fn push(&mut self, slots: &Slots, place: Place, run: RunIndex) {
        self.line_of(slots, place).push_back(run);
    }

    /// A run that was set aside gets its place at the head of its parent's line back.
    pub(crate) fn push_front(&mut self, slots: &Slots, place: Place, run: RunIndex) {
        self.line_of(slots, place).push_front(run);
    }

    /// A run that was taken from its line, and could not start, gets its place back, and its parent the turn.
    pub(crate) fn put_back(&mut self, slots: &Slots, place: Place, run: RunIndex, turn: Turn) {
        self.set_aside(slots, place, run, turn);
        self.give_turn_back(slots, place);
    }

    /// A run that was taken from its line cannot start now. It gets its place back, and no run of its parent is served until
    /// [`Self::give_turn_back`].
    pub(crate) fn set_aside(&mut self, slots: &Slots, place: Place, run: RunIndex, turn: Turn) {
        let Place { parent, position } = place;
        if let Some(children) = self.children.get(&parent).filter(|children| !children.is_aside) {
            self.remove(slots, position.part, Line::New(position.depth), children.turn);
        }
        let new = || Children { turn, runs: VecDeque::new(), is_aside: true };
        let children = self.children.entry(parent).or_insert_with(new);
        (children.turn, children.is_aside) = (turn, true);
        children.runs.push_front(run);
    }

    /// Runs of this parent that were set aside are served again, in the turn that the first of them had.
    pub(crate) fn give_turn_back(&mut self, slots: &Slots, place: Place) {
        let Place { parent, position } = place;
        let Some(children) = self.children.get_mut(&parent) else { return };
        if std::mem::take(&mut children.is_aside) {
            let (turn, line) = (children.turn, Line::New(position.depth));
            self.insert(slots, position.part, line, turn, Source::ChildrenOf(parent));
        }
    }

    /// Returns the number of runs of this parent that have not started and stand in line, with entries that are out of date.
    pub(crate) fn new_of(&self, parent: Option<RunIndex>) -> usize {
        self.children.get(&parent).map_or(0, |children| children.runs.len())
    }

    /// A parent whose wait has succeeded takes its place.
    pub(crate) fn push_returning(&mut self, slots: &Slots, position: Position, run: RunIndex) {
        self.returning += 1;
        let turn = self.new_turn();
        let line = Line::Returning(position.depth);
        self.insert(slots, position.part, line, turn, Source::Returning(run));
    }

    /// True if a returning parent has room.
    pub(crate) fn has_returning(&self, slots: &Slots) -> bool {
        self.first_returning(slots).is_some()
    }

    fn first_returning(&self, slots: &Slots) -> Option<(Line, FoundTurn)> {
        if self.returning == 0 {
            return None;
        }
        let of_tree = (Part::TREE, Line::Returning(0))..(Part::TREE, Line::New(0));
        let lines = self.lines.range(of_tree).map(|(&(_, line), _)| line);
        let found = lines.filter_map(|line| Some((line, self.first(slots, Part::TREE, line)?)));
        found.min_by_key(|(_, found)| found.turn)
    }

    /// The next returning parent that has room.
    pub(crate) fn pop_returning(&mut self, slots: &Slots) -> Option<RunIndex> {
        let (line, found) = self.first_returning(slots)?;
        let Source::Returning(run) = found.source else {
            unreachable!("a line of returning parents holds nothing else")
        };
        self.remove(slots, found.part, line, found.turn);
        self.returning -= 1;
        Some(run)
    }

    /// The next entry that has room.
    pub(crate) fn pop(&mut self, slots: &Slots) -> Option<Next> {
        if let Some(run) = self.pop_returning(slots) {
            return Some(Next::Returning(run));
        }
        let of_tree = (Part::TREE, Line::New(0))..=(Part::TREE, Line::New(u32::MAX));
        let mut lines = self.lines.range(of_tree).rev().map(|(&(_, line), _)| line);
        let (line, found) =
            lines.find_map(|line| Some((line, self.first(slots, Part::TREE, line)?)))?;
        let FoundTurn { turn, part, source } = found;
        let Source::ChildrenOf(parent) = source else {
            unreachable!("a line of new runs holds their parents, and a part is looked into")
        };
        let next = self.new_turn();
        let children = self.children.get_mut(&parent).expect("a parent with a turn has children");
        let run = children.runs.pop_front().expect("a parent with a turn has children");
        if children.runs.is_empty() {
            self.children.remove(&parent);
        } else {
            children.turn = next;
            // Before the old turn goes: a line that is never empty is not made anew.
            self.insert(slots, part, line, next, source);
        }
        self.remove(slots, part, line, turn);
        Some(Next::New(run, turn))
    }

    fn line_of(&mut self, slots: &Slots, place: Place) -> &mut VecDeque<RunIndex> {
        let Place { parent, position } = place;
        if !self.children.contains_key(&parent) {
            let turn = self.new_turn();
            let line = Line::New(position.depth);
            self.insert(slots, position.part, line, turn, Source::ChildrenOf(parent));
            self.children.insert(parent, Children { turn, runs: VecDeque::new(), is_aside: false });
        }
        &mut self.children.get_mut(&parent).expect("it was put there").runs
    }

    fn new_turn(&mut self) -> Turn {
        self.last_turn.0 += 1;
        self.last_turn
    }

    /// Puts a turn into a line; where it is the foremost there, also into that line of the part around.
    fn insert(&mut self, slots: &Slots, part: Part, line: Line, turn: Turn, source: Source) {
        let turns = self.lines.entry((part, line)).or_default();
        let foremost = turns.first_key_value().map(|(&turn, _)| turn);
        turns.insert(turn, source);
        let Some(around) = slots.around(part) else { return };
        if foremost.is_none_or(|foremost| turn < foremost) {
            if let Some(foremost) = foremost {
                self.remove(slots, around, line, foremost);
            }
            self.insert(slots, around, line, turn, Source::Within(part));
        }
    }

    fn remove(&mut self, slots: &Slots, part: Part, line: Line, turn: Turn) {
        let turns = self.lines.get_mut(&(part, line)).expect("a turn is in its line");
        let was_foremost = turns.first_key_value().is_some_and(|(&foremost, _)| foremost == turn);
        turns.remove(&turn).expect("a turn is in its line");
        let foremost = turns.first_key_value().map(|(&turn, _)| turn);
        if foremost.is_none() {
            self.lines.remove(&(part, line));
        }
        let Some(around) = slots.around(part).filter(|_| was_foremost) else { return };
        self.remove(slots, around, line, turn);
        if let Some(foremost) = foremost {
            self.insert(slots, around, line, foremost, Source::Within(part));
        }
    }

    /// The foremost turn of a line that has room in this part and in all parts within where it stands.
    fn first(&self, slots: &Slots, part: Part, line: Line) -> Option<FoundTurn> {
        let (Line::Returning(depth) | Line::New(depth)) = line;
        if !slots.has_room(Position { part, depth }) {
            return None;
        }
        let mut best: Option<FoundTurn> = None;
        for (&turn, &source) in self.lines.get(&(part, line))? {
            if best.as_ref().is_some_and(|best| best.turn < turn) {
                break;
            }
            let found = match source {
                Source::Within(inner) => self.first(slots, inner, line),
                Source::Returning(_) | Source::ChildrenOf(_) => {
                    Some(FoundTurn { turn, part, source })
                }
            };
            let is_better =
                |found: &FoundTurn| best.as_ref().is_none_or(|best| found.turn < best.turn);
            if let Some(found) = found.filter(is_better) {
                best = Some(found);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::super::slots::Caps;
    use super::*;

    fn run(number: usize) -> RunIndex {
        RunIndex::new(number)
    }

    fn slots(per_level: Option<u32>) -> Slots {
        Slots::new(Caps { total: 100, per_level })
    }

    fn at(depth: u32) -> Position {
        Position { part: Part::TREE, depth }
    }

    fn below(parent: Option<RunIndex>, depth: u32) -> Place {
        Place { parent, position: at(depth) }
    }

    fn order(queue: &mut Queue, slots: &Slots) -> Vec<usize> {
        std::iter::from_fn(|| next(queue, slots)).collect()
    }

    fn next(queue: &mut Queue, slots: &Slots) -> Option<usize> {
        queue.pop(slots).map(|next| match next {
            Next::Returning(run) | Next::New(run, _) => run.get(),
        })
    }

    #[test]
    fn returning_first_then_deeper_then_in_turns() {
        let (mut queue, slots) = (Queue::default(), slots(None));
        let (a, b, c) = (Some(run(1)), Some(run(2)), Some(run(3)));
        queue.push(&slots, below(None, 1), run(10));
        queue.push(&slots, below(a, 2), run(20));
        queue.push(&slots, below(a, 2), run(21));
        queue.push(&slots, below(a, 2), run(22));
        queue.push(&slots, below(b, 2), run(30));
        queue.push(&slots, below(c, 3), run(40));
        queue.push_returning(&slots, at(2), run(2));
        queue.push_returning(&slots, at(1), run(1));
        assert_eq!(queue.returning(), 2);
        assert_eq!(order(&mut queue, &slots), [2, 1, 40, 20, 30, 21, 22, 10]);
        assert_eq!((queue.returning(), queue.is_empty()), (0, true));
    }

    #[test]
    fn a_full_level_is_passed_over() {
        let (mut queue, mut slots) = (Queue::default(), slots(Some(1)));
        let lease = slots.take(run(4), at(2)).expect("the one of level 2");
        queue.push(&slots, below(None, 1), run(10));
        queue.push(&slots, below(Some(run(10)), 2), run(20));
        queue.push_returning(&slots, at(2), run(5));
        assert_eq!(next(&mut queue, &slots), Some(10));
        assert_eq!(next(&mut queue, &slots), None);
        slots.give_back(lease);
        assert_eq!(order(&mut queue, &slots), [5, 20]);
    }

    #[test]
    fn what_was_set_aside_comes_back_in_front() {
        let (mut queue, slots) = (Queue::default(), slots(None));
        queue.push(&slots, below(None, 1), run(10));
        queue.push(&slots, below(None, 1), run(11));
        assert_eq!(next(&mut queue, &slots), Some(10));
        queue.push_front(&slots, below(None, 1), run(10));
        assert_eq!(order(&mut queue, &slots), [10, 11]);
    }

    #[test]
    fn what_is_put_back_uses_up_no_turn() {
        let (mut queue, mut slots) = (Queue::default(), slots(None));
        let part = slots.add(Part::TREE, Caps { total: 9, per_level: None });
        let of = |parent| Place { parent, position: Position { part, depth: 2 } };
        let (a, b) = (Some(run(1)), Some(run(2)));
        for (parent, child) in [(a, 20), (a, 21), (b, 30), (b, 31)] {
            queue.push(&slots, of(parent), run(child));
        }
        for _ in 0..3 {
            let Some(Next::New(child, turn)) = queue.pop(&slots) else { panic!("four wait") };
            assert_eq!(child, run(20), "it is its turn until it starts");
            queue.put_back(&slots, of(a), child, turn);
        }
        assert_eq!(order(&mut queue, &slots), [20, 30, 21, 31]);
        assert!(queue.is_empty());
        // The last of its parent.
        queue.push(&slots, of(a), run(20));
        queue.push(&slots, of(b), run(30));
        let Some(Next::New(child, turn)) = queue.pop(&slots) else { panic!("two wait") };
        queue.put_back(&slots, of(a), child, turn);
        assert_eq!(order(&mut queue, &slots), [20, 30]);
        assert!(queue.is_empty());
    }

    /// Runs of one parent are passed over as long as they are set aside, and keep their order and their turn.
    #[test]
    fn what_is_set_aside_is_passed_over_until_its_parent_has_its_turn_back() {
        let (mut queue, slots) = (Queue::default(), slots(None));
        let (a, b) = (Some(run(1)), Some(run(2)));
        for (parent, child) in [(a, 20), (a, 21), (a, 22), (b, 30)] {
            queue.push(&slots, below(parent, 2), run(child));
        }
        let Some(Next::New(first, turn)) = queue.pop(&slots) else { panic!("four wait") };
        let Some(Next::New(other, _)) = queue.pop(&slots) else { panic!("three wait") };
        assert_eq!((first, other), (run(20), run(30)));
        queue.set_aside(&slots, below(a, 2), first, turn);
        queue.push(&slots, below(a, 2), run(23));
        assert_eq!(next(&mut queue, &slots), None);
        assert_eq!((queue.new_of(a), queue.new_of(b)), (4, 0));
        queue.push(&slots, below(b, 2), run(31));
        assert_eq!(next(&mut queue, &slots), Some(31));
        queue.push(&slots, below(b, 2), run(32));
        queue.push(&slots, below(b, 2), run(33));
        queue.give_turn_back(&slots, below(a, 2));
        queue.give_turn_back(&slots, below(a, 2));
        assert_eq!(
            order(&mut queue, &slots),
            [20, 32, 21, 33, 22, 23],
            "its turn is the one that it had"
        );
        assert!(queue.is_empty());
        // The last of its parent.
        queue.push(&slots, below(a, 2), run(20));
        let Some(Next::New(only, turn)) = queue.pop(&slots) else { panic!("one waits") };
        queue.set_aside(&slots, below(a, 2), only, turn);
        assert_eq!(next(&mut queue, &slots), None);
        queue.give_turn_back(&slots, below(a, 2));
        assert_eq!(order(&mut queue, &slots), [20]);
        assert!(queue.is_empty());
    }

    #[test]
    fn behind_what_is_held_up_within_a_part_the_turns_of_all_parents_count() {
        let (mut queue, mut slots) = (Queue::default(), slots(None));
        let outer = slots.add(Part::TREE, Caps { total: 9, per_level: None });
        let inner = slots.add(outer, Caps { total: 1, per_level: None });
        let within = |part| Position { part, depth: 2 };
        let place = |part, parent| Place { parent, position: within(part) };
        queue.push(&slots, place(inner, Some(run(1))), run(10));
        queue.push(&slots, place(Part::TREE, Some(run(3))), run(30));
        queue.push(&slots, place(outer, Some(run(2))), run(20));
        let lease = slots.take(run(9), within(inner)).expect("the inner part has a slot");
        assert_eq!(next(&mut queue, &slots), Some(30), "it came before the other that has room");
        assert_eq!(order(&mut queue, &slots), [20]);
        slots.give_back(lease);
        assert_eq!(order(&mut queue, &slots), [10]);
    }

    #[test]
    fn parents_take_turns_over_the_borders_of_parts_and_full_ones_are_passed_over() {
        let (mut queue, mut slots) = (Queue::default(), slots(None));
        let one = |slots: &mut Slots, around| slots.add(around, Caps { total: 1, per_level: None });
        let outer = one(&mut slots, Part::TREE);
        let inner = one(&mut slots, outer);
        let within = |part| Position { part, depth: 2 };
        let place = |part, parent| Place { parent, position: within(part) };
        let (a, b, c) = (Some(run(1)), Some(run(2)), Some(run(3)));
        for turn in 0..3 {
            queue.push(&slots, place(inner, a), run(10 + turn));
            queue.push(&slots, place(outer, b), run(20 + turn));
            queue.push(&slots, place(Part::TREE, c), run(30 + turn));
        }
        assert_eq!(next(&mut queue, &slots), Some(10));
        assert_eq!(next(&mut queue, &slots), Some(20));
        // What stands in the inner part is also within the outer one, and neither is served while that is full.
        let lease = slots.take(run(10), within(inner)).expect("no slot is free");
        assert_eq!(next(&mut queue, &slots), Some(30));
        assert_eq!(next(&mut queue, &slots), Some(31));
        slots.give_back(lease);
        let lease = slots.take(run(20), within(outer)).expect("no slot is free");
        assert_eq!(next(&mut queue, &slots), Some(32));
        assert_eq!(next(&mut queue, &slots), None);
        assert!(queue.has_new(inner) && queue.has_new(outer) && queue.has_new(Part::TREE));
        slots.give_back(lease);
        assert_eq!(order(&mut queue, &slots), [11, 21, 12, 22]);
        assert!(queue.is_empty() && !queue.has_new(inner));
    }
}
