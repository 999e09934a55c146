//! The word of a supervisor that it lives.

use offshoot_model::EventKind;

use super::limits::Limits;
use super::world::World;

/// The seconds from the first start to each of these events.
fn said(world: &World) -> Vec<u64> {
    let is_start = |kind: &EventKind| matches!(kind, EventKind::Starting);
    let first = world.record.iter().find(|event| is_start(&event.kind)).expect("one has started");
    let said = world.record.iter().filter(|event| matches!(event.kind, EventKind::Alive));
    said.map(|event| event.at.since(first.at).as_secs()).collect()
}

#[test]
fn silence_is_recorded_while_a_run_works_less_and_less_often() {
    let mut world = World::quiet(Limits::default());
    let pieces = [(); 2].map(|()| world.spawn_piece());
    (0..200).for_each(|_| world.advance(1_000));
    assert_eq!(said(&world), [10, 20, 40, 80, 140, 200]);
    // Another event begins it anew.
    world.finish(pieces[0]);
    (0..65).for_each(|_| world.advance(1_000));
    assert_eq!(said(&world)[6..], [260]);
    // Where nothing works there is nothing to say.
    world.finish(pieces[1]);
    (0..200).for_each(|_| world.advance(1_000));
    assert_eq!(said(&world).len(), 7);
}

#[test]
fn after_a_crash_it_is_said_again() {
    let mut world = World::quiet(Limits::default());
    world.spawn_piece();
    (0..12).for_each(|_| world.advance(1_000));
    world.crash();
    (0..12).for_each(|_| world.advance(1_000));
    assert_eq!(said(&world).len(), 2, "{:?}", said(&world));
}

#[test]
fn a_tree_in_which_nothing_runs_wants_nothing() {
    let mut world = World::quiet(Limits::default());
    world.pause(true);
    world.spawn_piece();
    assert_eq!(world.machine.next_timer(), None);
}
