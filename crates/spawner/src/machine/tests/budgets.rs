//! Budgets and breakers, as the tree feels them.

use std::time::Duration;

use offshoot_model::{
    AgentId, BudgetRequest, Cost, CostKnowledge, Ending, Event, EventKind, MicroUsd, Origin,
    PiecesAgain, Reason, RefusalCode, RunStatus, SpawnRequest,
};
use offshoot_policy::RuntimeFacts;
use offshoot_policy::budget::Unit;

use super::super::{Input, RunIndex};
use super::crash::GoOn;
use super::limits::{Limits, Own};
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
fn a_session_is_told_what_is_left_of_its_budget() {
    let mut world = world(1000);
    let piece = world.spawn_piece();
    let left = |world: &World| world.machine.session(piece).expect("it lives").left.tokens;
    let all = granted(&world, piece).expect("it has a budget");
    assert_eq!(left(&world), Some(all));
    world.use_tokens(piece, 100);
    assert_eq!(left(&world), Some(all - 100));
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
fn what_costs_nothing_and_asks_for_nothing_below_itself_gets_no_part() {
    let limits = Limits { budget_tokens: Some(1_000), max_depth: 1, ..Limits::default() };
    let world = World::quiet(limits);
    let free = RuntimeFacts { cost: CostKnowledge::None, ..(*world.facts).clone() };
    let mut requests = [(); 3].map(|()| SpawnRequest::default());
    let facts = [&free, &*world.facts, &*world.facts];
    let wanted =
        requests.iter_mut().zip(facts).map(|(request, facts)| (request, Origin::Piece, facts));
    world.machine.divide(world.now, RunIndex::ROOT, wanted.collect());
    let tokens = |request: &SpawnRequest| request.budget.and_then(|budget| budget.tokens);
    assert_eq!(requests.each_ref().map(tokens), [None, Some(400), Some(400)]);
}

/// A tree without a budget in dollars, whose paid runs may cost five dollars by default.
#[test]
fn what_a_tree_may_cost_by_default_is_divided_too() {
    const DOLLAR: u64 = 1_000_000;
    let default_usd = Some(MicroUsd::from_micros(5 * DOLLAR));
    for budget_tokens in [None, Some(1_000)] {
        let world = World::quiet(Limits { budget_tokens, ..Limits::default() });
        let cost = CostKnowledge::Reported;
        let paid = RuntimeFacts { default_usd, cost, ..(*world.facts).clone() };
        let free = RuntimeFacts { cost: CostKnowledge::None, ..paid.clone() };
        let unknown = RuntimeFacts { cost: CostKnowledge::Unknown, ..paid.clone() };
        let request = |(number, micros): (u32, Option<u64>)| {
            let usd = micros.map(MicroUsd::from_micros);
            let budget = usd.map(|usd| BudgetRequest { tokens: None, usd: Some(usd) });
            let task = format!("part {number}").into();
            SpawnRequest { task, budget, ..SpawnRequest::default() }
        };
        let asked = [Some(DOLLAR), Some(2 * DOLLAR), None, None, None];
        let mut requests: Vec<_> = (0..).zip(asked).map(request).collect();
        let facts = [&free, &paid, &paid, &paid, &free];
        let (origin, of) = (Origin::Agent, RunIndex::ROOT);
        let wanted = requests.iter_mut().zip(facts);
        let wanted = wanted.map(|(request, facts)| (request, origin, facts));
        world.machine.divide(world.now, of, wanted.collect());
        let usd = |request: &SpawnRequest| Some(request.budget?.usd?.as_micros());
        let usd: Vec<_> = requests.iter().map(usd).collect();
        // Of what those that name an amount leave, a fifth is kept.
        let part = Some(2 * DOLLAR * 4 / 5 / 2);
        assert_eq!(usd, [Some(DOLLAR), Some(2 * DOLLAR), part, part, None], "{budget_tokens:?}");
        let mut requests = [(5, None), (6, None)].map(request);
        let [one, other] = &mut requests;
        let wanted = vec![(one, origin, &unknown), (other, origin, &free)];
        world.machine.divide(world.now, of, wanted);
        let given = requests.map(|request| request.budget.and_then(|budget| budget.usd));
        assert_eq!(given, [None, None], "none of them has dollars by default");
    }
}

/// A tree whose pieces draw from one pool.
pub(super) fn pool(tokens: u64) -> World {
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
    world.finish(pieces[2]);
    let more = world.spawn_piece();
    assert!(!world.holding().contains(&more), "100 are left, and 150 are what one uses");
    world.raise(RunIndex::ROOT, 500).expect("the root has a budget");
    assert!(world.holding().contains(&more), "what is added can be drawn");
    world.crash();
}

#[test]
fn what_a_killed_piece_was_charged_says_nothing_about_others() {
    for deaths in [1, 2] {
        let mut world = pool(1_000);
        let piece = world.spawn_piece();
        // The second supervisor dies before it has started anything.
        (0..deaths).for_each(|_| world.die(Duration::ZERO));
        while world.claim() {}
        // What its first attempt used is not known, so all that it had drawn is charged, once.
        world.use_tokens(piece, 10);
        world.raise(RunIndex::ROOT, 400).expect("the root has a budget");
        world.finish(piece);
        let balance = world.machine.books.ledger.balance(world.id(RunIndex::ROOT), Unit::Tokens);
        let used = balance.map(|balance| balance.used);
        assert_eq!(used, Some(510), "500, and 10 of the second attempt");
        assert_eq!(piece_size(&world), None);
        let unknown = world.last_ending().map(|ending| ending.cost.unknown_runs);
        assert_eq!(unknown, Some(1), "no budget of dollars was charged");
        let next = world.spawn_piece();
        assert_eq!(world.holding(), [next], "890 are left, and no piece is known to use 1,000");
        world.finish(next);
    }
}

/// The amount that a piece uses, as the pool of the root knows it.
fn piece_size(world: &World) -> Option<u64> {
    world.machine.books.ledger.piece_size(world.id(RunIndex::ROOT), Unit::Tokens)
}

#[test]
fn what_a_lost_request_of_the_meter_was_charged_says_what_pieces_use() {
    let limits = Limits { metered: true, resumes: true, ..Limits::default() };
    let mut world = World::quiet(Limits { budget_tokens: Some(1_000), pools: true, ..limits });
    let piece = world.spawn_piece();
    world.ask_model(piece, 100);
    world.die(Duration::ZERO);
    while world.claim() {}
    assert_eq!(world.holding(), [piece]);
    world.finish(piece);
    assert_eq!(piece_size(&world), Some(100), "the most that it may have cost is known");
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
    let drawn = world.times("budget_drawn");
    let refused = world.spawn(pieces[1], Origin::Agent, asks(300));
    assert_eq!(refused, Err(RefusalCode::BudgetExhausted), "200 are left");
    assert_eq!(world.times("budget_drawn"), drawn, "and stay for others");
    world.crash();
}

#[test]
fn a_piece_that_has_given_away_its_part_takes_more_for_the_next_child() {
    let mut world = pool(1_000);
    let pieces = [(); 2].map(|()| world.spawn_piece());
    world.use_tokens(pieces[0], 100);
    world.finish(pieces[0]);
    let all = SpawnRequest {
        budget: Some(BudgetRequest { tokens: Some(100), usd: None }),
        ..SpawnRequest::default()
    };
    world.spawn(pieces[1], Origin::Agent, all).expect("it has drawn 100");
    world.ask(pieces[1]).expect("800 are left for it");
    world.crash();
}

#[test]
fn what_a_piece_has_used_beyond_its_part_the_pool_pays() {
    let mut world = pool(1_000);
    let pieces = [(); 2].map(|()| world.spawn_piece());
    world.use_tokens(pieces[0], 100);
    world.finish(pieces[0]);
    // The end tells of 150, and 100 were drawn.
    world.actors.get_mut(&pieces[1]).expect("it runs").used = 150;
    world.finish(pieces[1]);
    let root = world.machine.books.ledger.balance(world.id(RunIndex::ROOT), Unit::Tokens);
    let root = root.expect("it has a budget");
    assert_eq!((root.used, root.overrun, root.free), (250, 0, Some(750)));
    let drawn = world.record.iter().rev().find_map(|event| match event.kind {
        EventKind::BudgetDrawn { tokens, .. } => Some(tokens),
        _ => None,
    });
    assert_eq!((drawn, world.times("overrun")), (Some(50), 0));
}

#[test]
fn pieces_draw_dollars_from_a_pool_too() {
    let limits = Limits { budget_usd: Some(1), pools: true, ..Limits::default() };
    let mut world = World::quiet(limits);
    let piece = world.spawn_piece();
    assert_eq!(world.holding(), [piece]);
    let drawn = world.record.iter().find_map(|event| match event.kind {
        EventKind::BudgetDrawn { tokens, micro_usd } => Some((tokens, micro_usd)),
        _ => None,
    });
    assert_eq!(drawn, Some((0, 250_000)), "the first has a quarter");
    world.crash();
}

#[test]
fn dollars_beyond_a_budget_are_on_record() {
    let mut world = World::quiet(Limits { budget_usd: Some(1), ..Limits::default() });
    let piece = world.spawn_piece();
    world.actors.remove(&piece).expect("it runs");
    let cost = Cost { known_usd: MicroUsd::from_micros(700_000), ..Cost::NONE };
    let ending = Ending { cost, ..Ending::of(Reason::Completed { exit_code: None }) };
    world.step(Input::Finished { run: piece, outcome: Box::new(ending.into()) });
    let overrun = world.record.iter().find_map(|event| match event.kind {
        EventKind::Overrun { tokens, micro_usd } => Some((tokens, micro_usd)),
        _ => None,
    });
    assert_eq!(overrun, Some((0, 200_000)), "it had half of a dollar");
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
fn no_raise_passes_a_ceiling() {
    let limits =
        Limits { budget_tokens: Some(1_000), ceiling_tokens: Some(1_500), ..Limits::default() };
    let mut world = World::quiet(limits);
    let (_, child) = world.family();
    // A raise of any run is one of the tree.
    for run in [RunIndex::ROOT, child] {
        let refused = world.raise(run, 501).expect_err("500 are left");
        assert_eq!(refused.code, RefusalCode::BudgetExhausted);
        assert!(refused.message.contains("leaves 500 tokens to add"), "{}", refused.message);
    }
    world.raise(child, 500).expect("it is as much as is allowed");
    world.crash();
    let refused =
        world.raise(RunIndex::ROOT, 1).expect_err("nothing is left, for the next supervisor too");
    assert!(
        refused.message.starts_with("the budget of the tree is 1500 tokens"),
        "{}",
        refused.message
    );
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

#[test]
fn a_run_whose_parent_has_used_up_its_budget_is_not_tried_again() {
    let limits = Limits { budget_tokens: Some(1_000), retries: 1, ..Limits::default() };
    let mut world = World::quiet(limits);
    let (parent, child) = world.family();
    // The parent has 500, the child 250 of these.
    world.use_tokens(parent, 270);
    world.actors.get_mut(&child).expect("it runs").used = 240;
    world.finish_because(child, Reason::RuntimeError { message: "gone".into(), retryable: true });
    assert!(world.is_stopping(parent));
    assert!(world.status(child).is_some_and(|status| !status.is_success()));
    assert_eq!(world.times("resumed"), 0);
}

#[test]
fn a_piece_of_a_pool_is_told_of_all_that_it_may_use() {
    let mut world = pool(1_000);
    let pieces = [(); 2].map(|()| world.spawn_piece());
    let told = |world: &World, run| {
        let grant = world.machine.session(run).expect("it lives").grant;
        (grant.budget.tokens, grant.pooled.is_none())
    };
    assert_eq!(told(&world, pieces[0]), (Some(1_000), true), "no other has taken anything");
    world.use_tokens(pieces[0], 100);
    world.finish(pieces[0]);
    assert_eq!(told(&world, pieces[1]), (Some(900), true));
    world.raise(RunIndex::ROOT, 500).expect("the root has a budget");
    assert_eq!(told(&world, pieces[1]), (Some(1_400), true));
}

#[test]
fn a_tree_without_tokens_goes_on_where_nothing_of_it_costs_any() {
    let mut world = World::quiet(Limits { budget_tokens: Some(0), ..Limits::default() });
    let free = RuntimeFacts { cost: CostKnowledge::None, ..(*world.facts).clone() };
    world.facts = free.into();
    let piece = world.spawn_piece();
    world.finish_because(piece, Reason::ExitCode { code: 1 });
    world.close();
    let again = PiecesAgain { failed: true, ..PiecesAgain::default() };
    let wish = GoOn { again, ..GoOn::default() };
    assert_eq!(world.reopen(wish, Duration::ZERO), Ok(()));
}

#[test]
fn what_is_added_to_the_budget_of_a_tree_may_go_to_one_child() {
    let mut world = world(1_000);
    world.raise(RunIndex::ROOT, 1_000).expect("the root has a budget");
    let request = SpawnRequest {
        budget: Some(BudgetRequest { tokens: Some(1_500), usd: None }),
        ..SpawnRequest::default()
    };
    let child = world.spawn(RunIndex::ROOT, Origin::Agent, request).expect("2,000 are there");
    assert_eq!(granted(&world, child), Some(1_500));
}

#[test]
fn a_piece_of_a_pool_draws_no_more_than_its_agent_says() {
    let own = Own { budget_tokens: Some(100), ..Own::default() };
    let agents = [own, Own::default(), Own::default()];
    let budget_tokens = Some(1_000);
    let mut world =
        World::quiet(Limits { agents, budget_tokens, pools: true, ..Limits::default() });
    let agent = Some(AgentId::parse("a").expect("the text is no id"));
    let request = SpawnRequest { agent, ..SpawnRequest::default() };
    let piece = world.spawn(RunIndex::ROOT, Origin::Piece, request).expect("the pool is full");
    assert_eq!(drawn(&world), [(100, 0)], "another one would draw half of the pool");
    world.use_tokens(piece, 100);
    assert_eq!(world.asked_to_stop(), [piece]);
}

#[test]
fn a_piece_takes_more_of_what_it_lacks_and_of_nothing_else() {
    let limits = Limits { budget_tokens: Some(1_000), budget_usd: Some(1), ..Limits::default() };
    let mut world = World::quiet(Limits { pools: true, ..limits });
    let pieces = [(); 2].map(|()| world.spawn_piece());
    world.use_tokens(pieces[0], 100);
    world.finish(pieces[0]);
    let all = SpawnRequest {
        budget: Some(BudgetRequest { tokens: Some(100), usd: Some(MicroUsd::from_micros(1)) }),
        ..SpawnRequest::default()
    };
    world.spawn(pieces[1], Origin::Agent, all).expect("it has drawn 100 tokens");
    let before = drawn(&world).len();
    world.ask(pieces[1]).expect("800 tokens are left for it");
    assert_eq!(drawn(&world)[before..], [(100, 0)], "it has dollars");
}

/// One unit without the other would pay for nothing, and would be missing where another piece could use it.
#[test]
fn a_piece_takes_no_more_of_one_unit_where_the_other_is_not_enough() {
    let limits = Limits { budget_tokens: Some(1_000), budget_usd: Some(1), ..Limits::default() };
    let mut world = World::quiet(Limits { pools: true, ..limits });
    let pieces = [(); 2].map(|()| world.spawn_piece());
    world.use_tokens(pieces[0], 100);
    world.finish(pieces[0]);
    let before = drawn(&world).len();
    let more = SpawnRequest {
        budget: Some(BudgetRequest {
            tokens: Some(500),
            usd: Some(MicroUsd::from_micros(2_000_000)),
        }),
        ..SpawnRequest::default()
    };
    let refused = world.spawn(pieces[1], Origin::Agent, more);
    assert_eq!(refused, Err(RefusalCode::BudgetExhausted), "there is one dollar");
    assert_eq!(drawn(&world)[before..], []);
}

/// The tokens and millionths of dollars that pieces have drawn, each time.
fn drawn(world: &World) -> Vec<(u64, u64)> {
    let drawn = |event: &Event| match event.kind {
        EventKind::BudgetDrawn { tokens, micro_usd } => Some((tokens, micro_usd)),
        _ => None,
    };
    world.record.iter().filter_map(drawn).collect()
}
