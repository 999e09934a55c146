//! One probe of an account over all trees of the user.

use std::time::Duration;

use offshoot_audit::Audit;
use offshoot_model::{Account, CancelledBy};

use super::super::{Input, Reach, RunIndex};
use super::account_slots::pool;
use super::limits::Limits;
use super::world::World;

impl World {
    pub(super) fn asks_for_turn(&mut self, account: Account) {
        self.asked_turns.push(account);
    }

    /// Lets the turn of this tree come. Another one was answered before, where that is so.
    fn turn_comes(&mut self, is_answered: bool) {
        let account = self.asked_turns.remove(0);
        self.ledger.takes_turn(&account);
        self.step(Input::ProbeTurn { account, is_answered });
    }

    /// The turn of a random world comes, if it has asked for one.
    pub(super) fn a_turn_comes(&mut self) -> bool {
        if self.asked_turns.is_empty() {
            return false;
        }
        let before = self.times("unparked");
        let is_answered = self.seed.one_in(3);
        self.turn_comes(is_answered);
        if is_answered && self.times("unparked") > before {
            self.saw("another tree was answered");
        }
        true
    }
}

/// A tree of six slots, of which each of these pieces has met a wall of a minute that is over.
fn due(pieces: usize) -> (World, Vec<RunIndex>) {
    due_with(Limits::default(), pieces)
}

fn due_with(limits: Limits, pieces: usize) -> (World, Vec<RunIndex>) {
    let limits = Limits { max_concurrent: 6, resumes: true, shares_probes: true, ..limits };
    let mut world = World::quiet(limits);
    let runs: Vec<RunIndex> = (0..pieces).map(|_| world.spawn_piece()).collect();
    let until = world.now.plus(Duration::from_secs(60));
    runs.iter().for_each(|&run| world.meet_wall(run, until));
    world.advance(59_999);
    assert_eq!(world.asked_turns, [], "nothing is asked for before the reset");
    world.advance(12_001);
    assert_eq!((world.asked_turns.len(), world.holding()), (1, Vec::new()));
    (world, runs)
}

/// Ends all that is left, and checks that the record proves what was done.
fn end(mut world: World) {
    while world.machine.live() > 1 {
        match world.holding().first() {
            Some(&run) => world.finish(run),
            None if world.asked_turns.is_empty() => world.advance(60_000),
            None => world.turn_comes(false),
        }
    }
    assert_eq!(Audit::of(&world.ledger.events).breaches, []);
}

#[test]
fn a_tree_probes_when_it_is_its_turn_and_tells_the_others_of_an_answer() {
    let (mut world, _) = due(4);
    world.turn_comes(false);
    let [probe] = world.holding()[..] else { panic!("one probe") };
    assert_eq!(world.times("turn with an answer"), 0);
    world.use_tokens(probe, 1);
    assert_eq!((world.times("unparked"), world.times("turn with an answer")), (1, 1));
    assert_eq!(world.holding().len(), 2);
    end(world);
}

#[test]
fn an_answer_to_another_tree_is_one_to_this_one() {
    let (mut world, _) = due(4);
    world.turn_comes(true);
    assert_eq!((world.times("unparked"), world.holding().len()), (1, 2));
    assert_eq!(world.times("turn without an answer"), 1, "it holds up none");
    assert_eq!(world.times("turn with an answer"), 0, "the answer was that of the other tree");
    end(world);
}

#[test]
fn a_turn_with_which_nothing_starts_goes_back_at_once() {
    let (mut world, _) = due(2);
    world.pause(true);
    world.turn_comes(false);
    assert_eq!((world.holding(), world.times("turn without an answer")), (Vec::new(), 1));
    world.pause(false);
    assert_eq!(world.asked_turns.len(), 1, "it asks again when something can start");
    world.turn_comes(false);
    assert_eq!(world.holding().len(), 1);
    end(world);
}

#[test]
fn a_probe_that_meets_the_wall_again_lets_the_next_tree_try() {
    let (mut world, _) = due(2);
    world.turn_comes(false);
    let [probe] = world.holding()[..] else { panic!("one probe") };
    let until = world.now.plus(Duration::from_secs(60));
    world.meet_wall(probe, until);
    assert_eq!((world.asked_turns.len(), world.times("turn without an answer")), (0, 1));
    world.advance(72_000);
    assert_eq!(world.asked_turns.len(), 1);
    end(world);
}

#[test]
fn a_probe_that_ends_without_a_word_is_followed_by_the_next_in_the_same_turn() {
    let (mut world, _) = due(3);
    world.turn_comes(false);
    let [probe] = world.holding()[..] else { panic!("one probe") };
    world.finish_because(probe, offshoot_model::Reason::Signal { signal: 9 });
    let [next] = world.holding()[..] else { panic!("one probe") };
    assert_ne!(next, probe);
    assert_eq!(world.times("turn without an answer"), 0);
    end(world);
}

#[test]
fn a_turn_stays_while_the_run_waits_for_a_slot_of_the_host() {
    let (mut world, _) = due_with(Limits { host_slots: 6, ..Limits::default() }, 2);
    world.others_change(6, 6);
    world.turn_comes(false);
    assert_eq!((world.holding(), world.times("turn without an answer")), (Vec::new(), 0));
    world.others_change(5, 5);
    assert_eq!(world.holding().len(), 1, "it starts with the turn that it has");
    end(world);
}

#[test]
fn a_turn_that_does_not_come_is_waited_for_a_minute() {
    let (mut world, _) = due(2);
    world.advance(59_999);
    assert_eq!(world.holding(), []);
    world.advance(1);
    let [probe] = world.holding()[..] else { panic!("one probe") };
    // It comes after all, and is kept as long as that run has no answer.
    world.turn_comes(false);
    assert_eq!((world.holding().len(), world.times("turn without an answer")), (1, 0));
    world.use_tokens(probe, 1);
    assert_eq!(world.times("turn with an answer"), 1);
    end(world);
}

#[test]
fn the_wall_that_the_probe_of_another_tree_has_met_is_one_of_this_tree() {
    let (mut world, runs) = due(2);
    let until = world.now.plus(Duration::from_secs(600));
    let account = world.machine.runs.live(runs[0]).and_then(|live| live.account.clone());
    world.hear_of_wall((*account.expect("it has one")).clone(), until);
    world.turn_comes(false);
    assert_eq!((world.holding(), world.times("parked")), (Vec::new(), 2));
    assert_eq!(world.times("turn without an answer"), 1);
    world.advance(720_000);
    assert_eq!(world.asked_turns.len(), 1);
    end(world);
}

#[test]
fn another_supervisor_asks_anew() {
    let (mut world, _) = due(2);
    world.turn_comes(false);
    assert_eq!(world.holding().len(), 1);
    world.crash();
    while world.claim() {}
    assert_eq!((world.asked_turns.len(), world.holding()), (1, Vec::new()));
    end(world);
}

#[test]
fn an_answer_to_another_tree_opens_no_account_that_has_met_a_later_wall() {
    let limits =
        Limits { max_concurrent: 6, resumes: true, shares_probes: true, ..Limits::default() };
    let mut world = World::quiet(limits);
    let [first, second] = [(); 2].map(|()| world.spawn_piece());
    let in_seconds = |world: &World, seconds| world.now.plus(Duration::from_secs(seconds));
    let until = in_seconds(&world, 60);
    world.meet_wall(first, until);
    world.advance(72_000);
    assert_eq!((world.asked_turns.len(), world.holding()), (1, vec![second]));
    let until = in_seconds(&world, 600);
    world.meet_wall(second, until);
    world.turn_comes(true);
    assert_eq!((world.times("unparked"), world.holding()), (0, Vec::new()));
    end(world);
}

#[test]
fn a_turn_for_which_no_run_is_left_goes_back() {
    let (mut world, runs) = due(1);
    world.cancel(runs[0], Reach::Subtree, CancelledBy::Operator);
    world.turn_comes(false);
    assert_eq!((world.machine.live(), world.times("turn without an answer")), (1, 1));
    end(world);
}

#[test]
fn a_turn_stays_while_the_run_waits_for_a_slot_of_its_account() {
    let (mut world, _) = due_with(Limits { account_slots: 6, ..Limits::default() }, 2);
    world.others_change_in(pool("test"), 6, 6);
    world.turn_comes(false);
    assert_eq!((world.holding(), world.times("turn without an answer")), (Vec::new(), 0));
    world.others_change_in(pool("test"), 5, 5);
    assert_eq!(world.holding().len(), 1, "it starts with the turn that it has");
    end(world);
}
