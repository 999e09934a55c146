//! The machine against a world made of a seed: agents that spawn, wait, poll, fail and hang, and a clock that jumps.

mod account_circles;
mod account_lines;
mod account_slots;
mod acts;
mod admissions;
mod agents;
mod alive;
mod backoffs;
mod budgets;
mod cleanup;
mod crash;
mod host_memory;
mod host_slots;
mod invariants;
mod kept;
mod limits;
mod memory;
mod needs;
mod observations;
mod pace;
mod pool_requests;
mod priming;
mod probe_turns;
mod reachable;
mod recalls;
mod reopened;
mod repeats;
mod requests;
mod retries;
mod seed;
mod short_pools;
mod stalls;
mod stops;
mod subtrees;
mod told_walls;
mod turns;
mod two_trees;
mod used;
mod waits;
mod walls;
mod world;

use std::collections::BTreeMap;
use std::time::Duration;

use offshoot_audit::{Audit, Rule};
use offshoot_model::{CancelledBy, Event, EventKind, Reason, RunStatus};
use offshoot_runtime::RunEvent;
use offshoot_test_support::soak;

use super::{Effect, Input, Reach};
use agents::Behaviour;
use limits::Limits;
use world::World;

/// One tree per seed. A seed that ever failed is added here and stays.
const REGRESSIONS: &[u64] = &[
    // The probe of a breaker waited for a child of the same agent, which the breaker held back.
    5_853,
    // The probe of a breaker had waited, and failed: the engine went by it, and the audit did not.
    3_040,
    // The audit forgot the faults of before a crash, which the engine knows from the record.
    14_542,
    // A piece that stood in line drew from its pool for what its child was charged after a crash, and the others waited for its end.
    17_559,
    // A request that was answered shows that its run has what its last turn brought.
    16_110,
    // Memory was short for a piece that waited for its budget afterwards, and what stood in the line of its account waited for memory.
    WITH_ACCOUNTS + 76,
];

/// Tests try so many trees. `cargo xtask soak` tries ten times as many.
const TREES: u64 = 1_000;

/// The trees of seeds from this one on share slots of accounts with others. As many of the others as ever prove what has nothing to do with that.
const WITH_ACCOUNTS: u64 = 1 << 40;

/// The number of trees that a soak asks for.
fn wanted() -> u64 {
    soak::asked("OFFSHOOT_TEST_TREES", TREES)
}

#[test]
fn a_thousand_trees() {
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    let with_accounts = (0..wanted() / 4).map(|seed| WITH_ACCOUNTS + seed);
    for seed in REGRESSIONS.iter().copied().chain(0..wanted()).chain(with_accounts) {
        let mut world = World::random(seed);
        world.run_to_the_end();
        assert_proven(&world, seed);
        for (&what, &times) in &world.ledger.seen {
            *seen.entry(what).or_default() += times;
        }
    }
    // A world in which some of it never happens would prove nothing about it.
    for what in [
        "refused",
        "waiting",
        "returned",
        "in debt",
        "held back",
        "out of budget",
        "budget_drawn",
        "drawn while it runs",
        "stopping",
        "reopened",
        "resumed",
        "retried",
        "tried again by choice",
        "fell back after an attempt",
        "fell back in line",
        "request_held",
        "lost",
        "stall_lent",
        "held up below one",
        "deadline of a part",
        "wait dropped",
        "answer dropped",
        "stopping at a crash",
        "queued orphan at a crash",
        "deadline at a crash",
        "early answer beside a refusal",
        "turn with results",
        "panic after a report",
        "late",
        "turn_ended",
        "letter",
        "delivered",
        "undelivered",
        "redelivered",
        "not taken",
        "needed",
        "skipped",
        "ran without",
        "parked",
        "memory_short",
        "memory_enough",
        "pool_short",
        "pool_enough",
        "host_full",
        "host_free",
        "account_bound",
        "account_full",
        "account_free",
        "started with a slot of its account",
        "measured runs",
        "told of a wall",
        "told of pressure",
        "backs_off",
        "answered",
        "unparked",
        "paced",
        "priming",
        "primed",
        "stands at a wall",
        "started after its wall",
        "probe",
        "turn with an answer",
        "turn without an answer",
        "another tree was answered",
        "probe met the wall again",
        "went on after two walls",
        "failed at a wall",
        "failed behind a wall",
        "parked for too long",
        "request_reserved",
        "request_settled",
        "request waits",
        "request waited, and left",
        "request refused",
        "request lost",
        "died at a wall",
        "completed",
        "failed",
        "timed_out",
        "cancelled",
    ] {
        let times = seen.get(what).copied().unwrap_or(0);
        assert!(times > 50, "`{what}` happened {times} times in a thousand trees");
    }
    let what = "a simulated tree, with kills, walls, pressure, other trees and a clock that jumps";
    soak::write_down(what, wanted(), wanted());
}

#[test]
fn many_runs_at_once_keep_the_pace_of_their_account() {
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 0..wanted() / 5 {
        let mut world = World::wide(seed);
        world.run_to_the_end();
        assert_proven(&world, seed);
        for (&what, &times) in &world.ledger.seen {
            *seen.entry(what).or_default() += times;
        }
    }
    for what in ["paced", "pace grows", "pace ends", "started at a pace", "reopened", "unparked"] {
        let times = seen.get(what).copied().unwrap_or(0);
        assert!(times > 50, "`{what}` happened {times} times in two hundred trees");
    }
}

#[test]
fn a_clock_that_is_set_back_an_hour_breaks_nothing() {
    let mut set_back = 0;
    for seed in 0..wanted() / 5 {
        let mut world = World::random(seed);
        // In the middle of it, by a resume on another day or machine.
        for _ in 0..10 {
            world.live_a_little();
        }
        world.set_back(Duration::from_secs(3600));
        world.run_to_the_end();
        assert_proven(&world, seed);
        set_back += Audit::of(&world.ledger.events).clock_set_back;
    }
    assert!(set_back > 100, "it was set back in {set_back} trees");
}

/// A tree that has lost its supervisor is ended at any moment of its life: nothing of it starts, and the record is proven.
#[test]
fn what_a_supervisor_has_left_is_cancelled_at_once() {
    let mut alive = 0;
    for seed in 0..wanted() / 2 {
        let mut world = World::random(seed);
        for _ in 0..seed % 97 {
            world.live_a_little();
        }
        if world.machine.live() == 0 {
            continue;
        }
        let before = world.ledger.events.len();
        world.die_and_cancel(Duration::from_millis(seed % 7_000));
        world.assert_ended();
        assert_proven(&world, seed);
        let news = &world.ledger.events[before..];
        let ended = |event: &&Event| matches!(event.kind, EventKind::Ended(_));
        let starts =
            |event: &Event| matches!(event.kind, EventKind::Starting | EventKind::Resumed { .. });
        assert!(!news.iter().any(starts), "seed {seed}: something starts");
        alive += news.iter().filter(ended).count();
    }
    assert!(alive > 500, "{alive} runs were alive");
}

/// The record of a tree is enough to count again what the machine has counted.
fn assert_proven(world: &World, seed: u64) {
    let found = Audit::of(&world.ledger.events);
    assert_eq!(found.breaches, [], "seed {seed}");
    assert_eq!(found.peak_concurrency as usize, world.ledger.most_at_once, "seed {seed}");
    assert_eq!(found.deepest, world.ledger.deepest);
    assert_eq!((found.unfinished, found.not_recorded.len()), (0, 0));
}

#[test]
fn the_record_proves_it() {
    // Slots given to two, and recorded for one: the machine would not do it, and the record shows it.
    let mut world = World::one_slot();
    let (first, second) = (world.spawn_piece(), world.spawn_piece());
    world.finish(first);
    world.finish(second);
    world.close();
    assert_proven(&world, 13);
    let events = &mut world.ledger.events;
    let starts = |event: &Event| matches!(event.kind, EventKind::Starting);
    let late = events.iter().rposition(starts).expect("the second starts");
    let start = events.remove(late);
    let ends = |event: &Event| matches!(event.kind, EventKind::Ended(_));
    let early = events.iter().position(ends).expect("the first ends");
    events.insert(early, start);
    for (seq, event) in (1..).zip(&mut *events) {
        event.seq = seq;
    }
    let found = Audit::of(&*events);
    let rules: Vec<Rule> = found.breaches.iter().map(|breach| breach.rule).collect();
    assert_eq!(rules, [Rule::Concurrency]);
    assert_eq!(found.peak_concurrency, 2);
}

#[test]
fn one_tree_one_supervisor() {
    // Three levels ask at once, each through its own session; the count is one for all of them.
    let mut world = World::quiet(Limits { max_spawns: 3, ..Limits::default() });
    let (piece, child) = world.family();
    let grandchild = world.child_of(child);
    world.child_of(grandchild);
    for caller in [piece, child, grandchild] {
        assert_eq!(world.spawn_from(caller), None, "no caller has a count of its own");
    }
}

#[test]
fn a_waiting_parent_lends_its_slot() {
    let limits = Limits { max_concurrent: 1, max_depth: 10, ..Limits::default() };
    let mut world = World::new(1, limits, Behaviour::Chain(10));
    world.run_to_the_end();
    assert_eq!(world.ledger.deepest, 10);
    assert_eq!(
        world.ledger.count(RunStatus::Completed),
        11,
        "ten levels below the root, and the root"
    );
    assert_eq!(world.ledger.most_holding, 1);
}

#[test]
fn cancel_goes_down_results_go_up() {
    let mut world = World::quiet(Limits { max_concurrent: 8, ..Limits::default() });
    let parent = world.spawn_piece();
    let sibling = world.spawn_piece();
    let child = world.child_of(parent);
    let grandchild = world.child_of(child);
    world.cancel(parent, Reach::Subtree, CancelledBy::Operator);
    assert_eq!(world.asked_to_stop(), [grandchild, child, parent], "leaves first");
    for run in [grandchild, child, parent] {
        world.finish_because(run, Reason::Signal { signal: 15 });
        assert_eq!(world.status(run), Some(RunStatus::Cancelled));
    }
    assert_eq!(world.holding(), [sibling], "one that was not below it goes on");
}

#[test]
fn only_spares_the_children() {
    let mut world = World::quiet(Limits::default());
    let (parent, child) = world.family();
    world.cancel(parent, Reach::Only, CancelledBy::Operator);
    assert_eq!(world.asked_to_stop(), [parent]);
    world.finish(parent);
    assert_eq!(world.holding(), [child], "by default children finish");
}

#[test]
fn what_did_its_work_before_it_heard_the_request_is_a_success() {
    let mut world = World::quiet(Limits::default());
    let run = world.spawn_piece();
    world.cancel(run, Reach::Subtree, CancelledBy::Operator);
    world.finish(run);
    assert_eq!(world.status(run), Some(RunStatus::Completed));
}

#[test]
fn soft_then_firm() {
    let mut world =
        World::quiet(Limits { run_timeout_seconds: 10, grace_seconds: 5, ..Limits::default() });
    let run = world.spawn_piece();
    world.advance(9_999);
    assert!(world.asked_to_stop().is_empty());
    world.advance(1);
    assert_eq!(world.asked_to_stop(), [run]);
    assert_eq!(world.stops, [(run, false)]);
    world.stop_all(true);
    assert_eq!(world.stops.last(), Some(&(run, true)), "the second request is the firm one");
    world.finish_because(run, Reason::Signal { signal: 9 });
    assert_eq!(world.status(run), Some(RunStatus::TimedOut), "the first reason stands");
}

#[test]
fn tools_that_are_used_are_kept_as_often_as_a_record_should_grow() {
    let mut world = World::quiet(Limits::default());
    let run = world.spawn_piece();
    let kept = |world: &World| {
        world.record.iter().filter(|event| event.kind.name() == "tool_used").count()
    };
    (0..150).for_each(|_| world.use_tool(run));
    assert_eq!(kept(&world), 100, "the rest is progress");
    world.report(run);
    let last = world.record.last().map(|event| event.kind.name());
    assert_eq!(last, Some("reported"), "a report has an allowance of its own");
    world.advance(2_000);
    (0..9).for_each(|_| world.use_tool(run));
    assert_eq!(kept(&world), 102);
}

#[test]
fn a_line_of_progress_is_shown_and_not_kept() {
    let mut world = World::quiet(Limits::default());
    let run = world.spawn_piece();
    let event = RunEvent::Progress("still here".into());
    let mut effects = Vec::new();
    world.machine.step(world.now, Input::RunEvent { run, attempt: 1, event }, &mut effects);
    let [Effect::Show(event)] = &effects[..] else { panic!("one effect: {effects:?}") };
    assert_eq!(event.run, world.id(run));
    assert_eq!(event.kind, EventKind::Progress { text: "still here".into() });
}

#[test]
fn any_sign_of_life_puts_idleness_off() {
    let mut world = World::quiet(Limits { idle_timeout_seconds: 10, ..Limits::default() });
    let run = world.spawn_piece();
    world.advance(8_000);
    world.progress(run);
    world.advance(9_999);
    assert!(world.asked_to_stop().is_empty());
    world.advance(1);
    assert_eq!(world.asked_to_stop(), [run]);
}

#[test]
fn a_sign_that_was_only_marked_counts_from_its_moment() {
    let mut world = World::quiet(Limits { idle_timeout_seconds: 10, ..Limits::default() });
    let run = world.spawn_piece();
    let at = world.now.plus(Duration::from_secs(4));
    assert!(world.machine.wants_signs(at).is_empty(), "nothing is judged before its time");
    world.now = world.now.plus(Duration::from_secs(10));
    assert_eq!(world.machine.wants_signs(world.now), [run]);
    world.step(Input::Sign { run, at });
    world.advance(3_999);
    assert!(world.asked_to_stop().is_empty());
    world.advance(1);
    assert_eq!(world.asked_to_stop(), [run]);
}

#[test]
fn refusals_in_a_loop_are_counted_and_recorded_with_the_next_event_and_the_end() {
    let mut world = World::quiet(Limits { max_spawns: 1, resumes: true, ..Limits::default() });
    let run = world.spawn_piece();
    let child = world.child_of(run);
    let ask = |world: &mut World, times| {
        (0..times).for_each(|_| assert!(world.ask(run).is_err(), "no more is"));
    };
    ask(&mut world, 1000);
    let refused = |world: &World| {
        let of = |event: &Event| match &event.kind {
            EventKind::Refused { times, .. } => Some(*times),
            _ => None,
        };
        let all: Vec<_> = world.ledger.events.iter().filter_map(of).collect();
        (all.len(), all.iter().map(|times| times.unwrap_or(1)).sum::<u64>())
    };
    assert_eq!(refused(&world), (100, 100), "the others are on record with the next event");
    world.use_tokens(run, 1);
    assert_eq!(refused(&world), (101, 1000));
    world.crash();
    ask(&mut world, 500);
    world.finish(run);
    assert_eq!(refused(&world), (102, 1500), "and with the end, a new supervisor or not");
    world.finish(child);
    world.close();
    assert_proven(&world, 14);
    assert_eq!(Audit::of(&world.ledger.events).refusals, 1500);
}

#[test]
fn a_pause_keeps_what_runs_and_starts_nothing() {
    let mut world = World::one_slot();
    let first = world.spawn_piece();
    let second = world.spawn_piece();
    world.pause(true);
    assert_eq!(world.holding(), [first]);
    world.finish(first);
    assert!(world.holding().is_empty());
    world.pause(false);
    assert_eq!(world.holding(), [second]);
}

#[test]
fn a_deadline_ends_the_whole_tree() {
    let mut world =
        World::quiet(Limits { max_concurrent: 1, deadline_seconds: 60, ..Limits::default() });
    let running = world.spawn_piece();
    let queued = world.spawn_piece();
    world.advance(60_000);
    assert_eq!(world.status(queued), Some(RunStatus::TimedOut), "it never starts");
    world.finish_because(running, Reason::Signal { signal: 15 });
    assert_eq!(world.status(running), Some(RunStatus::TimedOut));
}

#[test]
fn three_identities_apart() {
    let mut world = World::quiet(Limits::default());
    let (parent, child) = world.family();
    let about = world.ledger.admitted(world.id(child));
    assert_eq!(about.parent, Some(world.id(parent)));
    assert_ne!(
        world.ledger.root.run(),
        world.id(parent),
        "the root, the agent and the parent stand apart"
    );
    assert_eq!(about.agent.as_str(), "main");
}
