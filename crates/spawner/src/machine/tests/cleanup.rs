//! What goes once its result was handed over, and what stays.

use offshoot_model::{Cleanup, Origin, SpawnRequest};

use super::super::RunIndex;
use super::agents::Behaviour;
use super::limits::Limits;
use super::world::World;

fn quiet(seed: u64) -> World {
    World::new(seed, Limits::default(), Behaviour::Quiet)
}

fn to_delete(world: &mut World, caller: RunIndex, origin: Origin) -> RunIndex {
    let request = SpawnRequest { cleanup: Some(Cleanup::Delete), ..SpawnRequest::default() };
    world.spawn(caller, origin, request).expect("the caller may spawn")
}

fn removed(world: &World) -> u32 {
    world.ledger.seen.get("removed").copied().unwrap_or(0)
}

#[test]
fn a_child_goes_when_its_result_was_handed_over_and_it_alone() {
    let mut world = quiet(60);
    let parent = world.spawn_piece();
    let child = to_delete(&mut world, parent, Origin::Agent);
    let sibling = world.spawn_from(parent).expect("the parent may spawn");
    let below = world.spawn_from(child).expect("the child may spawn");
    world.finish(below);
    world.finish(child);
    world.finish(sibling);
    assert_eq!(removed(&world), 0, "its parent has not heard of it");
    world.wait(parent);
    assert_eq!(removed(&world), 1);
    world.wait(parent);
    world.finish(parent);
    assert_eq!(removed(&world), 1, "asking again removes nothing again");
}

#[test]
fn a_child_that_nobody_asks_for_goes_as_well() {
    let mut world = quiet(61);
    let parent = world.spawn_piece();
    let before = to_delete(&mut world, parent, Origin::Agent);
    let after = to_delete(&mut world, parent, Origin::Agent);
    world.finish(before);
    assert_eq!(removed(&world), 0);
    world.finish(parent);
    assert_eq!(removed(&world), 1);
    world.finish(after);
    assert_eq!(removed(&world), 2);
}

#[test]
fn a_piece_goes_with_its_end() {
    let mut world = quiet(62);
    let piece = to_delete(&mut world, RunIndex::ROOT, Origin::Piece);
    world.spawn_piece();
    world.finish(piece);
    assert_eq!(removed(&world), 1);
}

#[test]
fn a_new_supervisor_removes_what_the_last_may_have_left() {
    let mut world = quiet(63);
    let parent = world.spawn_piece();
    let told = to_delete(&mut world, parent, Origin::Agent);
    to_delete(&mut world, parent, Origin::Agent);
    world.finish(told);
    world.wait_for(parent, vec![world.id(told)], offshoot_runtime::WaitMode::All, None);
    assert_eq!(removed(&world), 1);
    world.crash();
    assert!(removed(&world) >= 2, "whether the first was in time is not on record");
}
