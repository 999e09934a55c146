//! Further turns, letters, results on their way, and parents that are silent instead of waiting.

use offshoot_model::{CancelledBy, Event, EventKind, Reason, RunId, RunStatus};

use super::super::{Reach, RunIndex};
use super::agents::Behaviour;
use super::limits::Limits;
use super::world::World;

fn one_slot(seed: u64) -> World {
    World::new(seed, Limits { max_concurrent: 1, ..Limits::default() }, Behaviour::Quiet)
}

fn times(world: &World, what: &str) -> u32 {
    world.ledger.seen.get(what).copied().unwrap_or(0)
}

fn family(world: &mut World) -> (RunIndex, RunIndex) {
    let parent = world.spawn_piece();
    let child = world.spawn_from(parent).expect("the parent may spawn");
    (parent, child)
}

#[test]
fn a_result_that_cannot_be_read_stays_held_and_is_no_reason_for_a_turn() {
    let deliveries = |world: &World, run: RunId| {
        let of = |event: &Event| match event.kind {
            EventKind::Delivered { redelivered, .. } if event.run == run => Some(redelivered),
            _ => None,
        };
        world.ledger.events.iter().filter_map(of).collect::<Vec<_>>()
    };
    let mut world = World::new(40, Limits::default(), Behaviour::Quiet);
    let (parent, child) = family(&mut world);
    let id = world.id(child);
    world.finish(child);
    let turn = world.end_turn(parent);
    assert!(world.is_answered(turn) && !world.actors[&parent].over, "the turn should bring it");
    world.not_brought(parent, vec![id]);
    let turn = world.end_turn(parent);
    assert!(world.is_answered(turn) && world.actors[&parent].over, "there is nothing new");
    assert_eq!(deliveries(&world, id), [false]);

    // With something else to hear of it is tried again. So it is by a wait, and by a new supervisor.
    let limits = Limits { resumes: true, ..Limits::default() };
    let mut world = World::new(41, limits, Behaviour::Quiet);
    let (parent, child) = family(&mut world);
    let id = world.id(child);
    world.finish(child);
    for expected in [&[false][..], &[false, true]] {
        let other = world.spawn_from(parent).expect("the parent may spawn");
        world.finish(other);
        world.end_turn(parent);
        assert_eq!(deliveries(&world, id), expected);
        world.not_brought(parent, vec![id]);
    }
    world.crash();
    world.end_turn(parent);
    assert_eq!(deliveries(&world, id), [false, true, true]);
    world.not_brought(parent, vec![id]);
    world.wait(parent);
    assert_eq!(deliveries(&world, id), [false, true, true, true]);
    world.not_brought(parent, vec![id]);
    assert_eq!(times(&world, "undelivered"), 3, "a wait says itself what became of its answer");
}

#[test]
fn a_turn_that_ends_with_children_pending_lends_the_slot_and_goes_on_with_all_results() {
    let mut world = one_slot(40);
    let parent = world.spawn_piece();
    let children = [(); 2].map(|()| world.spawn_from(parent).expect("the parent may spawn"));
    let turn = world.end_turn(parent);
    assert_eq!(world.holding(), [children[0]]);
    world.finish(children[0]);
    assert_eq!(world.holding(), [children[1]], "all of them, not the first");
    world.finish(children[1]);
    assert!(world.is_answered(turn));
    assert_eq!(world.holding(), [parent]);
    assert_eq!(times(&world, "delivered"), 2);
    let last = world.end_turn(parent);
    assert!(world.is_answered(last), "nothing is pending any more");
    assert_eq!(times(&world, "turn_ended"), 1, "the last turn is the end of the run");
}

#[test]
fn results_that_came_during_a_turn_are_held_for_the_next() {
    let mut world = World::new(41, Limits::default(), Behaviour::Quiet);
    let (parent, child) = family(&mut world);
    world.finish(child);
    assert_eq!(times(&world, "delivered"), 0);
    let turn = world.end_turn(parent);
    assert!(world.is_answered(turn));
    assert_eq!((times(&world, "delivered"), times(&world, "turn_ended")), (1, 1));
}

#[test]
fn what_a_wait_has_brought_is_not_brought_again() {
    let mut world = World::new(42, Limits::default(), Behaviour::Quiet);
    let (parent, child) = family(&mut world);
    world.wait(parent);
    world.finish(child);
    let again = world.wait(parent);
    assert!(world.is_answered(again), "asking again repeats the answer");
    assert_eq!(times(&world, "delivered"), 1, "and delivers nothing");
    world.end_turn(parent);
    assert_eq!(times(&world, "turn_ended"), 0, "no turn follows for it");
}

#[test]
fn a_run_that_is_over_is_told_nothing_and_no_other_is() {
    let mut world = World::new(43, Limits::default(), Behaviour::Quiet);
    let grandparent = world.spawn_piece();
    let parent = world.spawn_from(grandparent).expect("it may spawn");
    let before = world.spawn_from(parent).expect("the parent may spawn");
    let after = world.spawn_from(parent).expect("the parent may spawn");
    world.finish(before);
    world.finish(parent);
    assert_eq!(times(&world, "undelivered"), 1, "held for a parent that never asked");
    world.finish(after);
    assert_eq!(times(&world, "undelivered"), 2);
    world.wait(grandparent);
    assert_eq!(times(&world, "delivered"), 1, "its own child's, and no grandchild's");
}

#[test]
fn a_letter_begins_the_next_turn_of_a_session_between_two() {
    let mut world = one_slot(44);
    let (parent, child) = family(&mut world);
    let turn = world.end_turn(parent);
    assert_eq!(world.write(parent), Ok(()));
    assert!(!world.is_answered(turn), "there is no slot yet");
    world.finish(child);
    assert!(world.is_answered(turn));
    let last = world.end_turn(parent);
    assert!(world.is_answered(last), "the result came with the letter");
    assert!(world.write(parent).is_err(), "its last turn is over");
}

#[test]
fn a_letter_that_was_not_taken_makes_a_turn() {
    let mut world = World::new(45, Limits::default(), Behaviour::Quiet);
    let run = world.spawn_piece();
    world.write(run).expect("it reads letters");
    world.actors.get_mut(&run).expect("it runs").letters = 0;
    let turn = world.end_turn(run);
    assert!(world.is_answered(turn));
    assert_eq!(times(&world, "turn_ended"), 1);
}

#[test]
fn a_run_that_is_asked_to_stop_between_two_turns_ends() {
    let mut world = one_slot(46);
    let (parent, child) = family(&mut world);
    world.end_turn(parent);
    world.cancel(parent, Reach::Only, CancelledBy::Operator);
    world.finish_because(parent, Reason::Signal { signal: 15 });
    assert_eq!(world.ledger.status(world.id(parent)), Some(RunStatus::Cancelled));
    world.finish(child);
    assert_eq!(times(&world, "undelivered"), 1);
}

#[test]
fn parents_that_are_silent_cannot_lock_the_tree() {
    let mut world = one_slot(47);
    let (parent, child) = family(&mut world);
    world.advance(29_999);
    assert_eq!(world.holding(), [parent]);
    world.progress(parent);
    world.advance(29_999);
    assert_eq!(world.holding(), [parent], "it has spoken meanwhile");
    world.advance(1);
    assert_eq!(world.holding(), [child]);
    assert_eq!(times(&world, "stall_lent"), 1);
    world.progress(parent);
    assert_eq!(world.holding(), [parent, child], "it goes on, in debt");
    world.finish(child);
    world.finish(parent);
    assert_eq!(world.machine.next_timer(), None);
}

#[test]
fn the_clock_of_the_silent_runs_on() {
    let limits = Limits { max_concurrent: 1, run_timeout_seconds: 60, ..Limits::default() };
    let mut world = World::new(48, limits, Behaviour::Quiet);
    let (parent, child) = family(&mut world);
    world.advance(30_000);
    assert_eq!(world.holding(), [child]);
    world.advance(30_000);
    assert_eq!(world.asked_to_stop(), [parent], "it was not seen to wait");
}

#[test]
fn a_leaf_at_work_is_no_stall() {
    let limits = Limits { max_concurrent: 2, ..Limits::default() };
    let mut world = World::new(49, limits, Behaviour::Quiet);
    let parent = world.spawn_piece();
    let leaf = world.spawn_piece();
    world.spawn_from(parent).expect("the parent may spawn");
    world.advance(300_000);
    assert_eq!(world.holding(), [parent, leaf]);
}

#[test]
fn a_silent_parent_that_waits_after_all_is_answered() {
    let mut world = one_slot(50);
    let (parent, child) = family(&mut world);
    world.advance(30_000);
    assert_eq!(world.holding(), [child]);
    let wait = world.wait(parent);
    world.finish(child);
    assert!(world.is_answered(wait));
    assert_eq!(world.holding(), [parent]);
}
