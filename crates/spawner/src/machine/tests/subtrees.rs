//! Tests of the values of an agent deeper in a chain, and of their effect on everything below it.

use std::time::Duration;

use offshoot_model::{Origin, Reason, RefusalCode, RunStatus, SpawnRequest};

use super::super::{Reach, RunIndex};
use super::limits::{Limits, Own};
use super::world::World;

/// A tree in which the agent `a` says this, and a piece that runs it.
fn below(own: Own, limits: Limits) -> (World, RunIndex) {
    let agents = [own, Own::default(), Own::default()];
    let mut world = World::quiet(Limits { agents, ..limits });
    let piece = world.spawn_agent(RunIndex::ROOT, "a");
    (world, piece)
}

fn at_once(max_concurrent: u32) -> Own {
    Own { max_concurrent: Some(max_concurrent), ..Own::default() }
}

fn in_all(deadline_seconds: u64) -> Own {
    Own { deadline_seconds: Some(deadline_seconds), ..Own::default() }
}

#[test]
fn caps_count_what_is_strictly_below_at_all_depths() {
    let (mut world, a) = below(at_once(2), Limits::default());
    let other = world.spawn_piece();
    let first = world.spawn_agent(a, "b");
    let inner = world.spawn_agent(first, "c");
    let third = world.spawn_agent(a, "b");
    assert_eq!(world.holding(), [a, other, first, inner], "two below `a`, which does not count");
    world.wait(first);
    assert_eq!(world.holding(), [a, other, inner, third], "what is lent is free below `a` as well");
    let fourth = world.spawn_agent(a, "b");
    world.finish(inner);
    assert_eq!(world.holding(), [a, other, first, third], "the one that waited goes first");
    world.finish(third);
    assert_eq!(world.holding(), [a, other, first, fourth]);
}

#[test]
fn a_cap_per_level_holds_on_each_level_below() {
    let own = Own { per_level: Some(1), ..Own::default() };
    let (mut world, a) = below(own, Limits::default());
    let [first, second] = [(); 2].map(|()| world.spawn_agent(a, "b"));
    let other = world.spawn_piece();
    assert_eq!(world.holding(), [a, first, other], "on another branch the level has room");
    let inner = world.spawn_agent(first, "b");
    assert_eq!(world.holding(), [a, first, other, inner]);
    world.finish(first);
    assert_eq!(world.holding(), [a, second, other, inner]);
}

#[test]
fn caps_of_agents_hold_after_a_crash() {
    let limits = Limits { resumes: true, ..Limits::default() };
    let (mut world, a) = below(at_once(1), limits);
    let [first, second] = [(); 2].map(|()| world.spawn_agent(a, "b"));
    for _ in 0..2 {
        world.crash();
        assert_eq!(world.holding(), [a, first]);
    }
    world.finish(first);
    assert_eq!(world.holding(), [a, second]);
}

#[test]
fn a_full_subtree_holds_up_no_other_subtree() {
    let (mut world, a) = below(at_once(1), Limits::default());
    let [first, second] = [(); 2].map(|()| world.spawn_agent(a, "b"));
    let other = world.spawn_piece();
    let mut at_once = |caller| {
        let request = SpawnRequest { no_queue: true, ..SpawnRequest::default() };
        world.spawn(caller, Origin::Agent, request)
    };
    assert_eq!(at_once(a), Err(RefusalCode::Busy));
    let child = at_once(other).expect("a slot is free there");
    assert_eq!(world.holding(), [a, first, other, child]);
    world.cancel(second, Reach::Subtree, offshoot_model::CancelledBy::Operator);
    assert_eq!(world.status(second), Some(RunStatus::Cancelled));
}

#[test]
fn parents_that_poll_below_an_agent_do_not_lock_its_subtree() {
    let (mut world, a) = below(at_once(1), Limits { max_concurrent: 3, ..Limits::default() });
    // A run without children, elsewhere, takes the last slot of the tree.
    let leaf = world.spawn_piece();
    let parent = world.spawn_agent(a, "b");
    let child = world.spawn_agent(parent, "b");
    assert_eq!(world.holding(), [a, leaf, parent]);
    world.advance(29_999);
    assert_eq!(world.holding(), [a, leaf, parent]);
    world.advance(1);
    assert_eq!(world.holding(), [a, leaf, child], "the one that polls lends its slot");
}

#[test]
fn a_deadline_of_an_agent_ends_what_is_below_it() {
    let (mut world, a) = below(in_all(60), Limits { max_concurrent: 3, ..Limits::default() });
    let other = world.spawn_piece();
    world.advance(1_000_000);
    let child = world.spawn_agent(a, "b");
    let queued = world.spawn_agent(child, "b");
    world.advance(59_999);
    assert!(world.asked_to_stop().is_empty(), "what is below begins with its first child");
    world.advance(1);
    assert_eq!(world.status(queued), Some(RunStatus::TimedOut), "it never starts");
    assert_eq!(world.asked_to_stop(), [child]);
    world.finish_because(child, Reason::Signal { signal: 15 });
    assert_eq!(world.status(child), Some(RunStatus::TimedOut));
    assert_eq!(world.ask(a), Err(RefusalCode::CallerEnded));
    assert_eq!(world.holding(), [a, other], "neither `a` nor others are bound by it");
    assert!(world.ask(other).is_ok());
}

#[test]
fn a_deadline_of_an_agent_outlives_it_and_does_not_count_time_without_a_supervisor() {
    let limits = Limits { resumes: true, ..Limits::default() };
    let (mut world, a) = below(in_all(60), limits);
    let child = world.spawn_agent(a, "b");
    let grandchild = world.spawn_agent(child, "b");
    for _ in 0..2 {
        world.advance(20_000);
        world.use_tokens(grandchild, 1);
        world.die(Duration::from_secs(1_000));
        while world.claim() {}
    }
    world.finish(a);
    world.advance(19_999);
    assert!(world.asked_to_stop().is_empty());
    world.advance(1);
    assert_eq!(world.asked_to_stop(), [grandchild, child]);
}

#[test]
fn nothing_of_a_subtree_whose_time_is_over_starts_again() {
    let limits = Limits { resumes: true, ..Limits::default() };
    let (mut world, a) = below(in_all(60), limits);
    let child = world.spawn_agent(a, "b");
    world.advance(59_999);
    world.use_tokens(child, 1);
    // The supervisor dies before it looks at the clock.
    world.ledger.clock_is_true = false;
    world.now = world.now.plus(Duration::from_millis(1));
    world.use_tokens(child, 1);
    world.crash();
    assert_eq!(world.status(child), Some(RunStatus::TimedOut));
    assert_eq!(world.holding(), [a]);
    assert_eq!(world.ask(a), Err(RefusalCode::CallerEnded));
}
