//! Runs that send the same long prompt first.

use std::sync::Arc;
use std::time::Duration;

use offshoot_audit::Audit;
use offshoot_model::{
    AgentId, ContentHash, ContextEntry, EventKind, Origin, Reason, RunStatus, SpawnRequest,
    ValueKind, VariableRef,
};
use offshoot_policy::RuntimeFacts;
use offshoot_runtime::RunEvent;

use super::super::{Input, RunIndex};
use super::agents::OVERLOADED;
use super::limits::Limits;
use super::world::World;

/// A tree of so many pieces with the same prompt.
fn world(pieces: usize) -> (World, Vec<RunIndex>) {
    limited(Limits::default(), pieces)
}

fn limited(limits: Limits, pieces: usize) -> (World, Vec<RunIndex>) {
    let mut world = World::quiet(Limits { long_prompts: true, ..limits });
    let runs = (0..pieces).map(|_| world.spawn_piece()).collect();
    (world, runs)
}

/// Returns what the record says of waits for first answers: the events, each with the run.
fn told(world: &World) -> Vec<(&'static str, RunIndex)> {
    let of = |kind: &EventKind| match kind {
        EventKind::Priming { run, tokens: 9_000 } => Some(("priming", *run)),
        EventKind::Primed { run } => Some(("primed", *run)),
        _ => None,
    };
    let all = world.record.iter().filter_map(|event| of(&event.kind));
    all.map(|(what, run)| (what, world.machine.find(run).expect("it is here"))).collect()
}

/// Ends all that is left, and checks that the record proves what was done.
fn end(mut world: World) {
    while world.machine.live() > 1 {
        match world.holding().first() {
            Some(&run) => world.finish(run),
            None => world.advance(60_000),
        }
    }
    assert_eq!(Audit::of(&world.ledger.events).breaches, []);
}

#[test]
fn one_begins_and_the_others_when_it_is_answered() {
    let (mut world, runs) = world(5);
    assert_eq!(world.holding(), runs[..1]);
    world.says_that_it_started(runs[0]);
    world.progress(runs[0]);
    assert_eq!(world.holding(), runs[..1], "a line of its program is no answer");
    world.tells(runs[0], RunEvent::Answers);
    assert_eq!(world.holding(), runs);
    assert_eq!(told(&world), [("priming", runs[0]), ("primed", runs[0])]);
    // A prompt that was read a moment ago is read from the cache.
    let later = world.spawn_piece();
    assert!(world.holding().contains(&later));
    end(world);
}

#[test]
fn a_use_of_tokens_and_a_child_are_answers() {
    let (mut world, runs) = world(3);
    world.use_tokens(runs[0], 5);
    assert_eq!(world.holding(), runs);
    end(world);
    let (mut world, runs) = self::world(3);
    let child = world.ask(runs[0]).expect("it is admitted");
    assert_eq!(world.holding().len(), 4, "{child:?} too: its prompt is the same");
    end(world);
}

#[test]
fn where_no_other_waits_nothing_is_told() {
    let (mut world, runs) = world(1);
    world.tells(runs[0], RunEvent::Answers);
    assert_eq!(told(&world), []);
    end(world);
}

#[test]
fn one_that_fails_before_it_is_answered_leaves_it_to_the_next() {
    let (mut world, runs) = world(3);
    world.finish_because(runs[0], OVERLOADED);
    assert_eq!(world.status(runs[0]), Some(RunStatus::Failed));
    assert_eq!(world.holding(), [runs[1]]);
    let first = [("priming", runs[0]), ("primed", runs[0]), ("priming", runs[1])];
    assert_eq!(told(&world), first);
    world.finish(runs[1]);
    assert_eq!(world.holding(), [runs[2]]);
    end(world);
}

#[test]
fn an_attempt_that_comes_again_leaves_it_to_the_next() {
    let limits = Limits { retries: 1, resumes: true, ..Limits::default() };
    let (mut world, runs) = limited(limits, 3);
    world.finish_because(runs[0], OVERLOADED);
    assert_eq!(world.holding(), [runs[1]]);
    world.tells(runs[1], RunEvent::Answers);
    assert_eq!(world.holding(), runs[1..]);
    world.tells(runs[2], RunEvent::Answers);
    world.advance(2_400);
    assert!(world.holding().contains(&runs[0]), "the service answers as many as may work");
    end(world);
}

#[test]
fn one_that_is_not_answered_is_waited_for_half_a_minute() {
    let (mut world, runs) = world(3);
    world.advance(29_999);
    assert_eq!(world.holding(), runs[..1]);
    world.advance(1);
    assert_eq!(world.holding(), runs, "and the others do not wait for each other");
    end(world);
}

#[test]
fn what_is_not_asked_for_in_five_minutes_is_no_longer_in_a_cache() {
    let (mut world, runs) = world(1);
    world.tells(runs[0], RunEvent::Answers);
    world.advance(5 * 60_000);
    let (second, third) = (world.spawn_piece(), world.spawn_piece());
    assert_eq!(world.holding(), [runs[0], second]);
    // Any answer to the same prompt says that it was read.
    world.tells(runs[0], RunEvent::Answers);
    assert_eq!(world.holding(), [runs[0], second, third]);
    end(world);
}

#[test]
fn runs_with_another_prompt_pass_those_that_wait() {
    let (mut world, runs) = world(2);
    let other = RuntimeFacts { own_prompt: None, ..(*world.other_facts).clone() };
    world.facts = Arc::new(other);
    let short = world.spawn_piece();
    assert_eq!(world.holding(), [runs[0], short]);
    world.finish(runs[0]);
    assert_eq!(world.holding(), [runs[1], short]);
    end(world);
}

#[test]
fn those_that_wait_keep_their_order_and_may_be_cancelled() {
    let (mut world, runs) = limited(Limits { max_concurrent: 2, ..Limits::default() }, 4);
    let cancelled = super::super::Reach::Subtree;
    world.cancel(runs[1], cancelled, offshoot_model::CancelledBy::Operator);
    assert_eq!(world.status(runs[1]), Some(RunStatus::Cancelled));
    world.tells(runs[0], RunEvent::Answers);
    assert_eq!(world.holding(), [runs[0], runs[2]]);
    world.finish(runs[0]);
    assert_eq!(world.holding(), runs[2..]);
    end(world);
}

#[test]
fn another_supervisor_begins_anew_with_one() {
    let limits = Limits { resumes: true, ..Limits::default() };
    let (mut world, runs) = limited(limits, 3);
    assert_eq!(told(&world), [("priming", runs[0])]);
    world.crash();
    while world.claim() {}
    assert_eq!(world.holding().len(), 1);
    let first = world.holding()[0];
    world.tells(first, RunEvent::Answers);
    assert_eq!(world.holding().len(), 3);
    end(world);
}

#[test]
fn a_wall_that_the_first_one_meets_holds_the_others() {
    let limits = Limits { resumes: true, ..Limits::default() };
    let (mut world, runs) = limited(limits, 3);
    let until = world.now.plus(Duration::from_secs(60));
    world.meet_wall(runs[0], until);
    assert_eq!(world.holding(), []);
    world.advance(72_000);
    let [probe] = world.holding()[..] else { panic!("one probe at the reset") };
    world.tells(probe, RunEvent::Answers);
    assert_eq!(world.holding().len(), 2, "two after a reset");
    end(world);
}

#[test]
fn the_end_of_the_tree_waits_for_none() {
    let (mut world, runs) = world(3);
    world.stop_all(true);
    world.finish_because(runs[0], Reason::Signal { signal: 9 });
    assert_eq!(world.machine.live(), 1, "the root alone");
}

#[test]
fn a_run_that_stands_in_no_line_waits_for_no_first_answer() {
    let (mut world, runs) = world(1);
    let request = SpawnRequest { no_queue: true, ..SpawnRequest::default() };
    let at_once = world.spawn(RunIndex::ROOT, Origin::Piece, request).expect("a slot is free");
    assert_eq!(world.holding(), [runs[0], at_once]);
    end(world);
}

fn value(text: &str) -> ContextEntry {
    let (hash, size) = (ContentHash::of(text.as_bytes()), text.len() as u64);
    let value = VariableRef { hash, size, kind: ValueKind::Text };
    ContextEntry { name: "notes".into(), value }
}

/// A run is told who has given it values, and so its prompt is the same as that of runs of its parent alone.
#[test]
fn runs_below_different_parents_wait_for_each_other_unless_they_have_values() {
    for (context, at_once) in [(vec![], 1), (vec![value("one")], 2)] {
        let (mut world, parents) = world(2);
        world.tells(parents[0], RunEvent::Answers);
        assert_eq!(world.holding(), parents);
        Arc::make_mut(&mut world.facts).inline_bytes = 100;
        for &parent in &parents {
            let agent = AgentId::parse("a").ok();
            let request =
                SpawnRequest { agent, context: context.clone(), ..SpawnRequest::default() };
            world.spawn(parent, Origin::Agent, request).expect("it is admitted");
        }
        assert_eq!(world.holding().len(), 2 + at_once, "{context:?}");
        end(world);
    }
}

/// The record of a piece does not say which values it was given.
#[test]
fn pieces_with_values_of_their_own_wait_for_none_under_the_next_supervisor_either() {
    let (mut world, _) = world(0);
    Arc::make_mut(&mut world.facts).inline_bytes = 100;
    let with_value =
        |text: &str| SpawnRequest { context: vec![value(text)], ..SpawnRequest::default() };
    let requests = ["one", "other"].map(with_value);
    let runs = requests.clone().map(|request| {
        world.spawn(RunIndex::ROOT, Origin::Piece, request).expect("it is admitted")
    });
    assert_eq!(world.holding(), runs);
    world.die(Duration::ZERO);
    world.unclaimed.clear();
    for (run, request) in runs.into_iter().zip(requests) {
        let asked = Some(Box::new((request, Arc::clone(&world.facts))));
        world.step(Input::Claimed { run, asked });
    }
    assert_eq!(world.holding(), runs);
    end(world);
}

#[test]
fn runs_of_different_models_wait_for_none_under_the_next_supervisor_either() {
    let (mut world, _) = world(0);
    let runs = ["small", "large"].map(|model| {
        let request = SpawnRequest { model: Some(model.to_owned()), ..SpawnRequest::default() };
        world.spawn(RunIndex::ROOT, Origin::Piece, request).expect("it is admitted")
    });
    assert_eq!(world.holding(), runs);
    world.crash();
    assert_eq!(world.holding(), runs);
    end(world);
}
