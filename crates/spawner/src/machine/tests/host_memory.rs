//! Trees that wait for memory of the computer.

use offshoot_model::EventKind;
use offshoot_policy::memory::{ASK_AGAIN, HostMemory};

use super::super::{Input, MemorySeen, RunIndex};
use super::agents::Behaviour;
use super::limits::Limits;
use super::world::World;

impl World {
    /// The supervisor answers how much memory there is. Sometimes the system does not tell.
    pub(super) fn looks_at_memory(&mut self, measure: bool) {
        let random = matches!(self.behaviour, Behaviour::Random);
        let available = self.available.unwrap_or_else(|| self.seed.below(100));
        let stalled = (random && self.seed.one_in(10)).then_some(2_001);
        let memory = HostMemory { total: 100, available, stalled };
        let runs = measure.then(|| self.holding());
        let mut resident = |run: RunIndex| (run, if random { self.seed.below(12) } else { 0 });
        let runs = runs.map(|runs| runs.into_iter().map(&mut resident).collect());
        self.saw(if measure { "measured runs" } else { "looked at memory" });
        let seen = Some(MemorySeen { memory, runs }).filter(|_| !random || !self.seed.one_in(20));
        self.step(Input::MemorySeen { seen });
    }

    fn kinds(&self) -> Vec<&'static str> {
        let is_memory = |kind: &&EventKind| {
            matches!(
                kind,
                EventKind::MemoryShort(_) | EventKind::MemoryEnough | EventKind::Starting
            )
        };
        let kinds = self.record.iter().map(|event| &event.kind).filter(is_memory);
        kinds.map(EventKind::name).collect()
    }
}

/// A tree that keeps nine tenths, of which so much is available.
fn tree(available: u64) -> World {
    let mut world = World::quiet(Limits { memory_percent: 90, ..Limits::default() });
    world.available = Some(available);
    world
}

#[test]
fn runs_start_one_after_the_other_while_memory_is_short() {
    let mut world = tree(50);
    let pieces = [(); 3].map(|()| world.spawn_piece());
    assert_eq!(world.holding(), [pieces[0]], "one run may always run");
    world.finish(pieces[0]);
    assert_eq!(world.holding(), [pieces[1]]);
    world.finish(pieces[1]);
    assert_eq!(world.holding(), [pieces[2]]);
    let told = ["starting", "memory_short", "starting", "starting", "memory_enough"];
    assert_eq!(world.kinds(), told, "the wait is told once, and that it is over");
}

#[test]
fn memory_that_becomes_free_is_found_without_the_end_of_a_run() {
    let mut world = tree(50);
    let pieces = [(); 3].map(|()| world.spawn_piece());
    world.available = Some(100);
    // Nothing tells of it: what happens meanwhile does not make the tree look.
    world.advance(1_000);
    assert_eq!(world.holding(), [pieces[0]]);
    world.advance(ASK_AGAIN.as_millis() as u64);
    assert_eq!(world.holding(), [pieces[0]], "100 less 10 for each of two is less than 90");
    world.available = Some(115);
    world.advance(ASK_AGAIN.as_millis() as u64);
    assert_eq!(world.holding(), [pieces[0], pieces[1]]);
    world.available = Some(200);
    world.advance(ASK_AGAIN.as_millis() as u64);
    assert_eq!(world.holding(), pieces);
    assert_eq!(world.kinds()[1..], ["memory_short", "starting", "starting", "memory_enough"]);
    assert_eq!(world.machine.next_change(), None, "nothing waits, and nothing looks");
}

#[test]
fn a_parent_that_waits_does_not_keep_its_children_from_running() {
    let mut world = tree(0);
    let (parent, child) = world.family();
    assert_eq!(world.holding(), [parent]);
    world.wait(parent);
    assert_eq!(world.holding(), [child], "the parent holds no slot");
}

#[test]
fn what_keeps_nothing_never_looks() {
    let mut world = World::quiet(Limits::default());
    let pieces = [(); 3].map(|()| world.spawn_piece());
    assert_eq!(world.holding(), pieces);
    assert_eq!(world.times("looked at memory"), 0);
}

#[test]
fn a_silent_parent_lends_nothing_where_its_child_waits_for_memory_alone() {
    let mut world = tree(50);
    let (parent, child) = world.family();
    world.spawn_piece();
    world.advance(120_000);
    assert_eq!(world.holding(), [parent]);
    assert_eq!(world.times("stall_lent"), 0, "it has slots enough");
    world.finish(parent);
    assert_eq!(world.holding(), [child]);
}

#[test]
fn a_run_starts_without_the_answer_how_much_memory_there_is_once_no_other_one_works() {
    let mut world = tree(50);
    let first = world.spawn_piece();
    world.looks_for_long = true;
    let second = world.spawn_piece();
    assert_eq!(world.holding(), [first], "the supervisor looks");
    world.finish(first);
    assert_eq!(world.holding(), [second]);
}

#[test]
fn memory_is_short_until_what_waits_for_it_could_be_tried() {
    let mut world = tree(50);
    assert!(!world.machine.is_memory_short());
    let pieces = [(); 2].map(|()| world.spawn_piece());
    assert!(world.machine.is_memory_short());
    world.pause(true);
    world.advance(60_000);
    assert!(world.machine.is_memory_short(), "none was tried meanwhile");
    assert_eq!(world.kinds(), ["starting", "memory_short"]);
    world.pause(false);
    world.finish(pieces[0]);
    assert_eq!(world.holding(), pieces[1..]);
    assert!(!world.machine.is_memory_short());
}

#[test]
fn runs_wait_for_memory_under_the_next_supervisor_too() {
    let mut world = tree(50);
    (0..2).for_each(|_| _ = world.spawn_piece());
    world.crash();
    assert_eq!(world.holding().len(), 1);
}

#[test]
fn a_tree_in_which_nothing_may_start_waits_for_memory_all_the_while() {
    let mut world = tree(50);
    let pieces = [(); 2].map(|()| world.spawn_piece());
    world.pause(true);
    world.progress(pieces[0]);
    world.step(Input::Hold(true));
    world.pause(false);
    world.progress(pieces[0]);
    world.step(Input::Hold(false));
    assert_eq!(world.kinds(), ["starting", "memory_short"], "it is not known to be enough");
}
