//! The search for parents that are blocked on their children without saying so.

use std::time::Duration;

use offshoot_model::EventKind;

use super::super::{Input, RunIndex};
use super::limits::{Limits, Own};
use super::world::World;

#[test]
fn a_search_that_is_not_needed_any_more_is_called_off() {
    let mut world = World::one_slot();
    let (parent, child) = world.family();
    world.advance(10_000);
    world.progress(parent);
    world.finish(parent);
    assert_eq!(world.holding(), [child]);
    assert_eq!(world.machine.next_change(), None);
}

#[test]
fn no_parent_is_searched_for_while_nothing_may_start() {
    let mut world = World::one_slot();
    let parent = world.spawn_piece();
    world.step(Input::Hold(true));
    world.child_of(parent);
    assert_eq!(world.machine.next_change(), None);
    world.advance(120_000);
    assert_eq!(world.holding(), [parent]);
}

#[test]
fn a_parent_that_was_silent_while_nothing_could_start_is_given_as_much_time_again() {
    let mut world = World::one_slot();
    let parent = world.spawn_piece();
    world.step(Input::Hold(true));
    let child = world.child_of(parent);
    world.advance(30_000);
    world.step(Input::Hold(false));
    world.advance(29_999);
    assert_eq!(world.holding(), [parent]);
    world.advance(1);
    assert_eq!(world.holding(), [child]);
}

#[test]
fn a_slot_is_lent_for_the_sake_of_a_run_of_the_same_part() {
    let one = Own { max_concurrent: Some(1), ..Own::default() };
    let mut world =
        World::quiet(Limits { agents: [one, Own::default(), one], ..Limits::default() });
    let a = world.spawn_agent(RunIndex::ROOT, "a");
    let parent = world.spawn_agent(a, "b");
    let child = world.spawn_agent(parent, "b");
    let other = world.spawn_piece();
    let c = world.spawn_agent(other, "c");
    let speaks = world.spawn_agent(c, "b");
    // In line below `c`, and deeper.
    world.spawn_agent(speaks, "b");
    world.advance(29_999);
    world.progress(speaks);
    world.advance(1);
    assert_eq!(world.holding(), [a, child, other, c, speaks]);
    let lent = world.record.iter().filter(|event| matches!(event.kind, EventKind::StallLent));
    let lent: Vec<_> = lent.map(|event| event.run).collect();
    assert_eq!(lent, [world.id(child)]);
}

#[test]
fn a_sign_that_is_told_twice_wakes_no_silent_parent() {
    let mut world = World::one_slot();
    let (parent, child) = world.family();
    let at = world.now;
    world.advance(30_000);
    assert_eq!(world.holding(), [child], "the parent has lent its slot");
    world.step(Input::Sign { run: parent, at });
    assert_eq!(world.holding(), [child]);
    let at = at.plus(Duration::from_micros(1));
    world.step(Input::Sign { run: parent, at });
    assert_eq!(world.holding(), [parent, child], "it goes on, in debt");
}

#[test]
fn each_run_that_holds_a_slot_is_told_with_its_last_sign() {
    let mut world = World::one_slot();
    let (parent, child) = world.family();
    world.advance(1_000);
    world.progress(parent);
    let signs = |world: &World| world.machine.signs().collect::<Vec<_>>();
    assert_eq!(signs(&world), [(parent, world.id(parent), world.now)]);
    world.wait(parent);
    assert_eq!(signs(&world), [(child, world.id(child), world.now)]);
}
