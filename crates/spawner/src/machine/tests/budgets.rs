//! Budgets and breakers, as the tree feels them.

use std::time::Duration;

use offshoot_model::{
    BudgetRequest, Event, EventKind, Origin, Reason, RefusalCode, RunStatus, SpawnRequest,
};

use super::super::RunIndex;
use super::limits::Limits;
use super::world::World;

fn world(tokens: u64) -> World {
    let limits = Limits { budget_tokens: Some(tokens), ..Limits::default() };
    World::quiet(limits)
}

fn granted(world: &World, run: RunIndex) -> Option<u64> {
    world.ledger.admitted(world.id(run)).grant.budget.tokens
}

#[test]
fn pieces_divide_what_is_left_less_what_is_kept() {
    let mut world = world(1000);
    world.fan_out(4);
    let pieces = world.holding();
    assert_eq!(pieces.len(), 4);
    assert!(pieces.iter().all(|&piece| granted(&world, piece) == Some(200)), "(1000 - 200) / 4");
    assert_eq!(world.try_spawn_piece().map(|piece| granted(&world, piece)), Some(Some(100)));
}

#[test]
fn what_a_piece_asks_for_goes_off_first() {
    let mut world = world(1000);
    let asks = |tokens| SpawnRequest {
        budget: Some(BudgetRequest { tokens: Some(tokens), usd: None }),
        ..SpawnRequest::default()
    };
    let mut requests = vec![asks(500), SpawnRequest::default(), SpawnRequest::default()];
    world.divide(&mut requests);
    let tokens = |request: &SpawnRequest| request.budget.and_then(|budget| budget.tokens);
    let tokens: Vec<_> = requests.iter().map(tokens).collect();
    assert_eq!(tokens, [Some(500), Some(200), Some(200)], "500, and a fifth of the rest is kept");
    for request in requests {
        world.spawn(RunIndex::ROOT, Origin::Piece, request).expect("there is enough for all");
    }
}

/// A tree whose pieces draw from one pool.
fn pool(tokens: u64) -> World {
    World::quiet(Limits { budget_tokens: Some(tokens), pools: true, ..Limits::default() })
}

#[test]
fn pieces_of_a_pool_start_while_it_lasts() {
    let mut world = pool(2_000);
    world.fan_out(40);
    assert_eq!(world.holding().len(), 1, "what a piece uses is not known: the first has half");
    let mut answers = 0;
    while let [piece, ..] = world.holding()[..] {
        let parts = world.holding().len();
        assert!(parts <= 6, "1,730 tokens are left, and 270 are what one uses");
        world.use_tokens(piece, 270);
        world.finish(piece);
        answers += 1;
    }
    assert_eq!(answers, 7, "1,890 of 2,000 tokens, and no eighth piece fits");
    let short =
        Reason::BudgetPool { unit: "tokens".to_owned(), granted: 2_000, used: 1_890, asked: 270 };
    let is_short =
        |event: &&Event| matches!(&event.kind, EventKind::Ended(ending) if ending.reason == short);
    assert_eq!(world.record.iter().filter(is_short).count(), 33);
    world.crash();
}

#[test]
fn a_piece_takes_more_while_there_is_more_and_stops_then() {
    let mut world = pool(1_000);
    let pieces = [(); 3].map(|()| world.spawn_piece());
    world.use_tokens(pieces[0], 100);
    world.finish(pieces[0]);
    assert_eq!(world.holding(), pieces[1..], "900 are left, and each probably uses 100");
    world.use_tokens(pieces[1], 650);
    assert_eq!(world.asked_to_stop(), [], "its 100 and 800 that no run had taken");
    world.use_tokens(pieces[2], 99);
    assert_eq!(world.asked_to_stop(), []);
    world.use_tokens(pieces[2], 51);
    assert_eq!(world.asked_to_stop(), [pieces[2]], "150 of 100, and 50 were left by the other");
    world.raise(RunIndex::ROOT, 500).expect("the root has a budget");
    let more = world.spawn_piece();
    assert!(world.holding().contains(&more), "what is added can be drawn");
    world.crash();
}

#[test]
fn what_a_killed_piece_was_charged_says_nothing_about_others() {
    let mut world = pool(1_000);
    let piece = world.spawn_piece();
    world.die(Duration::ZERO);
    while world.claim() {}
    // What it used is not known in full, so all that it had drawn is charged, in both attempts.
    world.use_tokens(piece, 10);
    world.raise(RunIndex::ROOT, 400).expect("the root has a budget");
    world.finish(piece);
    let next = world.spawn_piece();
    assert_eq!(world.holding(), [next], "400 are left, and no piece is known to use 1,000");
    world.finish(next);
}

#[test]
fn what_a_piece_asks_for_below_itself_comes_out_of_the_pool() {
    let mut world = pool(1_000);
    let pieces = [(); 2].map(|()| world.spawn_piece());
    world.use_tokens(pieces[0], 100);
    world.finish(pieces[0]);
    let asks = |tokens| SpawnRequest {
        budget: Some(BudgetRequest { tokens: Some(tokens), usd: None }),
        ..SpawnRequest::default()
    };
    let child = world.spawn(pieces[1], Origin::Agent, asks(700)).expect("900 are left");
    assert_eq!(granted(&world, child), Some(700));
    let refused = world.spawn(pieces[1], Origin::Agent, asks(300));
    assert_eq!(refused, Err(RefusalCode::BudgetExhausted), "200 are left");
    world.crash();
}

#[test]
fn a_budget_that_is_used_up_stops_the_subtree() {
    let mut world = world(1000);
    let (parent, child) = world.family();
    world.use_tokens(child, 600);
    assert_eq!(world.asked_to_stop(), [child, parent], "500 were the parent's, 250 the child's");
    for run in [child, parent] {
        world.finish_because(run, Reason::Signal { signal: 15 });
        assert_eq!(world.status(run), Some(RunStatus::Failed));
    }
}

#[test]
fn a_budget_that_is_raised_in_time_stops_no_run() {
    let mut world = world(1000);
    let (parent, child) = world.family();
    let before = granted(&world, child).expect("a part of what its parent has");
    world.raise(child, 400).expect("it lives under a budget");
    world.use_tokens(child, before + 399);
    assert_eq!(world.asked_to_stop(), [], "one is left");
    world.use_tokens(child, 1);
    assert_eq!(world.asked_to_stop(), [child]);
    let refused = world.raise(child, 400).expect_err("it is being stopped");
    assert!(refused.message.contains("is being stopped"), "{}", refused.message);
    world.finish_because(child, Reason::Signal { signal: 15 });
    let refused = world.raise(child, 400).expect_err("it is over");
    assert!(refused.message.contains("is over"), "{}", refused.message);
    let refused = world.raise(parent, 0).expect_err("that is nothing");
    assert_eq!(refused.field.as_deref(), Some("add"));
    // What is on record is counted the same by a reader.
    world.crash();
}

#[test]
fn nothing_is_added_to_a_budget_that_is_not_set() {
    let mut world = World::quiet(Limits::default());
    let run = world.spawn_piece();
    let refused = world.raise(run, 400).expect_err("nothing bounds it");
    assert!(refused.message.starts_with("no budget of tokens bounds"), "{}", refused.message);
}

#[test]
fn a_breaker_holds_back_the_queue_and_lets_one_probe() {
    let mut world =
        World::quiet(Limits { max_concurrent: 2, breaker_failures: 2, ..Limits::default() });
    let pieces = [(); 5].map(|()| world.spawn_piece());
    let fault = || Reason::CannotStart { message: "no such file".into() };
    world.finish_because(pieces[0], fault());
    world.finish_because(pieces[1], fault());
    assert_eq!(world.holding(), [pieces[2]], "the third had started when it opened");
    assert_eq!(world.ask(pieces[2]), Err(RefusalCode::BreakerOpen));
    world.finish_because(pieces[2], fault());
    assert!(world.holding().is_empty());
    world.advance(5_000);
    assert_eq!(world.holding(), [pieces[3]], "one probe after the cool-down");
    world.finish_because(pieces[3], fault());
    assert!(world.holding().is_empty(), "it opens again");
    world.advance(5_000);
    assert_eq!(world.holding(), [pieces[4]]);
    world.finish(pieces[4]);
    assert!(world.try_spawn_piece().is_some(), "it closed");
    let changes = world.told_of_breakers();
    assert_eq!(
        changes,
        [
            "no run of the agent `main` starts for 5.0 s: 2 faults in a row",
            "no run of the agent `main` starts for 5.0 s: 3 faults in a row",
            "runs of the agent `main` start again",
        ]
    );
}

/// A child that goes on after its supervisor was killed, or after a fault, has what it has not used, and not its grant anew.
#[test]
fn resumed_child_gets_the_remainder() {
    let limits =
        Limits { budget_tokens: Some(1_000), resumes: true, retries: 1, ..Limits::default() };
    let asks = SpawnRequest {
        budget: Some(BudgetRequest { tokens: Some(300), usd: None }),
        ..SpawnRequest::default()
    };
    for dies in [true, false] {
        let mut world = World::quiet(limits);
        let child = world.spawn(RunIndex::ROOT, Origin::Piece, asks.clone()).expect("it is there");
        world.use_tokens(child, 200);
        if dies {
            world.crash();
        } else {
            let message = "gone".to_owned();
            world.finish_because(child, Reason::RuntimeError { message, retryable: true });
            world.advance(60_000);
        }
        assert_eq!(world.holding(), [child], "it goes on");
        assert_eq!(granted(&world, child), Some(300));
        world.use_tokens(child, 99);
        assert_eq!(world.asked_to_stop(), []);
        world.use_tokens(child, 1);
        assert_eq!(world.asked_to_stop(), [child], "300 in all");
        world.finish(child);
        let rest = |tokens| SpawnRequest {
            budget: Some(BudgetRequest { tokens: Some(tokens), usd: None }),
            ..SpawnRequest::default()
        };
        let more = world.spawn(RunIndex::ROOT, Origin::Piece, rest(701));
        assert_eq!(more, Err(RefusalCode::BudgetExhausted));
        world.spawn(RunIndex::ROOT, Origin::Piece, rest(700)).expect("what it has not used");
    }
}
