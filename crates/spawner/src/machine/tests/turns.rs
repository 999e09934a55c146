//! Further turns, letters, results on their way, and parents that are silent instead of waiting.

use std::time::Duration;

use offshoot_model::{CancelledBy, Event, EventKind, Reason, RequestEnding, RunId, RunStatus};
use offshoot_runtime::WaitMode;

use super::super::{Input, Reach, RunIndex};
use super::agents::OVERLOADED;
use super::limits::Limits;
use super::world::World;

#[test]
fn a_result_that_cannot_be_read_stays_held_and_is_no_reason_for_a_turn() {
    let deliveries = |world: &World, run: RunId| {
        let of = |event: &Event| match event.kind {
            EventKind::Delivered { redelivered, .. } if event.run == run => Some(redelivered),
            _ => None,
        };
        world.ledger.events.iter().filter_map(of).collect::<Vec<_>>()
    };
    let mut world = World::quiet(Limits::default());
    let (parent, child) = world.family();
    let id = world.id(child);
    world.finish(child);
    let turn = world.end_turn(parent);
    assert!(world.is_answered(turn) && !world.actors[&parent].over, "the turn should bring it");
    world.not_brought(parent, vec![id]);
    let turn = world.end_turn(parent);
    assert!(world.is_answered(turn) && world.actors[&parent].over, "there is nothing new");
    assert_eq!(deliveries(&world, id), [false]);

    // With something else to hear of it is tried again. So it is by a wait, and by a new supervisor.
    let mut world = World::quiet(Limits { resumes: true, ..Limits::default() });
    let (parent, child) = world.family();
    let id = world.id(child);
    world.finish(child);
    for expected in [&[false][..], &[false, true]] {
        let other = world.child_of(parent);
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
    assert_eq!(world.times("undelivered"), 3, "a wait says itself what became of its answer");
}

#[test]
fn what_is_not_taken_in_time_is_undelivered_and_comes_again() {
    let mut world = World::quiet(Limits::default());
    let (parent, child) = world.family();
    world.takes_nothing = true;
    world.finish(child);
    // By a wait, by another one, and by a turn.
    for delivery in 1..=3 {
        match delivery {
            3 => drop(world.end_turn(parent)),
            _ => drop(world.wait(parent)),
        }
        assert_eq!(world.times("delivered"), delivery);
        world.advance(119_999);
        assert_eq!(world.times("undelivered"), delivery - 1, "there is time to take it");
        world.advance(1);
        assert_eq!(world.times("undelivered"), delivery);
    }
    world.takes_nothing = false;
    world.end_turn(parent);
    world.advance(600_000);
    assert_eq!((world.times("delivered"), world.times("undelivered")), (4, 3));
    let again = |event: &Event| match event.kind {
        EventKind::Delivered { redelivered, .. } => Some(redelivered),
        _ => None,
    };
    let again: Vec<_> = world.ledger.events.iter().filter_map(again).collect();
    assert_eq!(again, [false, true, true, true]);
}

#[test]
fn a_turn_that_ends_with_children_pending_lends_the_slot_and_goes_on_with_all_results() {
    let mut world = World::one_slot();
    let parent = world.spawn_piece();
    let children = [(); 2].map(|()| world.child_of(parent));
    let turn = world.end_turn(parent);
    assert_eq!(world.holding(), [children[0]]);
    world.finish(children[0]);
    assert_eq!(world.holding(), [children[1]], "all of them, not the first");
    world.finish(children[1]);
    assert!(world.is_answered(turn));
    assert_eq!(world.holding(), [parent]);
    assert_eq!(world.times("delivered"), 2);
    let last = world.end_turn(parent);
    assert!(world.is_answered(last), "nothing is pending any more");
    assert_eq!(world.times("turn_ended"), 1, "the last turn is the end of the run");
}

#[test]
fn results_that_came_during_a_turn_are_held_for_the_next() {
    let mut world = World::quiet(Limits::default());
    let (parent, child) = world.family();
    world.finish(child);
    assert_eq!(world.times("delivered"), 0);
    let turn = world.end_turn(parent);
    assert!(world.is_answered(turn));
    assert_eq!((world.times("delivered"), world.times("turn_ended")), (1, 1));
}

#[test]
fn what_a_wait_has_brought_is_not_brought_again() {
    let mut world = World::quiet(Limits::default());
    let (parent, child) = world.family();
    world.wait(parent);
    world.finish(child);
    let again = world.wait(parent);
    assert!(world.is_answered(again), "asking again repeats the answer");
    assert_eq!(world.times("delivered"), 1, "and delivers nothing");
    world.end_turn(parent);
    assert_eq!(world.times("turn_ended"), 0, "no turn follows for it");
}

#[test]
fn a_run_that_is_over_is_told_nothing_and_no_other_is() {
    let mut world = World::quiet(Limits::default());
    let grandparent = world.spawn_piece();
    let parent = world.child_of(grandparent);
    let before = world.child_of(parent);
    let after = world.child_of(parent);
    world.finish(before);
    world.finish(parent);
    assert_eq!(world.times("undelivered"), 1, "held for a parent that never asked");
    world.finish(after);
    assert_eq!(world.times("undelivered"), 2);
    world.wait(grandparent);
    assert_eq!(world.times("delivered"), 1, "its own child's, and no grandchild's");
}

#[test]
fn a_letter_begins_the_next_turn_of_a_session_between_two() {
    let mut world = World::one_slot();
    let (parent, child) = world.family();
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
    let mut world = World::quiet(Limits::default());
    let run = world.spawn_piece();
    world.write(run).expect("it reads letters");
    world.actors.get_mut(&run).expect("the run is over").letters = 0;
    let turn = world.end_turn(run);
    assert!(world.is_answered(turn));
    assert_eq!(world.times("turn_ended"), 1);
}

#[test]
fn a_run_that_is_asked_to_stop_between_two_turns_ends() {
    let mut world = World::one_slot();
    let (parent, child) = world.family();
    world.end_turn(parent);
    world.cancel(parent, Reach::Only, CancelledBy::Operator);
    world.finish_because(parent, Reason::Signal { signal: 15 });
    assert_eq!(world.status(parent), Some(RunStatus::Cancelled));
    world.finish(child);
    assert_eq!(world.times("undelivered"), 1);
}

#[test]
fn parents_that_are_silent_cannot_lock_the_tree() {
    let mut world = World::one_slot();
    let (parent, child) = world.family();
    world.advance(29_999);
    assert_eq!(world.holding(), [parent]);
    world.progress(parent);
    world.advance(29_999);
    assert_eq!(world.holding(), [parent], "it has spoken meanwhile");
    world.advance(1);
    assert_eq!(world.holding(), [child]);
    assert_eq!(world.times("stall_lent"), 1);
    world.progress(parent);
    assert_eq!(world.holding(), [parent, child], "it goes on, in debt");
    world.finish(child);
    world.finish(parent);
    assert_eq!(world.machine.next_change(), None);
}

#[test]
fn the_parent_that_has_been_silent_longest_lends_its_slot() {
    for speaks_last in [0, 1] {
        let mut world = World::quiet(Limits { max_concurrent: 2, ..Limits::default() });
        let parents = [(); 2].map(|()| world.spawn_piece());
        let children = parents.map(|parent| world.child_of(parent));
        world.advance(10_000);
        world.progress(parents[speaks_last]);
        world.advance(30_000);
        assert_eq!(world.holding(), [parents[speaks_last], children[0]]);
    }
}

#[test]
fn the_clock_of_the_silent_runs_on() {
    let mut world =
        World::quiet(Limits { max_concurrent: 1, run_timeout_seconds: 60, ..Limits::default() });
    let (parent, child) = world.family();
    world.advance(30_000);
    assert_eq!(world.holding(), [child]);
    world.advance(30_000);
    assert_eq!(world.asked_to_stop(), [parent], "it was not seen to wait");
}

#[test]
fn a_leaf_at_work_is_no_stall() {
    let mut world = World::quiet(Limits { max_concurrent: 2, ..Limits::default() });
    let parent = world.spawn_piece();
    let leaf = world.spawn_piece();
    world.child_of(parent);
    world.advance(300_000);
    assert_eq!(world.holding(), [parent, leaf]);
}

#[test]
fn a_silent_parent_that_waits_after_all_is_answered() {
    let mut world = World::one_slot();
    let (parent, child) = world.family();
    world.advance(30_000);
    assert_eq!(world.holding(), [child]);
    let wait = world.wait(parent);
    world.finish(child);
    assert!(world.is_answered(wait));
    assert_eq!(world.holding(), [parent]);
}

/// Returns how often a result is brought again after a crash, where a turn has brought it and this has happened since.
fn again_after(limits: Limits, happens: impl FnOnce(&mut World, RunIndex)) -> u32 {
    let mut world = World::quiet(Limits { resumes: true, ..limits });
    let (parent, child) = world.family();
    world.finish(child);
    let turn = world.end_turn(parent);
    assert!(world.is_answered(turn), "it brings the result");
    happens(&mut world, parent);
    world.crash();
    for other in world.holding().into_iter().filter(|run| *run != parent) {
        world.finish(other);
    }
    world.end_turn(parent);
    world.times("redelivered")
}

#[test]
fn what_a_turn_has_brought_is_not_brought_again_once_its_run_has_acted() {
    let check = |what: &str, expected, happens: fn(&mut World, RunIndex)| {
        assert_eq!(again_after(Limits::default(), happens), expected, "{what}");
    };
    check("nothing", 1, |_, _| {});
    check("the passing of time", 1, |world, _| world.advance(1_000));
    check("a use", 0, |world, run| world.use_tokens(run, 1));
    check("a report", 0, |world, run| world.report(run));
    check("a child", 0, |world, run| _ = world.child_of(run));
}

/// A request that was sent before a turn brought something tells nothing of that.
#[test]
fn an_answer_of_a_model_shows_that_what_was_brought_before_its_request_is_known() {
    let limits = Limits { metered: true, ..Limits::default() };
    let answered = |world: &mut World| {
        let request = *world.requests.keys().next().expect("it is open");
        world.end_request(request, RequestEnding::Answered, 5);
    };
    let later = again_after(limits, |world, run| {
        world.ask_model(run, 10);
        answered(world);
    });
    assert_eq!(later, 0);
    // One without an answer shows nothing.
    let later = again_after(limits, |world, run| {
        world.ask_model(run, 10);
        let request = *world.requests.keys().next().expect("it is open");
        world.end_request(request, RequestEnding::NotSent, 0);
    });
    assert_eq!(later, 1);
    let mut world = World::quiet(Limits { resumes: true, ..limits });
    let (parent, child) = world.family();
    world.ask_model(parent, 10);
    world.finish(child);
    world.end_turn(parent);
    answered(&mut world);
    world.crash();
    world.end_turn(parent);
    assert_eq!(world.times("redelivered"), 1);
}

#[test]
fn letters_that_were_taken_are_put_again_where_a_session_begins_anew() {
    for (resumes, expected) in [(true, 1), (false, 2)] {
        let mut world = World::quiet(Limits { resumes, ..Limits::default() });
        let run = world.spawn_piece();
        (0..2).for_each(|_| world.write(run).expect("it reads letters"));
        world.actors.get_mut(&run).expect("it runs").letters = 1;
        let turn = world.end_turn(run);
        assert!(world.is_answered(turn), "one letter was not taken");
        world.die(Duration::ZERO);
        assert_eq!(world.letters_held[&run].len(), expected, "it goes on: {resumes}");
    }
}

#[test]
fn a_session_that_began_anew_without_letters_may_be_tried_again() {
    let mut world = World::quiet(Limits { retries: 1, ..Limits::default() });
    let (parent, child) = world.family();
    world.finish(child);
    world.crash();
    assert_eq!(world.holding(), [parent]);
    world.finish_because(parent, OVERLOADED);
    assert_eq!(world.status(parent), None);
    world.advance(2_400);
    assert_eq!(world.holding(), [parent]);
}

#[test]
fn the_owner_of_a_root_that_runs_nothing_follows_its_children_itself() {
    let mut world = World::quiet(Limits::default());
    let child = world.spawn_agent(RunIndex::ROOT, "a");
    world.finish(child);
    world.close();
    world.assert_ended();
    assert_eq!((world.times("delivered"), world.times("undelivered")), (0, 0));
}

#[test]
fn an_answer_that_was_not_taken_says_nothing_of_those_of_other_waits() {
    let mut world = World::quiet(Limits::default());
    let parent = world.spawn_piece();
    let children = [(); 2].map(|()| world.child_of(parent));
    let ids = children.map(|child| world.id(child));
    let waits = ids.map(|child| world.wait_for(parent, vec![child], WaitMode::All, None));
    world.takes_nothing = true;
    children.iter().for_each(|child| world.finish(*child));
    let undelivered = |world: &World| {
        let is_it = |event: &&Event| matches!(event.kind, EventKind::Undelivered { .. });
        world.record.iter().filter(is_it).map(|event| event.run).collect::<Vec<_>>()
    };
    assert_eq!((world.times("delivered"), undelivered(&world)), (2, vec![]));
    world.step(Input::WaitDropped { id: waits[0] });
    assert_eq!(undelivered(&world), ids[..1], "the other one may still be taken");
}
