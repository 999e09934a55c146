//! Runs whose service refuses a call, and whose runtimes ask it again.

use std::time::Duration;

use offshoot_audit::Audit;
use offshoot_model::EventKind;

use super::super::RunIndex;
use super::agents::OVERLOADED;
use super::limits::Limits;
use super::world::World;

/// A tree of so many pieces that may be interrupted and tried again, of which eight hold slots.
fn world(pieces: usize) -> (World, Vec<RunIndex>) {
    let limits = Limits { max_concurrent: 8, retries: 1, resumes: true, ..Limits::default() };
    let mut world = World::quiet(limits);
    let runs = (0..pieces).map(|_| world.spawn_piece()).collect();
    (world, runs)
}

fn count(world: &World, is_one: impl Fn(&EventKind) -> bool) -> usize {
    world.record.iter().filter(|event| is_one(&event.kind)).count()
}

fn backoffs(world: &World) -> usize {
    count(world, |kind| matches!(kind, EventKind::BacksOff { .. }))
}

fn answers(world: &World) -> usize {
    count(world, |kind| matches!(kind, EventKind::Answered))
}

fn bounds(world: &World) -> Vec<Option<u32>> {
    let bound = |kind: &EventKind| match kind {
        EventKind::Paced { most, .. } => Some(*most),
        _ => None,
    };
    world.record.iter().filter_map(|event| bound(&event.kind)).collect()
}

fn end(mut world: World) {
    loop {
        while let Some(&run) = world.holding().first() {
            world.finish(run);
        }
        world.advance(60_000);
        if world.holding().is_empty() {
            break;
        }
    }
    assert_eq!(Audit::of(&world.ledger.events).breaches, []);
}

#[test]
fn a_refused_call_is_on_record_until_the_service_answers() {
    let (mut world, runs) = world(2);
    world.back_off(runs[0]);
    let until = world.now.plus(Duration::from_secs(3));
    let said = world.record.iter().rev().find_map(|event| match &event.kind {
        EventKind::BacksOff { why, until } => Some((why.to_string(), *until)),
        _ => None,
    });
    assert_eq!(said, Some(("529 overloaded".to_owned(), until)));
    world.use_tokens(runs[1], 1);
    assert_eq!(answers(&world), 0, "another one was answered");
    world.back_off(runs[0]);
    world.use_tokens(runs[0], 1);
    world.use_tokens(runs[0], 1);
    assert_eq!((backoffs(&world), answers(&world)), (2, 1));
    world.back_off(runs[0]);
    world.use_tool(runs[0]);
    assert_eq!((backoffs(&world), answers(&world)), (3, 2));
    end(world);
}

#[test]
fn fewer_runs_start_while_those_that_run_are_refused() {
    let (mut world, runs) = world(16);
    world.back_off(runs[0]);
    assert_eq!((bounds(&world), world.holding().len()), (vec![Some(4)], 8), "what runs goes on");
    (1..8).for_each(|at| world.back_off(runs[at]));
    world.back_off(runs[0]);
    assert_eq!(bounds(&world), [Some(4)], "they began before the bound");
    runs[..4].iter().for_each(|&run| world.finish_because(run, OVERLOADED));
    assert_eq!((bounds(&world), world.holding().len()), (vec![Some(4)], 4));
    world.finish(runs[4]);
    let young = runs[8];
    assert!(world.holding().contains(&young));
    world.back_off(young);
    assert_eq!(bounds(&world), [Some(4), Some(2)], "one that began under the bound");
    end(world);
}

#[test]
fn a_runtime_that_asks_in_a_loop_does_not_fill_the_record() {
    let (mut world, runs) = world(1);
    (0..500).for_each(|_| world.back_off(runs[0]));
    assert_eq!(backoffs(&world), 100);
    world.advance(2_000);
    (0..500).for_each(|_| world.back_off(runs[0]));
    assert_eq!(backoffs(&world), 102);
    end(world);
}

#[test]
fn another_attempt_has_asked_nothing_yet() {
    let (mut world, runs) = world(2);
    world.back_off(runs[0]);
    world.back_off(runs[1]);
    world.die(Duration::from_secs(5));
    while world.claim() {}
    assert_eq!(world.holding(), runs);
    world.use_tokens(runs[0], 1);
    assert_eq!(answers(&world), 0);
    world.back_off(runs[0]);
    world.use_tokens(runs[0], 1);
    assert_eq!((backoffs(&world), answers(&world)), (3, 1));
    // The service has not answered the other one before its attempt fails.
    world.back_off(runs[1]);
    world.finish_because(runs[1], OVERLOADED);
    world.advance(5_000);
    assert_eq!(world.holding(), runs);
    world.use_tokens(runs[1], 1);
    assert_eq!(answers(&world), 1);
    end(world);
}
