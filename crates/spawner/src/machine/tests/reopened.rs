//! Trees that were over, with which the operator goes on.

use std::collections::BTreeMap;
use std::time::Duration;

use offshoot_audit::Audit;
use offshoot_model::{
    BudgetGrant, CancelledBy, ContentHash, EventKind, MicroUsd, Origin, PiecesAgain, Reason,
    RunStatus, SpawnRequest,
};
use offshoot_policy::budget::{Balance, Unit};

use super::super::{NewLimits, NotReopened, Reach, RunIndex, Unanswered};
use super::crash::GoOn;
use super::limits::Limits;
use super::world::World;
use super::{assert_proven, wanted};

const AT_ONCE: Duration = Duration::ZERO;

fn again(failed: bool, cancelled: bool) -> GoOn {
    let again = PiecesAgain { failed, cancelled, only: None };
    GoOn { again, ..GoOn::default() }
}

/// The same for those that were cancelled, with these limits.
fn within(limits: NewLimits) -> GoOn {
    GoOn { limits, ..again(false, true) }
}

fn killed() -> Reason {
    Reason::Signal { signal: 15 }
}

/// Stops all that runs, as after Ctrl-C, and ends the root.
fn stop(world: &mut World) {
    world.stop_all(false);
    end_all(world, killed());
}

fn end_all(world: &mut World, reason: Reason) {
    while let Some(&run) = world.holding().first() {
        world.finish_because(run, reason.clone());
    }
    world.close();
}

/// The number of starts on record.
fn starts(world: &World) -> usize {
    world.record.iter().filter(|event| event.kind == EventKind::Starting).count()
}

fn ended(world: &World, status: RunStatus) -> usize {
    world.ledger.count(status)
}

#[test]
fn a_tree_that_was_stopped_goes_on_with_what_is_missing() {
    let mut world = World::quiet(Limits { max_concurrent: 2, ..Limits::default() });
    (0..30).for_each(|_| _ = world.spawn_piece());
    for _ in 0..3 {
        let run = world.holding()[0];
        world.finish(run);
    }
    // Stopped twice, and killed in between, with some of the new runs admitted and some not.
    stop(&mut world);
    assert_eq!(world.status(RunIndex::ROOT), Some(RunStatus::Cancelled));
    world.reopen(again(false, true), AT_ONCE).expect("it was stopped");
    assert_eq!(world.again.len(), 27);
    (0..9).for_each(|_| assert!(world.ask_again()));
    let run = world.holding()[0];
    world.finish(run);
    world.crash();
    assert_eq!(world.again.len(), 18, "what the choice was stands on record");
    world.ask_again();
    stop(&mut world);
    world.reopen(again(false, true), Duration::from_secs(9)).expect("it was stopped again");
    let before = starts(&world);
    assert_eq!(world.again.len(), 26);
    while world.ask_again() {}
    end_all(&mut world, Reason::Completed { exit_code: None });
    assert_eq!(starts(&world) - before, 26, "four had answered");
    assert_eq!(ended(&world, RunStatus::Completed), 31, "thirty, and the root");
    world.assert_ended();
    assert_proven(&world, 0);
    let answered = |run: &RunIndex| world.status(*run) == Some(RunStatus::Completed);
    assert!(world.places.values().all(answered), "each place has its answer");
    let refused = world.reopen(again(false, true), AT_ONCE);
    assert_eq!(refused, Ok(()), "it can be reopened, and nothing of it would run");
    assert!(world.again.is_empty());
}

/// Ends pieces in many ways, and tells which of them run again.
#[test]
fn each_way_to_end_runs_again_by_one_choice() {
    let check = |reason: Reason, by: Option<CancelledBy>, failed: bool, cancelled: bool| {
        for (wish, expected) in [
            (again(true, false), failed),
            (again(false, true), cancelled),
            (again(true, true), failed || cancelled),
        ] {
            let mut world = World::quiet(Limits::default());
            let (piece, other) = (world.spawn_piece(), world.spawn_piece());
            if let Some(by) = by {
                world.cancel(piece, Reach::Subtree, by);
            }
            world.finish_because(piece, reason.clone());
            world.finish(other);
            world.close();
            world.reopen(wish, AT_ONCE).expect("the root holds pieces");
            let runs_again = world.again.values().any(|run| *run == world.id(piece));
            assert_eq!(runs_again, expected, "{reason} {by:?}");
            assert!(!world.again.values().any(|run| *run == world.id(other)), "it has answered");
        }
    };
    check(Reason::Completed { exit_code: None }, None, false, false);
    check(Reason::ExitCode { code: 1 }, None, true, false);
    check(Reason::Timeout { seconds: 1 }, None, true, false);
    check(Reason::Budget { unit: "tokens".into(), request: None }, None, true, false);
    check(Reason::Interrupted, None, true, false);
    check(Reason::NotRecorded { message: String::new() }, None, true, true);
    check(killed(), Some(CancelledBy::Operator), false, true);
    check(killed(), Some(CancelledBy::Budget), false, true);
    check(killed(), Some(CancelledBy::MaxFail), true, false);
    check(killed(), Some(CancelledBy::EarlyAnswer), false, false);
}

#[test]
fn a_run_of_a_merge_that_was_not_paid_for_runs_again_whatever_is_chosen() {
    let check = |reason: Reason, by: Option<CancelledBy>, expected: usize| {
        let mut world = World::quiet(Limits::default());
        let merges = Some(ContentHash::of(b"all that it was asked"));
        let request = SpawnRequest { merges, ..SpawnRequest::default() };
        let run = world.spawn(RunIndex::ROOT, Origin::Piece, request).expect("it is admitted");
        if let Some(by) = by {
            world.cancel(run, Reach::Subtree, by);
        }
        world.finish_because(run, reason.clone());
        world.close();
        world.reopen(again(false, false), AT_ONCE).expect("the root holds pieces");
        assert_eq!(world.again.len(), expected, "{reason} {by:?}");
    };
    check(Reason::Budget { unit: "tokens".into(), request: None }, None, 1);
    check(killed(), Some(CancelledBy::Budget), 1);
    check(Reason::ExitCode { code: 1 }, None, 0);
    check(Reason::Completed { exit_code: None }, None, 0);
}

#[test]
fn what_would_run_again_and_what_stays_is_counted() {
    let mut world = World::quiet(Limits::default());
    let pieces = [(); 4].map(|()| world.spawn_piece());
    let place = |world: &World, at: usize| {
        let found = world.places.iter().find(|(_, run)| **run == pieces[at]);
        *found.expect("it is a piece").0
    };
    let places = [0, 1, 2, 3].map(|at| place(&world, at));
    world.finish(pieces[0]);
    world.finish_because(pieces[1], Reason::ExitCode { code: 1 });
    world.finish_because(pieces[2], Reason::ExitCode { code: 1 });
    let recall = world.read_back();
    assert_eq!((recall.is_over(), recall.pieces()), (false, 4));
    world.cancel(pieces[3], Reach::Subtree, CancelledBy::Operator);
    world.finish_because(pieces[3], killed());
    world.close();
    let check = |failed, cancelled, expected: Unanswered, staying: &[(u32, bool)]| {
        let mut recall = world.read_back();
        recall.go_on(again(failed, cancelled).again).expect("it is over");
        assert_eq!(recall.unanswered(), expected);
        let mut found = recall.staying();
        found.sort_unstable();
        assert_eq!(found, staying);
        assert_eq!((recall.is_over(), recall.pieces(), recall.only()), (true, 4, None));
        assert_eq!(recall.last_at(), world.now);
    };
    let [answered, one, other, stopped] = places;
    let (answered, stopped) = ((answered, true), (stopped, false));
    let failed = Unanswered { again: 2, failed: 0, cancelled: 1 };
    check(true, false, failed, &[answered, stopped]);
    let cancelled = Unanswered { again: 1, failed: 2, cancelled: 0 };
    check(false, true, cancelled, &[answered, (one, false), (other, false)]);
    let neither = Unanswered { again: 0, failed: 2, cancelled: 1 };
    check(false, false, neither, &[answered, (one, false), (other, false), stopped]);
    let mut recall = world.read_back();
    let only = Some("label".into());
    let again = PiecesAgain { failed: true, cancelled: true, only: only.clone() };
    recall.go_on(again).expect("it is over");
    assert_eq!(recall.only(), only.as_ref());
    assert_eq!(recall.unanswered(), neither, "none of them has this label");
}

#[test]
fn a_reopened_tree_gets_what_it_is_given_and_nothing_else() {
    for (given, expected) in [(None, None), (Some(3), Some((0, 2_000_000)))] {
        let mut world = World::quiet(Limits { budget_usd: Some(1), ..Limits::default() });
        let piece = world.spawn_piece();
        world.finish_because(piece, Reason::ExitCode { code: 1 });
        world.close();
        let usd = given.map(|usd: u64| MicroUsd::from_micros(usd * 1_000_000));
        let budget = BudgetGrant { tokens: None, usd };
        let limits = NewLimits { budget, ..NewLimits::default() };
        world.reopen(GoOn { limits, ..again(true, false) }, AT_ONCE).expect("some is left");
        let raised = world.record.iter().find_map(|event| match event.kind {
            EventKind::BudgetRaised { tokens, micro_usd } => Some((tokens, micro_usd)),
            _ => None,
        });
        assert_eq!(raised, expected);
    }
}

#[test]
fn a_tree_that_is_not_over_or_has_no_time_is_not_reopened() {
    let mut world = World::quiet(Limits { deadline_seconds: 60, ..Limits::default() });
    let piece = world.spawn_piece();
    assert_eq!(world.reopen(again(false, true), AT_ONCE), Err(NotReopened::Alive));
    world.advance(60_000);
    assert_eq!(world.asked_to_stop(), [piece]);
    world.finish_because(piece, killed());
    world.close();
    assert_eq!(world.reopen(again(false, true), AT_ONCE), Err(NotReopened::OutOfTime));
    let in_time = within(NewLimits { deadline_seconds: Some(20), ..NewLimits::default() });
    world.reopen(in_time, Duration::from_secs(1_000)).expect("it has time again");
    assert!(world.ask_again());
    world.advance(10_000);
    let piece = world.holding()[0];
    world.use_tokens(piece, 1);
    // A supervisor that takes it over counts on.
    world.crash();
    world.advance(9_999);
    assert!(world.asked_to_stop().is_empty());
    world.advance(1);
    assert_eq!(world.asked_to_stop().len(), 1);
    end_all(&mut world, killed());
    assert_eq!(world.status(RunIndex::ROOT), Some(RunStatus::TimedOut));
    assert_proven(&world, 0);
}

#[test]
fn pieces_that_run_again_have_the_time_that_is_given() {
    let limits = |run_timeout_seconds| Limits { run_timeout_seconds, ..Limits::default() };
    let mut world = World::quiet(limits(10));
    let piece = world.spawn_piece();
    world.advance(10_000);
    assert_eq!(world.asked_to_stop(), [piece]);
    end_all(&mut world, Reason::Timeout { seconds: 10 });
    world.config = limits(30).config();
    let longer = NewLimits { run_timeout_seconds: Some(30), ..NewLimits::default() };
    let wish = GoOn { limits: longer, ..again(true, false) };
    world.reopen(wish, AT_ONCE).expect("it was over");
    assert!(world.ask_again());
    world.advance(29_999);
    assert!(world.asked_to_stop().is_empty());
    // What was given holds for what is admitted under the next supervisor, too.
    world.crash();
    let second = world.spawn_piece();
    world.advance(1);
    world.advance(29_998);
    assert!(!world.asked_to_stop().contains(&second));
    world.advance(1);
    assert!(world.asked_to_stop().contains(&second));
    end_all(&mut world, Reason::Timeout { seconds: 30 });
    assert_proven(&world, 0);
}

#[test]
fn what_was_spent_stays_spent() {
    let given =
        |budget| GoOn { limits: NewLimits { budget, ..NewLimits::default() }, ..again(true, true) };
    let budget = |tokens| given(BudgetGrant { tokens: Some(tokens), usd: None });
    let mut world = World::quiet(Limits { budget_tokens: Some(1_000), ..Limits::default() });
    world.fan_out(2);
    let pieces = world.holding();
    world.use_tokens(pieces[0], 300);
    world.finish(pieces[0]);
    world.use_tokens(pieces[1], 100);
    stop(&mut world);
    let balance = |world: &World| {
        let root = world.id(RunIndex::ROOT);
        world.machine.books.ledger.balance(root, Unit::Tokens).expect("it has a budget")
    };
    assert_eq!(balance(&world).used, 400);
    world.reopen(again(false, true), AT_ONCE).expect("some is left");
    assert_eq!((balance(&world).used, balance(&world).free), (400, Some(600)));
    assert!(world.ask_again());
    let piece = world.holding()[0];
    world.raise(RunIndex::ROOT, 10).expect("it lives again");
    world.use_tokens(piece, 10_000);
    end_all(&mut world, killed());
    let used_up = |granted| NotReopened::OutOfBudget {
        unit: Unit::Tokens,
        granted,
        used: 10_400,
        each: None,
    };
    assert_eq!(world.reopen(again(true, true), AT_ONCE), Err(used_up(1_010)));
    assert_eq!(world.reopen(budget(10_400), AT_ONCE), Err(used_up(10_400)), "none would be left");
    let not_more = NotReopened::NotMore { unit: Unit::Tokens, granted: 1_010, given: 1_000 };
    assert_eq!(world.reopen(budget(1_000), AT_ONCE), Err(not_more));
    let usd = BudgetGrant { tokens: None, usd: Some(MicroUsd::from_micros(1)) };
    let refused = world.reopen(given(usd), AT_ONCE);
    assert!(matches!(refused, Err(NotReopened::OutOfBudget { .. })), "{refused:?}");
    world.reopen(budget(20_000), AT_ONCE).expect("there is more");
    assert_eq!(balance(&world).granted, Some(20_000));
    world.crash();
    assert!(world.ask_again());
    end_all(&mut world, Reason::Completed { exit_code: None });
    assert_proven(&world, 0);
    let account = &Audit::of(&world.ledger.events).budgets[0];
    assert_eq!(account.granted, 20_000);
}

#[test]
fn what_is_left_is_told_with_what_the_tree_is_given() {
    let mut world = World::quiet(Limits { budget_tokens: Some(1_000), ..Limits::default() });
    world.fan_out(3);
    let pieces = world.holding();
    world.use_tokens(pieces[0], 400);
    world.finish(pieces[0]);
    world.use_tokens(pieces[1], 10);
    let root = world.id(RunIndex::ROOT);
    let balance = |world: &World| {
        let balance = world.machine.books.ledger.balance(root, Unit::Tokens);
        vec![(Unit::Tokens, balance.expect("it has a budget"))]
    };
    let [(_, before)] = balance(&world)[..] else { panic!("there is one unit") };
    assert_eq!((before.used, before.overrun, before.reserved), (276, 134, 522));
    assert_eq!(world.read_back().budget(), balance(&world), "it lives, and is given nothing");
    world.use_tokens(pieces[1], 2_000);
    stop(&mut world);
    let mut recall = world.read_back();
    assert_eq!(recall.budget(), balance(&world));
    recall.go_on(PiecesAgain::default()).expect("it was stopped");
    let budget = BudgetGrant { tokens: Some(3_000), usd: None };
    recall.give(NewLimits { budget, ..NewLimits::default() }).expect("it is more");
    let [(_, before)] = balance(&world)[..] else { panic!("there is one unit") };
    assert_eq!((before.used + before.overrun, before.deficit), (2_410, 1_410));
    let (granted, free, deficit) = (Some(3_000), Some(590), 0);
    assert_eq!(recall.budget(), [(Unit::Tokens, Balance { granted, free, deficit, ..before })]);
}

/// A rest that pays for no piece opens none: the pool would refuse each of them.
#[test]
fn a_rest_below_the_last_pieces_needs_a_new_budget() {
    let limits =
        Limits { budget_tokens: Some(1_000), pools: true, max_concurrent: 1, ..Limits::default() };
    for (spent, left) in [([270, 270, 270], 190), ([200, 300, 230], 270)] {
        let mut world = World::quiet(limits);
        (0..9).for_each(|_| _ = world.spawn_piece());
        for tokens in spent {
            let piece = world.holding()[0];
            world.use_tokens(piece, tokens);
            world.finish(piece);
        }
        stop(&mut world);
        let granted = |tokens: u64| {
            let budget = BudgetGrant { tokens: Some(tokens), usd: None };
            within(NewLimits { budget, ..NewLimits::default() })
        };
        if left == 270 {
            world.reopen(again(false, true), AT_ONCE).expect("it pays for one more piece");
            continue;
        }
        let starts_before = starts(&world);
        let refused = |granted| NotReopened::OutOfBudget {
            unit: Unit::Tokens,
            granted,
            used: 810,
            each: Some(270),
        };
        assert_eq!(world.reopen(again(false, true), AT_ONCE), Err(refused(1_000)));
        assert_eq!(world.reopen(granted(1_079), AT_ONCE), Err(refused(1_079)));
        assert_eq!(starts(&world), starts_before);
        world.reopen(granted(1_080), AT_ONCE).expect("it pays for one more piece");
    }
}

#[test]
fn a_thousand_trees_are_stopped_and_go_on() {
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 0..wanted() {
        let mut world = World::random(seed);
        for _ in 0..world.seed.below(30) {
            world.live_a_little();
        }
        if world.seed.one_in(2) {
            world.stop_all(false);
        }
        world.run_to_the_end();
        for _ in 0..1 + world.seed.below(3) {
            let dead = Duration::from_millis(world.seed.below(100_000));
            let mut wish = again(world.seed.one_in(2), world.seed.one_in(2));
            while let Err(refused) = world.reopen(wish.clone(), dead) {
                match refused {
                    NotReopened::OutOfTime => wish.limits.deadline_seconds = Some(30),
                    NotReopened::OutOfBudget { granted, .. } => {
                        wish.limits.budget.tokens = Some(2 * granted + 1_000);
                    }
                    other => panic!("seed {seed}: {other}"),
                }
            }
            if world.seed.one_in(3) {
                for _ in 0..world.seed.below(10) {
                    world.live_a_little();
                }
                world.stop_all(false);
            }
            world.run_to_the_end();
        }
        assert_proven(&world, seed);
        for (&what, &times) in &world.ledger.seen {
            *seen.entry(what).or_default() += times;
        }
    }
    for what in ["root_reopened", "runs again", "reopened", "out of budget", "budget_raised"] {
        let times = seen.get(what).copied().unwrap_or(0);
        assert!(times > 20, "`{what}` happened {times} times in a thousand trees");
    }
}

#[test]
fn a_refusal_to_go_on_says_what_was_granted_and_used() {
    let refused =
        |unit, each| NotReopened::OutOfBudget { unit, granted: 2_000_000, used: 1_500_000, each };
    assert_eq!(
        refused(Unit::Tokens, None).to_string(),
        "the budget of the tree is too small: 2000000 tokens granted, 1500000 used, 500000 left"
    );
    let dollars = refused(Unit::Usd, Some(600_000)).to_string();
    assert!(dollars.contains("and its last pieces used"), "{dollars}");
    let not_more = NotReopened::NotMore { unit: Unit::Tokens, granted: 20, given: 10 };
    assert_eq!(not_more.to_string(), "the tree had 20 tokens, and is given 10");
}
