//! Runs whose runtime has a fault.

use std::sync::Arc;

use offshoot_model::{CancelledBy, EventKind, Reason, RunStatus};
use offshoot_policy::RuntimeFacts;

use super::super::{Reach, RunIndex};
use super::agents::OVERLOADED;
use super::limits::Limits;
use super::world::World;

fn world(retries: u32) -> World {
    let limits = Limits { max_concurrent: 1, retries, ..Limits::default() };
    World::quiet(limits)
}

fn attempts(world: &World) -> Vec<u32> {
    let attempt = |kind: &EventKind| match kind {
        EventKind::Resumed { attempt, .. } => Some(*attempt),
        _ => None,
    };
    world.ledger.events.iter().filter_map(|event| attempt(&event.kind)).collect()
}

#[test]
fn a_fault_is_followed_by_another_attempt_as_often_as_allowed() {
    let mut world = world(2);
    let run = world.spawn_piece();
    for waits in [2_400, 4_800] {
        world.use_tokens(run, 10);
        world.finish_because(run, OVERLOADED);
        assert!(world.holding().is_empty(), "its slot is free meanwhile");
        world.advance(waits);
        assert_eq!(world.holding(), [run], "twice as long each time, moved by a fifth at most");
    }
    world.use_tokens(run, 10);
    world.finish_because(run, OVERLOADED);
    assert_eq!(world.status(run), Some(RunStatus::Failed));
    assert_eq!(attempts(&world), [2, 3]);
    let ended = world.ledger.events.iter().find_map(|event| match &event.kind {
        EventKind::Ended(ending) => Some(ending.usage.total().known()),
        _ => None,
    });
    assert_eq!(ended, Some(Some(30)), "what each attempt has used counts");
}

#[test]
fn nothing_else_is_tried_again() {
    let check = |retries, happens: fn(&mut World, RunIndex)| {
        let mut world = world(retries);
        let run = world.spawn_piece();
        happens(&mut world, run);
        assert_eq!(attempts(&world), Vec::<u32>::new());
        assert!(world.status(run).is_some_and(|status| !status.is_success()));
    };
    check(0, |world, run| world.finish_because(run, OVERLOADED));
    check(1, |world, run| world.finish_because(run, Reason::ExitCode { code: 7 }));
    check(1, |world, run| {
        world.cancel(run, Reach::Subtree, CancelledBy::Operator);
        world.finish_because(run, OVERLOADED);
    });
    check(1, |world, run| {
        world.child_of(run);
        world.finish_because(run, OVERLOADED);
    });
}

#[test]
fn an_attempt_that_is_over_uses_no_tools() {
    let mut world = world(1);
    let run = world.spawn_piece();
    let check = |world: &mut World, kept: usize| {
        world.use_tool(run);
        world.says_that_it_started(run);
        let count = |name| world.record.iter().filter(|event| event.kind.name() == name).count();
        assert_eq!(["tool_used", "started"].map(count), [kept; 2]);
    };
    check(&mut world, 1);
    world.finish_because(run, OVERLOADED);
    check(&mut world, 1);
    world.advance(2_400);
    check(&mut world, 2);
    world.finish(run);
}

#[test]
fn another_run_may_go_first() {
    let mut world = world(1);
    let (first, second) = (world.spawn_piece(), world.spawn_piece());
    world.finish_because(first, OVERLOADED);
    assert_eq!(world.holding(), [second]);
    world.advance(2_400);
    assert_eq!(world.holding(), [second]);
    world.finish(second);
    assert_eq!(world.holding(), [first]);
    world.finish(first);
    assert_eq!(world.status(first), Some(RunStatus::Completed));
}

#[test]
fn a_crash_before_the_next_attempt_does_not_change_how_that_begins() {
    for resumes in [true, false] {
        let mut world = world(1);
        world.facts = Arc::new(RuntimeFacts { resumes, ..(*world.facts).clone() });
        let run = world.spawn_piece();
        world.finish_because(run, OVERLOADED);
        world.crash();
        assert_eq!(world.going_on, if resumes { vec![run] } else { vec![] });
        assert_eq!(attempts(&world), [2], "it was not interrupted: it stood in line");
        assert!(world.holding().is_empty(), "a new supervisor waits for what is left");
        world.advance(2_400);
        assert_eq!(world.holding(), [run]);
        world.finish_because(run, OVERLOADED);
        assert_eq!(world.status(run), Some(RunStatus::Failed), "the count is on record");
    }
}

#[test]
fn one_that_waits_for_its_next_attempt_can_be_stopped() {
    let mut world = world(1);
    let run = world.spawn_piece();
    world.finish_because(run, OVERLOADED);
    world.cancel(run, Reach::Subtree, CancelledBy::Operator);
    assert_eq!(world.status(run), Some(RunStatus::Cancelled));
    world.advance(10_000);
    assert!(world.holding().is_empty());
    world.close();
    assert_eq!(world.machine.live(), 0);
}
