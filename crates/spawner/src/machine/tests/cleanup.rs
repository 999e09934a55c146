//! Cleanup of runs whose results were handed over.

use std::sync::Arc;

use offshoot_model::{Cleanup, Origin, SpawnRequest};
use offshoot_runtime::WaitMode;

use super::super::{Input, RunIndex};
use super::limits::Limits;
use super::world::World;

fn to_delete(world: &mut World, caller: RunIndex, origin: Origin) -> RunIndex {
    wishing(world, caller, origin, Some(Cleanup::Delete))
}

fn wishing(
    world: &mut World,
    caller: RunIndex,
    origin: Origin,
    cleanup: Option<Cleanup>,
) -> RunIndex {
    let request = SpawnRequest { cleanup, ..SpawnRequest::default() };
    world.spawn(caller, origin, request).expect("the caller may spawn")
}

#[test]
fn a_child_goes_when_its_result_was_handed_over_and_it_alone() {
    let mut world = World::quiet(Limits::default());
    let parent = world.spawn_piece();
    let child = to_delete(&mut world, parent, Origin::Agent);
    let sibling = world.child_of(parent);
    let below = world.child_of(child);
    world.finish(below);
    world.finish(child);
    world.finish(sibling);
    assert_eq!(world.times("removed"), 0, "its parent has not heard of it");
    world.wait(parent);
    assert_eq!(world.times("removed"), 1);
    world.wait(parent);
    world.finish(parent);
    assert_eq!(world.times("removed"), 1, "asking again removes nothing again");
}

#[test]
fn a_child_whose_result_no_run_asks_for_goes_as_well() {
    let mut world = World::quiet(Limits::default());
    let parent = world.spawn_piece();
    let before = to_delete(&mut world, parent, Origin::Agent);
    let after = to_delete(&mut world, parent, Origin::Agent);
    world.finish(before);
    assert_eq!(world.times("removed"), 0);
    world.finish(parent);
    assert_eq!(world.times("removed"), 1);
    world.finish(after);
    assert_eq!(world.times("removed"), 2);
}

#[test]
fn a_piece_goes_with_its_end() {
    let mut world = World::quiet(Limits::default());
    let piece = to_delete(&mut world, RunIndex::ROOT, Origin::Piece);
    world.spawn_piece();
    world.finish(piece);
    assert_eq!(world.times("removed"), 1);
}

#[test]
fn a_new_supervisor_removes_what_the_last_may_have_left() {
    let mut world = World::quiet(Limits::default());
    let parent = world.spawn_piece();
    let told = to_delete(&mut world, parent, Origin::Agent);
    to_delete(&mut world, parent, Origin::Agent);
    world.finish(told);
    world.wait_for(parent, vec![world.id(told)], WaitMode::All, None);
    assert_eq!(world.times("removed"), 1);
    world.crash();
    assert!(world.times("removed") >= 2, "whether the first was in time is not on record");
}

#[test]
fn what_a_session_above_keeps_stays() {
    const KEEP: Option<Cleanup> = Some(Cleanup::Keep);
    const DELETE: Option<Cleanup> = Some(Cleanup::Delete);
    // What is configured for the tree, what is asked for the parent, what for the child, and what becomes of the child.
    let rows = [
        (None, None, None, Cleanup::Keep),
        (None, None, DELETE, Cleanup::Delete),
        (None, DELETE, None, Cleanup::Keep),
        (None, DELETE, KEEP, Cleanup::Keep),
        (None, KEEP, None, Cleanup::Keep),
        (None, KEEP, DELETE, Cleanup::Keep),
        (DELETE, None, None, Cleanup::Delete),
        (DELETE, None, KEEP, Cleanup::Keep),
        (DELETE, KEEP, None, Cleanup::Keep),
        (DELETE, KEEP, DELETE, Cleanup::Keep),
        (KEEP, None, None, Cleanup::Keep),
        (KEEP, None, DELETE, Cleanup::Keep),
        (KEEP, DELETE, DELETE, Cleanup::Keep),
    ];
    for (configured, above, asked, expected) in rows {
        let limits = Limits { cleanup: configured, ..Limits::default() };
        let mut world = World::quiet(limits);
        Arc::make_mut(&mut world.facts).resumes = true;
        let top = world.spawn_piece();
        let parent = wishing(&mut world, top, Origin::Agent, above);
        let child = wishing(&mut world, parent, Origin::Agent, asked);
        let became = world.machine.runs[child].cleanup;
        assert_eq!(became, expected, "{configured:?} above {above:?} above {asked:?}");
        let later = wishing(&mut world, child, Origin::Agent, DELETE);
        let before = world.machine.runs[later].cleanup;
        world.crash();
        let after = wishing(&mut world, parent, Origin::Agent, asked);
        assert_eq!(world.machine.runs[after].cleanup, expected, "the record says the same");
        let after = wishing(&mut world, child, Origin::Agent, DELETE);
        assert_eq!(world.machine.runs[after].cleanup, before, "at every depth");
    }
}

#[test]
fn a_piece_that_is_to_stay_keeps_what_is_below_it_also_after_a_crash() {
    let mut world = World::quiet(Limits::default());
    Arc::make_mut(&mut world.facts).resumes = true;
    let piece = wishing(&mut world, RunIndex::ROOT, Origin::Piece, Some(Cleanup::Keep));
    for _ in 0..2 {
        let child = to_delete(&mut world, piece, Origin::Agent);
        assert_eq!(world.machine.runs[child].cleanup, Cleanup::Keep);
        world.crash();
    }
}

#[test]
fn what_could_not_be_removed_is_told_until_it_is_gone() {
    let mut world = World::quiet(Limits::default());
    let parent = world.spawn_piece();
    let child = to_delete(&mut world, parent, Origin::Agent);
    world.finish(child);
    world.wait(parent);
    let told = |world: &World| world.ledger.seen.get("removal").copied().unwrap_or(0);
    let says = |world: &mut World, error: Option<&str>| {
        let run = world.id(child);
        world.step(Input::Removed { run, error: error.map(Into::into) });
    };
    says(&mut world, None);
    assert_eq!(told(&world), 0, "that it went as it was to go is no news");
    says(&mut world, Some("busy"));
    assert_eq!(told(&world), 1);
    world.crash();
    says(&mut world, None);
    assert_eq!(told(&world), 2, "a new supervisor knows what the last could not do");
    says(&mut world, None);
    assert_eq!(told(&world), 2);
}

#[test]
fn a_new_supervisor_removes_again_what_was_handed_over_and_nothing_else() {
    let mut world = World::quiet(Limits { resumes: true, ..Limits::default() });
    let parent = world.spawn_piece();
    let piece = to_delete(&mut world, RunIndex::ROOT, Origin::Piece);
    let [told, not_told] = [(); 2].map(|()| to_delete(&mut world, parent, Origin::Agent));
    [piece, told].into_iter().for_each(|run| world.finish(run));
    world.wait_for(parent, vec![world.id(told)], WaitMode::All, None);
    world.finish(not_told);
    assert_eq!(world.times("removed"), 2, "the piece, and the child of which its parent has heard");
    world.crash();
    assert_eq!(world.times("removed"), 4, "the same again");
}
