//! Pieces that need others: when they start, when they are skipped, and what a crash leaves of that.

use offshoot_audit::Audit;
use offshoot_config::OnInterrupt;
use offshoot_model::{CancelledBy, OnNeedFailed, Origin, PiecesAgain, Reason, RunStatus};

use super::super::{Effect, Input, Reach, RunIndex};
use super::crash::GoOn;
use super::limits::Limits;
use super::world::World;

const FAILED: Reason = Reason::ExitCode { code: 7 };

/// A piece, and one that needs it.
fn pair(world: &mut World, on_failed: OnNeedFailed) -> (RunIndex, RunIndex) {
    let first = world.spawn_piece();
    (first, world.spawn_needing(&[first], on_failed))
}

/// Ends the tree, and checks that its record proves what was done.
fn end(mut world: World) {
    world.close();
    world.assert_ended();
    assert_eq!(Audit::of(&world.ledger.events).breaches, []);
}

#[test]
fn a_piece_starts_once_all_that_it_needs_is_over() {
    let mut world = World::quiet(Limits::default());
    let (a, b) = (world.spawn_piece(), world.spawn_piece());
    let c = world.spawn_needing(&[a, b], OnNeedFailed::Skip);
    assert_eq!(world.holding(), [a, b], "there is a third slot, and it is not for this one");
    world.finish(b);
    assert_eq!(world.holding(), [a]);
    world.finish(a);
    assert_eq!(world.holding(), [c]);
    let names: Vec<_> = world.machine.answers_for(c).into_iter().map(|(_, run)| run).collect();
    assert_eq!(names, [world.id(a), world.id(b)], "in the order in which it names them");
    let late = world.spawn_needing(&[a], OnNeedFailed::Skip);
    assert_eq!(world.holding(), [c, late], "what is over is not waited for");
    world.finish(c);
    world.finish(late);
    end(world);
}

#[test]
fn a_failure_skips_what_needs_it_and_nothing_else() {
    let mut world = World::quiet(Limits::default());
    let (a, b) = pair(&mut world, OnNeedFailed::Skip);
    let c = world.spawn_needing(&[b], OnNeedFailed::Skip);
    let beside = world.spawn_piece();
    let runs = world.spawn_needing(&[a, beside], OnNeedFailed::Run);
    world.finish_because(a, FAILED);
    assert_eq!([b, c].map(|run| world.status(run)), [Some(RunStatus::Cancelled); 2]);
    assert_eq!(world.holding(), [beside], "the rest of what it needs is still to come");
    world.finish(beside);
    assert_eq!(world.holding(), [runs]);
    let answers: Vec<_> = world.machine.answers_for(runs).into_iter().map(|(_, it)| it).collect();
    assert_eq!(answers, [world.id(beside)], "the answer that there is");
    let late = world.spawn_needing(&[c], OnNeedFailed::Skip);
    assert_eq!(world.status(late), Some(RunStatus::Cancelled));
    world.finish(runs);
    end(world);
}

#[test]
fn what_needs_a_piece_that_is_not_paid_for_is_skipped_at_once() {
    let limits = Limits { budget_tokens: Some(1_000), pools: true, ..Limits::default() };
    let mut world = World::quiet(limits);
    let first = world.spawn_piece();
    let (unpaid, needs_it) = pair(&mut world, OnNeedFailed::Skip);
    assert_eq!(world.holding(), [first], "the other waits for its end");
    world.use_tokens(first, 900);
    world.finish(first);
    assert_eq!(world.status(unpaid), Some(RunStatus::Failed), "100 are left, and 900 is one piece");
    assert_eq!(world.status(needs_it), Some(RunStatus::Cancelled));
    end(world);
}

#[test]
fn what_was_begun_is_finished_before_more_is_begun() {
    let mut world = World::one_slot();
    let (a, b) = (world.spawn_piece(), world.spawn_piece());
    let first = world.spawn_needing(&[a], OnNeedFailed::Skip);
    let second = world.spawn_needing(&[a], OnNeedFailed::Skip);
    for expected in [a, first, second, b] {
        assert_eq!(world.holding(), [expected]);
        world.finish(expected);
    }
    end(world);
}

#[test]
fn a_chain_of_ten_thousand_is_skipped_at_once() {
    let mut world = World::quiet(Limits::default());
    let first = world.spawn_piece();
    let mut last = first;
    for _ in 0..10_000 {
        last = world.spawn_needing(&[last], OnNeedFailed::Skip);
    }
    world.finish_because(first, FAILED);
    assert_eq!(world.status(last), Some(RunStatus::Cancelled));
    assert_eq!(world.times("skipped"), 10_000);
    end(world);
}

#[test]
fn who_cancels_a_piece_cancels_what_needs_it_and_a_stopped_tree_stops_all_for_its_own_reason() {
    let reason = |world: &World, run: RunIndex| {
        let ended = world.record.iter().rev().find(|event| event.run == world.id(run));
        ended.expect("it has an end").kind.text()
    };
    let mut world = World::one_slot();
    let busy = world.spawn_piece();
    let (a, b) = pair(&mut world, OnNeedFailed::Skip);
    world.cancel(a, Reach::Subtree, CancelledBy::EarlyAnswer);
    assert_eq!([a, b].map(|run| reason(&world, run)), ["cancelled by an early answer"; 2]);
    // The one that is needed stands behind the one that needs it in no list: the whole tree stops for one reason.
    let (c, d) = pair(&mut world, OnNeedFailed::Skip);
    world.stop_all(false);
    assert_eq!([c, d].map(|run| reason(&world, run)), ["cancelled by the operator"; 2]);
    world.finish_because(busy, Reason::Signal { signal: 15 });
    end(world);
}

#[test]
fn a_piece_that_needs_others_waits_for_them_over_a_crash() {
    let mut world = World::quiet(Limits::default());
    let (a, b) = pair(&mut world, OnNeedFailed::Skip);
    let (done, c) = pair(&mut world, OnNeedFailed::Skip);
    let failing = world.spawn_piece();
    let d = world.spawn_needing(&[failing, done], OnNeedFailed::Run);
    world.finish(done);
    assert!(world.holding().contains(&c));
    // The pieces are claimed in no order: the last first.
    world.crash();
    assert_eq!(world.holding(), [a, c, failing], "what it needs is not over");
    world.finish(a);
    world.finish_because(failing, FAILED);
    assert_eq!(world.holding(), [b, c, d]);
    [b, c, d].into_iter().for_each(|run| world.finish(run));
    end(world);
}

#[test]
fn what_is_needed_may_end_before_the_piece_that_needs_it_is_claimed() {
    let mut world = World::quiet(Limits::default());
    let (a, b) = pair(&mut world, OnNeedFailed::Skip);
    let (fails, c) = pair(&mut world, OnNeedFailed::Skip);
    world.die(std::time::Duration::ZERO);
    for run in [a, fails] {
        world.unclaimed.retain(|unclaimed| *unclaimed != run);
        world.step(Input::Claimed { run, asked: None });
    }
    world.finish(a);
    world.finish_because(fails, FAILED);
    assert_eq!(world.holding(), [], "their owner has not said what to start");
    while world.claim() {}
    assert_eq!(world.holding(), [b]);
    assert_eq!(world.status(c), Some(RunStatus::Cancelled));
    world.finish(b);
    end(world);
}

#[test]
fn with_the_piece_that_failed_what_needs_it_runs_again() {
    let mut world = World::quiet(Limits::default());
    let (a, _) = pair(&mut world, OnNeedFailed::Skip);
    world.finish_because(a, FAILED);
    world.close();
    let again = PiecesAgain { failed: true, ..PiecesAgain::default() };
    let wish = GoOn { again, ..GoOn::default() };
    world.reopen(wish, std::time::Duration::ZERO).expect("it goes on");
    while world.ask_again() {}
    let [a] = world.holding()[..] else { panic!("one runs, the other needs it") };
    world.finish(a);
    let [b] = world.holding()[..] else { panic!("its need is over") };
    assert_eq!(world.machine.answers_for(b)[0].1, world.id(a), "the answer of the newest run");
    world.finish(b);
    end(world);
}

/// Ends a run, and returns how its end stands in the record, and how that which needed it starts.
fn ahead_of_end(world: &mut World, run: RunIndex) -> (Option<u64>, Option<u64>) {
    world.actors.remove(&run);
    let mut effects = Vec::new();
    let ending = offshoot_model::Ending::of(Reason::Completed { exit_code: None });
    let finished = Input::Finished { run, outcome: Box::new(ending.into()) };
    world.machine.step(world.now, finished, &mut effects);
    let start = effects.iter().find_map(|effect| match effect {
        Effect::Start { ahead, .. } => Some(*ahead),
        _ => None,
    });
    let end = effects.iter().find_map(|effect| match effect {
        Effect::Record(event) if event.run == world.id(run) => Some(event.seq),
        _ => None,
    });
    (Some(end.expect("its end is recorded")), start.expect("its answer is all that was needed"))
}

#[test]
fn what_needs_an_answer_starts_ahead_of_the_record_of_it_where_both_may_repeat() {
    let mut world = World::one_slot();
    let (a, _) = pair(&mut world, OnNeedFailed::Skip);
    assert_eq!(ahead_of_end(&mut world, a).1, Some(0));

    // A run whose end must not be lost.
    let mut world = World::one_slot();
    let once = world.spawn_at_place(Origin::Agent);
    world.spawn_needing(&[once], OnNeedFailed::Skip);
    let (end, ahead) = ahead_of_end(&mut world, once);
    assert_eq!(ahead, end);

    // One that must not be started twice.
    let limits =
        Limits { max_concurrent: 1, on_interrupt: Some(OnInterrupt::Lost), ..Limits::default() };
    let mut world = World::quiet(limits);
    let (a, _) = pair(&mut world, OnNeedFailed::Skip);
    assert_eq!(ahead_of_end(&mut world, a).1, None);
}

#[test]
fn a_tree_needs_answers_until_the_last_run_that_needs_some_is_over() {
    let mut world = World::quiet(Limits::default());
    assert!(!world.machine.has_needs());
    let (a, b) = pair(&mut world, OnNeedFailed::Skip);
    assert!(world.machine.has_needs());
    world.finish(a);
    assert!(world.holding() == [b] && world.machine.has_needs(), "it reads the answer now");
    world.finish(b);
    assert!(!world.machine.has_needs());
    end(world);
}
