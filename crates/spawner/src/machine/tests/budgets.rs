//! Budgets and breakers, as the tree feels them.

use offshoot_model::{BudgetRequest, Origin, Reason, RefusalCode, RunStatus, SpawnRequest};

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
}
