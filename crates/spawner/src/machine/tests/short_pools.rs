//! Pieces that wait because of the budget that they share.

use std::time::Duration;

use offshoot_model::{CancelledBy, Event, EventKind, Origin, RunId, RunStatus, SpawnRequest};

use super::super::{Reach, RunIndex};
use super::budgets::pool;
use super::limits::Limits;
use super::world::World;
use crate::host_slots::SlotPool;

/// The name of an event that tells that pieces wait for their budget, or that this is over, and the run that shares it.
fn of_pool(event: &Event) -> Option<(&'static str, RunId)> {
    match &event.kind {
        EventKind::PoolShort { run } | EventKind::PoolEnough { run } => {
            Some((event.kind.name(), *run))
        }
        _ => None,
    }
}

/// All of these events of a record.
fn pools(world: &World) -> Vec<(&'static str, RunId)> {
    world.record.iter().filter_map(of_pool).collect()
}

/// The same, each with whether the root is the one that shares the budget.
fn told(world: &World) -> Vec<(&'static str, bool)> {
    let root = world.record[0].root.run();
    let of = |(name, run)| (name, run == root);
    pools(world).into_iter().map(of).collect()
}

fn below(world: &mut World, parent: RunIndex) -> RunIndex {
    let piece = world.spawn(parent, Origin::Piece, SpawnRequest::default());
    piece.expect("an agent may divide its work")
}

/// Pieces that wait because of their budget are told of once, and so is the end of that; a new supervisor tells it again.
#[test]
fn that_pieces_wait_for_their_budget_is_on_record() {
    let mut world = pool(2_000);
    let first = world.spawn_piece();
    assert_eq!(told(&world), [], "no piece waits");
    for _ in 0..2 {
        world.spawn_piece();
    }
    assert_eq!((world.holding(), told(&world)), (vec![first], vec![("pool_short", true)]));
    world.use_tokens(first, 270);
    world.finish(first);
    assert_eq!(told(&world)[1..], [("pool_enough", true)], "two pieces at 270 fit");
    let two = world.holding();
    assert_eq!(two.len(), 2);
    world.spawn_piece();
    assert_eq!(told(&world)[2..], [("pool_short", true)], "one has ended, so two work at once");
    two.iter().for_each(|&piece| world.use_tokens(piece, 700));
    world.finish(two[0]);
    assert_eq!((world.holding(), told(&world).len()), (vec![two[1]], 3), "1,670 are used");
    world.raise(RunIndex::ROOT, 500).expect("the root has a budget");
    assert_eq!(told(&world)[3..], [("pool_enough", true)]);
    world.crash();

    let mut world = pool(2_000);
    let [first, second] = [(); 2].map(|()| world.spawn_piece());
    world.die(Duration::ZERO);
    while world.claim() {}
    let [works] = world.holding()[..] else { panic!("one works") };
    let waits = if works == first { second } else { first };
    assert_eq!(told(&world), [("pool_short", true); 2], "once by each supervisor");
    world.cancel(waits, Reach::Subtree, CancelledBy::Operator);
    assert_eq!(told(&world)[2..], [("pool_enough", true)], "no piece waits any more");
}

/// Of pieces below an agent, too: with the end of their parent they wait for no budget any more.
#[test]
fn pieces_of_an_agent_wait_for_their_budget_no_longer_than_it_lives() {
    let mut world = pool(2_000);
    let parent = world.spawn_piece();
    let [first, second] = [(); 2].map(|()| below(&mut world, parent));
    let id = world.id(parent);
    assert_eq!((world.holding(), pools(&world)), (vec![parent, first], vec![("pool_short", id)]));
    world.cancel(parent, Reach::Subtree, CancelledBy::Operator);
    for run in [first, parent] {
        world.finish(run);
    }
    assert_eq!(pools(&world)[1..], [("pool_enough", id)]);
    assert!(world.status(second).is_some_and(RunStatus::is_terminal));
    world.crash();
}

#[test]
fn pieces_wait_for_their_budget_as_long_as_a_slot_is_free() {
    let limits = Limits { pools: true, max_concurrent: 2, ..Limits::default() };
    let mut world = World::quiet(Limits { budget_tokens: Some(2_000), ..limits });
    let [first, _] = [(); 2].map(|()| world.spawn_piece());
    let short = [("pool_short", true)];
    assert_eq!(told(&world), short);
    world.pause(true);
    assert_eq!(told(&world), short, "it waits for its budget as before");
    world.pause(false);
    assert_eq!(told(&world), short);
    let child = world.child_of(first);
    assert_eq!(world.holding(), [first, child]);
    assert_eq!(told(&world)[1..], [("pool_enough", true)], "now it waits for a slot");
    world.finish(child);
    assert_eq!(told(&world)[2..], short);
    world.crash();
}

/// Two agents of which the pieces share their part each: one whose next piece waits holds up none of the other.
#[test]
fn a_pool_that_waits_holds_up_no_other_parent() {
    let mut world = pool(40_000);
    let first = world.spawn_piece();
    world.use_tokens(first, 4_000);
    world.finish(first);
    let [one, other] = [(); 2].map(|()| world.spawn_piece());
    let [works, waits] = [(); 2].map(|()| below(&mut world, one));
    assert_eq!(world.holding(), [one, other, works]);
    let beside = below(&mut world, other);
    assert_eq!(world.holding(), [one, other, works, beside], "it waits for nothing");
    let last = below(&mut world, other);
    let [id, of_other] = [one, other].map(|run| world.id(run));
    assert_eq!(pools(&world), [("pool_short", id), ("pool_short", of_other)], "both wait now");
    world.use_tokens(beside, 100);
    world.finish(beside);
    assert_eq!(world.holding(), [one, other, works, last]);
    assert_eq!(pools(&world)[2..], [("pool_enough", of_other)]);
    world.use_tokens(works, 100);
    world.finish(works);
    assert_eq!(world.holding(), [one, other, waits, last]);
    assert_eq!(pools(&world)[3..], [("pool_enough", id)]);
    world.crash();
}

/// While runs of others take each slot of the level that comes free, a piece waits for a slot.
#[test]
fn a_pool_that_has_no_slot_on_its_level_is_not_told_again_and_again() {
    let limits = Limits { budget_tokens: Some(40_000), pools: true, ..Limits::default() };
    let mut world = World::quiet(Limits { per_level: Some(2), ..limits });
    let first = world.spawn_piece();
    world.use_tokens(first, 4_000);
    world.finish(first);
    let [one, other] = [(); 2].map(|()| world.spawn_piece());
    let [works, waits] = [(); 2].map(|()| below(&mut world, one));
    let id = world.id(one);
    let mut children = vec![world.child_of(other)];
    children.extend([(); 3].map(|()| world.child_of(other)));
    let told = [("pool_short", id), ("pool_enough", id)];
    assert_eq!(
        (world.holding(), pools(&world)),
        (vec![one, other, works, children[0]], told.to_vec())
    );
    for child in &children[..3] {
        world.finish(*child);
        assert_eq!(pools(&world), told);
    }
    world.finish(children[3]);
    assert_eq!(
        pools(&world)[2..],
        [("pool_short", id)],
        "a slot is free, and it waits for its budget"
    );
    world.use_tokens(works, 100);
    world.finish(works);
    assert_eq!(world.holding(), [one, other, waits]);
    world.crash();
}

/// A tree with four slots of the host, of which another tree takes the last: two pieces, and a piece of the first of them. Five more of these wait for
/// their budget.
fn all_but_one_slot() -> (World, [RunIndex; 3]) {
    let limits = Limits { budget_tokens: Some(40_000), pools: true, ..Limits::default() };
    let mut world = World::quiet(Limits { host_slots: 4, ..limits });
    let first = world.spawn_piece();
    world.use_tokens(first, 4_000);
    world.finish(first);
    let [one, other] = [(); 2].map(|()| world.spawn_piece());
    let [works, ..] = [(); 6].map(|()| below(&mut world, one));
    assert_eq!(world.holding(), [one, other, works]);
    world.others_change(1, 1);
    (world, [one, other, works])
}

/// The tree claims no slots of the host for pieces that wait for their budget.
#[test]
fn pieces_that_wait_for_their_budget_want_no_slot_of_the_host() {
    let (mut world, [one, other, works]) = all_but_one_slot();
    let child = world.child_of(other);
    assert_eq!(world.holding(), [one, other, works], "the host has no slot for the child");
    assert_eq!(world.hosts[&SlotPool::Host].wants(), 4);
    world.others_change(0, 0);
    assert_eq!(world.holding(), [one, other, works, child]);
    world.crash();
}

/// Before the host has answered it is not tried again what could start, and the tree claims no slots for pieces that could not.
#[test]
fn a_claim_stays_as_it_is_until_it_is_answered() {
    let (mut world, [_, other, works]) = all_but_one_slot();
    world.claims = Some(Vec::new());
    world.child_of(other);
    (0..3).for_each(|_| world.use_tokens(works, 10));
    let claims = world.claims.take().into_iter().flatten();
    assert_eq!(claims.map(|(_, claim)| claim.wants).collect::<Vec<_>>(), [4]);
}

/// Memory is short for the next piece, which then waits for its budget. The child in the line of its account starts once no run works.
#[test]
fn a_child_starts_where_memory_was_short_for_a_piece_that_now_waits_for_its_budget() {
    let limits = Limits { pools: true, memory_percent: 30, account_slots: 1, ..Limits::default() };
    let mut world = World::quiet(Limits { budget_tokens: Some(2_000), ..limits });
    world.available = Some(100);
    let parent = world.spawn_piece();
    let child = world.child_of(parent);
    world.available = Some(35);
    world.advance(200);
    world.spawn_piece();
    assert_eq!((world.holding(), world.times("memory_short")), (vec![parent], 1));
    world.wait(parent);
    assert_eq!((world.holding(), world.times("memory_enough")), (vec![child], 1));
    world.crash();
}
