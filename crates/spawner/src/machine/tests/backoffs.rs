//! Runs whose service refuses a call, and whose runtimes ask it again.

use std::time::Duration;

use offshoot_audit::Audit;
use offshoot_model::{EventKind, RequestEnding};
use offshoot_runtime::RunEvent;

use super::super::{Input, RunIndex};
use super::agents::OVERLOADED;
use super::limits::Limits;
use super::world::World;
use crate::model_request::WallReset;

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

/// Returns the number of times that other trees were told of pressure.
fn told(world: &World) -> usize {
    world.told_pressure as usize
}

#[test]
fn a_fault_that_goes_on_is_told_to_other_trees_once() {
    let (mut world, runs) = world(16);
    for _ in 0..4 {
        runs[..8].iter().for_each(|&run| world.back_off(run));
        world.advance(11_000);
    }
    assert_eq!((bounds(&world), told(&world)), (vec![Some(4)], 1));
    // The end of an attempt whose calls have told of it is the same fault.
    world.finish_because(runs[0], OVERLOADED);
    assert_eq!((bounds(&world), told(&world)), (vec![Some(4)], 1));
    end(world);
    // Nor is a tree without a line told of it again and again.
    let (mut world, runs) = self::world(1);
    for _ in 0..4 {
        world.back_off(runs[0]);
        world.advance(11_000);
    }
    assert_eq!(told(&world), 1);
    world.use_tokens(runs[0], 1);
    world.back_off(runs[0]);
    assert_eq!(told(&world), 2, "the service had answered in between");
    world.use_tokens(runs[0], 1);
    world.advance(11_000);
    world.finish_because(runs[0], OVERLOADED);
    assert_eq!(told(&world), 3, "no call that failed has told of the end of its attempt");
    end(world);
}

#[test]
fn a_run_that_was_answered_before_the_bound_grew_meets_a_fault_anew() {
    let (mut world, runs) = world(16);
    world.back_off(runs[0]);
    runs[..8].iter().for_each(|&run| world.use_tokens(run, 1));
    assert_eq!(bounds(&world), [Some(4)], "more work than the bound allows");
    runs[4..8].iter().for_each(|&run| world.finish(run));
    world.use_tokens(runs[0], 1);
    let grown = bounds(&world).len();
    assert!(grown > 1, "as many were answered as work: {:?}", bounds(&world));
    world.advance(60_000);
    world.back_off(runs[0]);
    let bounds_now = bounds(&world);
    assert_eq!(bounds_now.len(), grown + 1, "{grown}: {bounds_now:?} {:?}", world.holding());
    end(world);
}

#[test]
fn a_fault_that_says_nothing_of_other_runs_is_no_pressure() {
    let (mut world, runs) = world(16);
    let (why, wait) = ("cut".into(), Duration::from_secs(3));
    world.tells(runs[0], RunEvent::BacksOff { why, wait, is_pressure: false });
    assert_eq!((backoffs(&world), bounds(&world), told(&world)), (1, vec![], 0));
    end(world);
}

#[test]
fn a_wait_is_bounded_by_a_day() {
    let (mut world, runs) = world(1);
    let (why, wait) = ("429 é".repeat(200).into(), Duration::MAX);
    world.tells(runs[0], RunEvent::BacksOff { why, wait, is_pressure: true });
    let day = world.now.plus(Duration::from_secs(24 * 60 * 60));
    let said = world.record.iter().rev().find_map(|event| match &event.kind {
        EventKind::BacksOff { why, until } => Some((why.len() <= 400, *until)),
        _ => None,
    });
    assert_eq!(said, Some((true, day)));
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
fn a_wait_for_a_service_is_no_silence() {
    let limits = Limits { idle_timeout_seconds: 10, ..Limits::default() };
    let mut world = World::quiet(limits);
    let run = world.spawn_piece();
    let back_off = |world: &mut World, seconds: u64| {
        let (why, wait) = ("529".into(), Duration::from_secs(seconds));
        world.tells(run, RunEvent::BacksOff { why, wait, is_pressure: true });
    };
    back_off(&mut world, 60);
    world.advance(69_999);
    assert!(!world.is_stopping(run), "it has ten seconds after its wait");
    back_off(&mut world, 60);
    world.use_tokens(run, 1);
    world.advance(9_999);
    assert!(!world.is_stopping(run));
    world.advance(1);
    assert!(world.is_stopping(run), "its service has answered, and it is silent since then");
    end(world);
    let mut world = World::quiet(limits);
    let run = world.spawn_piece();
    let (why, wait) = ("529".into(), Duration::from_secs(2 * 3_600));
    world.tells(run, RunEvent::BacksOff { why, wait, is_pressure: true });
    world.advance(3_609_999);
    assert!(!world.is_stopping(run), "a wait of an hour is believed");
    world.advance(1);
    assert!(world.is_stopping(run));
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

#[test]
fn a_request_that_a_provider_declines_for_too_much_is_pressure_and_a_wall_is_none() {
    let tree = || {
        let limits = Limits { max_concurrent: 8, metered: true, ..Limits::default() };
        let mut world = World::quiet(limits);
        let runs: Vec<RunIndex> = (0..16).map(|_| world.spawn_piece()).collect();
        (world, runs)
    };
    let declined = |world: &mut World, run: RunIndex| {
        world.ask_model(run, 100);
        let request = *world.requests.keys().last().expect("it was granted");
        world.end_request(request, RequestEnding::Declined, 0);
    };
    let (mut world, runs) = tree();
    declined(&mut world, runs[0]);
    assert_eq!((bounds(&world), told(&world)), (vec![Some(4)], 1));
    // A runtime that tells of its calls itself has told of this one.
    let (mut world, runs) = tree();
    let (why, wait) = ("cut".into(), Duration::from_secs(3));
    world.tells(runs[0], RunEvent::BacksOff { why, wait, is_pressure: false });
    declined(&mut world, runs[0]);
    assert_eq!((bounds(&world), told(&world)), (vec![], 0));
    // The meter tells of the wall first.
    let (mut world, runs) = tree();
    world.ask_model(runs[0], 100);
    let (reset, window) = (WallReset::In(Duration::from_secs(600)), Some("five_hour".into()));
    world.ledger.meets_wall(world.machine.id(runs[0]));
    world.step(Input::WallSeen { run: runs[0], window, reset, left: None });
    let request = *world.requests.keys().last().expect("it was granted");
    world.end_request(request, RequestEnding::Declined, 0);
    world.back_off(runs[0]);
    assert_eq!((bounds(&world), told(&world)), (vec![], 0));
}
