//! Runs whose runtime has a fault.

use std::sync::Arc;
use std::time::Duration;

use offshoot_config::OnInterrupt;
use offshoot_model::{CancelledBy, EventKind, Reason, RunStatus};
use offshoot_policy::RuntimeFacts;
use offshoot_policy::budget::Unit;

use super::super::{Input, Reach, Recalled, RunIndex, TurnEnd, WaitId};
use super::agents::OVERLOADED;
use super::limits::Limits;
use super::world::{OTHER, World};

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

/// A run whose own time is over, and that may be tried again by choice.
fn out_of_time() -> (World, RunIndex) {
    let limits =
        Limits { run_timeout_seconds: 10, retries: 1, retry_on: "timeout", ..Limits::default() };
    let mut world = World::quiet(limits);
    let run = world.spawn_piece();
    world.advance(10_000);
    assert_eq!(world.asked_to_stop(), [run]);
    (world, run)
}

#[test]
fn a_run_that_was_out_of_time_is_tried_again_by_choice_whatever_its_program_made_of_that() {
    for reason in [Reason::Signal { signal: 15 }, Reason::ExitCode { code: 1 }] {
        let (mut world, run) = out_of_time();
        world.finish_because(run, reason);
        assert_eq!(attempts(&world), [2]);
        world.advance(2_400);
        assert_eq!(world.holding(), [run]);
        world.finish(run);
    }
}

#[test]
fn a_run_that_did_its_work_when_its_time_was_over_is_not_tried_again() {
    let (mut world, run) = out_of_time();
    world.finish(run);
    assert_eq!(world.status(run), Some(RunStatus::Completed));
    assert_eq!(attempts(&world), Vec::<u32>::new());
}

#[test]
fn a_run_that_is_cancelled_when_its_time_was_over_is_not_tried_again() {
    let (mut world, run) = out_of_time();
    world.cancel(run, Reach::Subtree, CancelledBy::Operator);
    world.finish_because(run, Reason::Signal { signal: 15 });
    assert_eq!(world.status(run), Some(RunStatus::TimedOut));
    assert_eq!(attempts(&world), Vec::<u32>::new());
}

#[test]
fn a_session_that_was_written_to_is_not_tried_again() {
    let limits = Limits { retries: 1, resumes: true, ..Limits::default() };
    for is_written_to in [false, true] {
        let mut world = World::quiet(limits);
        let run = world.spawn_piece();
        if is_written_to {
            world.write(run).expect("it reads letters");
        }
        world.finish_because(run, OVERLOADED);
        let failed = is_written_to.then_some(RunStatus::Failed);
        assert_eq!(world.status(run), failed, "a letter may be lost with its attempt");
    }
}

#[test]
fn what_an_attempt_says_at_its_end_is_charged_before_the_next() {
    let limits = Limits { retries: 1, budget_tokens: Some(1_000), ..Limits::default() };
    let mut world = World::quiet(limits);
    let run = world.spawn_piece();
    world.actors.get_mut(&run).expect("it runs").used = 30;
    world.finish_because(run, OVERLOADED);
    assert_eq!(attempts(&world), [2]);
    let balance = world.machine.books.ledger.balance(world.id(run), Unit::Tokens);
    assert_eq!(balance.expect("it has a budget").used, 30);
}

/// A run of which nothing is repeated, and that another runtime may take over.
fn with_another_runtime() -> (World, RunIndex) {
    let on_interrupt = Some(OnInterrupt::Lost);
    let limits = Limits { falls_back: true, on_interrupt, ..Limits::default() };
    let mut world = World::quiet(limits);
    let run = world.spawn_piece();
    (world, run)
}

#[test]
fn a_run_is_told_whether_another_attempt_may_follow() {
    let (mut world, run) = with_another_runtime();
    let may_retry = |world: &World| world.machine.session(run).map(|session| session.may_retry);
    assert_eq!(may_retry(&world), Some(true), "another runtime may take it over");
    world.finish_because(run, OVERLOADED);
    assert_eq!((world.times("fell_back"), world.holding()), (1, vec![run]));
    assert_eq!(may_retry(&world), Some(false), "there is no third one");
}

#[test]
fn a_run_that_was_written_to_goes_over_to_no_other_runtime() {
    let (mut world, run) = with_another_runtime();
    world.write(run).expect("it reads letters");
    world.finish_because(run, OVERLOADED);
    assert_eq!((world.times("fell_back"), world.status(run)), (0, Some(RunStatus::Failed)));
}

#[test]
fn a_run_that_has_asked_for_a_child_goes_over_to_no_other_runtime() {
    for is_over in [false, true] {
        let (mut world, run) = with_another_runtime();
        let child = world.child_of(run);
        if is_over {
            world.finish(child);
        }
        world.finish_because(run, OVERLOADED);
        assert_eq!((world.times("fell_back"), world.status(run)), (0, Some(RunStatus::Failed)));
    }
}

#[test]
fn a_run_that_was_only_asked_to_answer_again_may_go_over_to_another_runtime() {
    let (mut world, run) = with_another_runtime();
    let id = WaitId(9_999);
    world.open_waits.insert(id, run);
    let end = TurnEnd { run, id, answer: None, letters_taken: 0, again: true };
    world.step(Input::TurnEnded(end));
    assert!(world.is_answered(id), "the next turn begins at once");
    world.finish_because(run, OVERLOADED);
    assert_eq!((world.times("fell_back"), world.holding()), (1, vec![run]));
}

#[test]
fn a_run_of_which_nothing_is_repeated_goes_over_to_another_runtime_at_a_wall() {
    let (mut world, run) = with_another_runtime();
    let until = world.now.plus(Duration::from_secs(60));
    world.meet_wall(run, until);
    assert_eq!((world.times("fell_back"), world.holding()), (1, vec![run]));
}

#[test]
fn a_run_that_has_gone_over_to_another_runtime_goes_on_there_after_a_crash() {
    let limits = Limits { falls_back: true, resumes: true, ..Limits::default() };
    let mut world = World::quiet(limits);
    let run = world.spawn_piece();
    world.finish_because(run, OVERLOADED);
    assert_eq!((world.times("fell_back"), world.holding()), (1, vec![run]));
    let Recalled { waiting, .. } = world.read_back().reopen(world.now);
    let runtimes = waiting.iter().map(|waiting| waiting.admitted.runtime.as_deref());
    assert_eq!(runtimes.collect::<Vec<_>>(), [Some(OTHER)]);
}

#[test]
fn a_run_that_was_out_of_time_and_has_used_up_its_budget_is_not_tried_again() {
    let limits = Limits {
        run_timeout_seconds: 10,
        retries: 1,
        retry_on: "timeout",
        budget_tokens: Some(1_000),
        ..Limits::default()
    };
    for (used, tried_again) in [(499, true), (500, false)] {
        let mut world = World::quiet(limits);
        let run = world.spawn_piece();
        world.advance(10_000);
        // Said with its end alone.
        world.actors.get_mut(&run).expect("it runs").used = used;
        world.finish_because(run, Reason::Signal { signal: 15 });
        assert_eq!(attempts(&world).len(), usize::from(tried_again), "{used} of 500");
    }
}

#[test]
fn a_wait_that_is_over_when_its_owner_asks_for_the_piece_again_is_over_at_once() {
    let mut world = world(1);
    let run = world.spawn_piece();
    world.finish_because(run, OVERLOADED);
    let at = world.machine.runs.live(run).and_then(|live| live.again_at);
    world.die(at.expect("it waits").since(world.now));
    assert!(world.claim());
    assert_eq!(world.holding(), [run]);
}
