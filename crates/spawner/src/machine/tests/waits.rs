//! Waits and the slot that is lent meanwhile.

use std::time::Duration;

use offshoot_model::{CancelledBy, EventKind, Reason};
use offshoot_runtime::WaitMode;

use super::super::{Reach, RunIndex, WaitId};
use super::limits::Limits;
use super::world::World;

#[test]
fn a_returning_parent_goes_before_newcomers() {
    let mut world = World::one_slot();
    let parent = world.spawn_piece();
    let newcomer = world.spawn_piece();
    let child = world.child_of(parent);
    world.wait(parent);
    assert_eq!(world.holding(), [child], "deeper before shallower");
    world.finish(child);
    assert_eq!(
        world.holding(),
        [parent],
        "the newcomer has waited longer, and still the parent goes first"
    );
    world.finish(parent);
    assert_eq!(world.holding(), [newcomer]);
}

#[test]
fn a_wait_that_times_out_goes_on_in_debt() {
    let mut world = World::one_slot();
    let (parent, child) = world.family();
    let newcomer = world.spawn_piece();
    let wait = world.wait(parent);
    world.give_up(wait);
    assert_eq!(world.holding(), [parent, child], "two live at a cap of one: a debt");
    world.finish(child);
    assert_eq!(world.holding(), [parent], "no run starts until the debt is paid");
    world.finish(parent);
    assert_eq!(world.holding(), [newcomer]);
}

#[test]
fn time_spent_waiting_before_a_crash_is_not_counted() {
    let limits = Limits { run_timeout_seconds: 10, resumes: true, ..Limits::default() };
    let mut world = World::quiet(limits);
    let parent = world.spawn_piece();
    world.advance(4_000);
    let child = world.child_of(parent);
    world.wait(parent);
    world.advance(5_000);
    world.use_tokens(child, 1);
    world.crash();
    assert_eq!(world.holding(), [parent, child]);
    world.finish(child);
    world.advance(5_999);
    assert!(!world.is_stopping(parent), "it has worked for four seconds before");
    world.advance(1);
    assert!(world.is_stopping(parent));
}

#[test]
fn time_spent_waiting_is_not_counted() {
    let mut world = World::quiet(Limits { run_timeout_seconds: 10, ..Limits::default() });
    let parent = world.spawn_piece();
    world.advance(6_000);
    let child = world.child_of(parent);
    world.wait(parent);
    world.advance(9_000);
    world.finish(child);
    world.advance(3_999);
    assert!(world.asked_to_stop().is_empty(), "six seconds and four: not yet ten");
    world.advance(1);
    assert_eq!(world.asked_to_stop(), [parent]);
}

#[test]
fn two_waits_at_once_lend_the_slot_until_both_are_answered() {
    let mut world = World::one_slot();
    let parent = world.spawn_piece();
    let children = [(); 2].map(|()| world.child_of(parent));
    let waits = children.map(|child| {
        let runs = vec![world.id(child)];
        world.wait_for(parent, runs, WaitMode::All, None)
    });
    world.finish(children[0]);
    assert!(world.is_answered(waits[0]));
    assert_eq!(world.holding(), [children[1]], "the other child needs the only slot there is");
    world.finish(children[1]);
    assert!(world.is_answered(waits[1]));
    assert_eq!(world.holding(), [parent]);
}

#[test]
fn a_wait_begun_while_another_is_being_answered_lends_the_slot_again() {
    let mut world = World::one_slot();
    let (parent, answered, blocker) = answered_without_a_slot(&mut world);
    let second = world.child_of(parent);
    let runs = vec![world.id(second)];
    let open = world.wait_for(parent, runs, WaitMode::All, None);
    assert!(!world.is_answered(answered), "there is no slot to go on with");
    world.finish(blocker);
    assert!(world.is_answered(answered) && !world.is_answered(open));
    assert_eq!(world.holding(), [second], "the parent is blocked on it");
}

#[test]
fn giving_up_an_answer_on_its_way_goes_on_at_once() {
    let mut world = World::one_slot();
    let (parent, wait, blocker) = answered_without_a_slot(&mut world);
    world.give_up(wait);
    assert!(world.is_answered(wait));
    assert_eq!(world.holding(), [parent, blocker], "in debt");
}

/// A parent whose wait has succeeded while another run holds the only slot.
fn answered_without_a_slot(world: &mut World) -> (RunIndex, WaitId, RunIndex) {
    let (parent, child) = world.family();
    let wait = world.wait(parent);
    let grandchild = world.child_of(child);
    let given_up = world.wait(child);
    world.give_up(given_up);
    assert_eq!(world.holding(), [child, grandchild]);
    world.finish(child);
    assert_eq!(world.holding(), [grandchild]);
    (parent, wait, grandchild)
}

#[test]
fn patience_that_was_not_needed_leaves_no_timer() {
    let mut world = World::one_slot();
    let (parent, child) = world.family();
    let until = Some(world.now.plus(Duration::from_secs(3600)));
    world.wait_for(parent, Vec::new(), WaitMode::All, until);
    world.finish(child);
    assert_eq!(world.machine.next_change(), None);
}

#[test]
fn a_parent_that_is_cancelled_while_it_waits_leaves_nothing_behind() {
    let mut world = World::one_slot();
    let (parent, child) = world.family();
    world.wait(parent);
    world.cancel(parent, Reach::Only, CancelledBy::Operator);
    world.finish_because(parent, Reason::Signal { signal: 15 });
    assert_eq!(world.holding(), [child]);
    world.finish(child);
    world.close();
    world.assert_ended();
}

#[test]
fn a_wait_for_strangers_or_for_no_run_is_answered_at_once() {
    let mut world = World::one_slot();
    let (parent, stranger) = (world.spawn_piece(), world.spawn_piece());
    for mode in [WaitMode::All, WaitMode::Any] {
        for runs in [vec![], vec![world.id(stranger)], vec![world.id(parent)]] {
            let wait = world.wait_for(parent, runs, mode, None);
            assert!(world.is_answered(wait));
        }
    }
    assert_eq!(world.holding(), [parent]);
}

#[test]
fn a_wait_that_names_no_run_is_for_those_that_its_caller_has_not_heard_of() {
    let mut world = World::quiet(Limits::default());
    let parent = world.spawn_piece();
    let spawn = |world: &mut World| world.child_of(parent);
    let (first, second, third) = (spawn(&mut world), spawn(&mut world), spawn(&mut world));
    let unnamed = |world: &World| world.machine.unnamed_runs(parent);
    let ids = |world: &World, runs: &[RunIndex]| -> Vec<_> {
        runs.iter().map(|run| world.id(*run)).collect()
    };
    assert_eq!(unnamed(&world), ids(&world, &[first, second, third]));
    world.finish(second);
    assert_eq!(unnamed(&world), ids(&world, &[first, second, third]), "it was not told yet");
    world.wait_for(parent, vec![], WaitMode::Any, None);
    assert_eq!(unnamed(&world), ids(&world, &[first, third]), "it has heard of the second");
    let wait = world.wait_for(parent, vec![], WaitMode::Any, None);
    assert!(!world.is_answered(wait), "an old end does not satisfy it");
    world.finish(first);
    assert!(world.is_answered(wait));
    let wait = world.wait(parent);
    world.finish(third);
    assert!(world.is_answered(wait));
    assert_eq!(unnamed(&world), ids(&world, &[first, second, third]), "asking again repeats all");
}

#[test]
fn a_run_that_works_while_it_waits_has_less_time() {
    // Readings of CPU and wait in milliseconds, what of the CPU is recorded, and what is left of ten seconds.
    let rows: &[(&[(u64, u64)], u64)] = &[
        (&[(0, 5_000)], 0),
        (&[(500, 5_000)], 0),
        (&[(510, 5_000)], 510),
        (&[(5_000, 1_000)], 5_000),
        // Too little to speak of, and split up.
        (&[(100, 200)], 0),
        (&[(100, 200), (100, 200), (100, 200), (100, 200)], 300),
        (&[(100, 200), (0, 5_000), (200, 400)], 0),
        (&[(400, 1_000), (600, 1_000)], 1_000),
    ];
    for (readings, recorded) in rows {
        let mut world = World::quiet(Limits {
            run_timeout_seconds: 10,
            max_concurrent: 1,
            ..Limits::default()
        });
        let (parent, child) = world.family();
        world.wait(parent);
        world.finish(child);
        for (cpu, wait) in *readings {
            world.works(parent, *cpu, *wait);
        }
        let kinds = world.record.iter().map(|event| &event.kind);
        let worked = kinds.filter_map(|kind| match kind {
            EventKind::BusyWaiting { cpu_ms, .. } => Some(*cpu_ms),
            _ => None,
        });
        assert_eq!(worked.sum::<u64>(), *recorded, "{readings:?}");
        // It holds after a crash as well.
        world.die(Duration::from_secs(1_000));
        while world.claim() {}
        world.advance(10_000 - recorded - 1);
        assert!(world.asked_to_stop().is_empty(), "{readings:?}");
        world.advance(1);
        assert_eq!(world.asked_to_stop(), [parent], "{readings:?}");
    }
}

#[test]
fn a_run_that_has_worked_for_all_its_time_is_stopped_also_while_another_wait_is_open() {
    let mut world = World::quiet(Limits { run_timeout_seconds: 10, ..Limits::default() });
    let parent = world.spawn_piece();
    world.child_of(parent);
    world.wait(parent);
    world.works(parent, 9_999, 60_000);
    assert!(world.asked_to_stop().is_empty());
    world.works(parent, 250, 300);
    assert_eq!(world.asked_to_stop(), [parent]);
}

#[test]
fn what_works_without_a_limit_may_work_for_as_long_as_it_likes() {
    let mut world = World::quiet(Limits::default());
    let (parent, child) = world.family();
    world.wait(parent);
    world.works(parent, 900_000, 1_000_000);
    world.works(child, 900_000, 1_000_000);
    assert!(world.asked_to_stop().is_empty());
}

#[test]
fn a_parent_whose_answered_wait_has_gone_waits_for_the_other_one() {
    let mut world = World::one_slot();
    let parent = world.spawn_piece();
    let [a, b] = [(); 2].map(|()| world.child_of(parent));
    let [first, second] = [a, b].map(|child| {
        let run = world.id(child);
        world.wait_for(parent, vec![run], WaitMode::All, None)
    });
    assert_eq!(world.holding(), [a]);
    world.cancel(b, Reach::Subtree, CancelledBy::Operator);
    world.give_up(second);
    // The slot comes free, and the parent has no use for it.
    let below = world.child_of(a);
    world.wait(a);
    assert_eq!((world.holding(), world.times("returned")), (vec![below], 0));
    world.finish(below);
    world.finish(a);
    assert!(world.is_answered(first));
    assert_eq!(world.holding(), [parent]);
}

#[test]
fn a_parent_with_two_answered_waits_of_which_one_has_gone_hears_the_other_answer() {
    let mut world = World::one_slot();
    let parent = world.spawn_piece();
    let [a, b, c] = [(); 3].map(|()| world.child_of(parent));
    let [first, second, third] = [a, b, c].map(|child| {
        let run = world.id(child);
        world.wait_for(parent, vec![run], WaitMode::All, None)
    });
    assert_eq!(world.holding(), [a]);
    world.cancel(b, Reach::Subtree, CancelledBy::Operator);
    world.cancel(c, Reach::Subtree, CancelledBy::Operator);
    world.give_up(second);
    assert!(!world.is_answered(first) && !world.is_answered(third), "there is no slot");
    world.finish(a);
    assert!(world.is_answered(first) && world.is_answered(third));
    assert_eq!(world.holding(), [parent]);
}

#[test]
fn a_parent_whose_patience_is_over_goes_on_with_what_there_is() {
    let mut world = World::one_slot();
    let (parent, child) = world.family();
    let until = world.now.plus(Duration::from_secs(10));
    let wait = world.wait_for(parent, Vec::new(), WaitMode::All, Some(until));
    assert_eq!(world.holding(), [child]);
    world.advance(9_999);
    assert!(!world.is_answered(wait));
    world.advance(1);
    assert!(world.is_answered(wait));
    assert_eq!(world.holding(), [parent, child], "in debt");
}

#[test]
fn the_children_of_a_run_are_those_of_the_attempts_that_it_continues() {
    for resumes in [true, false] {
        let mut world = World::quiet(Limits { resumes, ..Limits::default() });
        let parent = world.spawn_piece();
        let children = [(); 2].map(|()| world.child_of(parent)).map(|child| world.id(child));
        assert_eq!(world.machine.children_runs(parent), children);
        world.crash();
        let expected = if resumes { &children[..] } else { &[] };
        assert_eq!(world.machine.children_runs(parent), expected);
    }
}
