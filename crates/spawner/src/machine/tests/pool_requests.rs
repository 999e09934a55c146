//! Requests of pieces that share a pool, each of which may cost more than its piece has taken; and runs that end for their budget.

use std::sync::Arc;

use offshoot_model::{
    AgentId, Cost, Event, EventKind, MicroUsd, Origin, Reason, RequestEnding, RequestShortage,
    RunStatus, SpawnRequest, Usage,
};

use super::super::{Input, RequestAsk, RequestOver, RunIndex};
use super::limits::{Limits, Own};
use super::requests::Sent;
use super::world::World;

/// Each piece has taken what the first one used, and a request of each may cost more: none of them keeps from the others what it does not use.
#[test]
fn pieces_that_wait_for_each_other_give_back_what_they_do_not_use() {
    let limits =
        Limits { budget_tokens: Some(4_500), metered: true, pools: true, ..Limits::default() };
    let mut world = World::quiet(limits);
    let first = world.spawn_piece();
    let [second, third] = [(); 2].map(|()| world.spawn_piece());
    world.ask_model(first, 2_000);
    let request = *world.requests.keys().next().expect("it is open");
    world.end_request(request, RequestEnding::Answered, 1_000);
    world.finish(first);
    assert_eq!(world.holding(), [second, third], "each has taken 1,000 of 3,500");
    world.ask_model(second, 3_400);
    assert_eq!(world.requests_of(second), (0, 1), "what the other one has may come free");
    let held = |world: &World| {
        let others =
            |event: &&Event| matches!(&event.kind, EventKind::RequestHeld { for_others: true, .. });
        world.record.iter().filter(others).count()
    };
    assert_eq!(held(&world), 1);
    // More than it can have beside the one unit that the other one keeps: it gives back as well, and the other one has room.
    world.ask_model(third, 3_500);
    assert_eq!((world.requests_of(second), world.requests_of(third)), ((1, 0), (0, 1)));
    assert_eq!(held(&world), 2, "each is recorded once");
    let request = *world.requests.iter().find(|(_, sent)| sent.granted).expect("it is open").0;
    world.end_request(request, RequestEnding::Answered, 1_000);
    assert_eq!(world.requests_of(third), (0, 0), "2,500 are left, and no other can leave more");
    world.crash();
}

/// A metered tree of 10,000 tokens, of which two pieces are over that have used little, and three work.
fn three_work() -> (World, [RunIndex; 3]) {
    let limits =
        Limits { budget_tokens: Some(10_000), metered: true, pools: true, ..Limits::default() };
    let mut world = World::quiet(limits);
    let pieces = [(); 4].map(|()| world.spawn_piece());
    for piece in &pieces[..2] {
        world.use_tokens(*piece, 1);
        world.finish(*piece);
    }
    let [.., first, second] = pieces;
    let third = world.spawn_piece();
    (world, [first, second, third])
}

/// With room for one request at a time three pieces take turns, although each asks anew as soon as it was answered.
#[test]
fn requests_wait_in_the_order_in_which_they_came() {
    let (mut world, [first, second, third]) = three_work();
    assert_eq!(world.holding(), [first, second, third]);
    for piece in [first, second, third] {
        world.ask_model(piece, 9_900);
    }
    let mut turns = Vec::new();
    for _ in 0..6 {
        let open = world.requests.iter().find(|(_, sent)| sent.granted);
        let (request, run) = open.map(|(request, sent)| (*request, sent.run)).expect("one is open");
        turns.push(run);
        world.end_request(request, RequestEnding::Answered, 1);
        world.ask_model(run, 9_900);
    }
    assert_eq!(turns, [first, second, third, first, second, third]);
}

/// Tokens could be had from the pool, and dollars never.
#[test]
fn a_request_that_fits_never_in_one_unit_does_not_wait_for_the_other() {
    let limits = Limits {
        budget_tokens: Some(10_000),
        budget_usd: Some(1),
        metered: true,
        pools: true,
        ..Limits::default()
    };
    let mut world = World::quiet(limits);
    let piece = world.spawn_piece();
    let (request, model, usd) = (1, Arc::from("model"), Some(MicroUsd::from_micros(2_000_000)));
    let ask = RequestAsk {
        run: piece,
        request,
        model,
        tokens: 9_000,
        usd,
        is_last: true,
        is_shortened: false,
    };
    world.requests.insert(request, Sent { run: piece, tokens: 9_000, granted: false });
    world.step(Input::RequestAsked(ask));
    assert_eq!(world.requests_of(piece), (0, 0), "it is refused");
    assert!(!world.record.iter().any(|event| event.kind.name() == "request_held"));
}

/// After each answer a piece has one unit of its part left.
#[test]
fn a_metered_piece_asks_for_a_child_after_its_first_answer() {
    let limits =
        Limits { budget_tokens: Some(10_000), metered: true, pools: true, ..Limits::default() };
    let mut world = World::quiet(limits);
    let piece = world.spawn_piece();
    world.ask_model(piece, 2_000);
    let request = *world.requests.keys().next().expect("it is open");
    world.end_request(request, RequestEnding::Answered, 500);
    assert_eq!(world.left(piece), Some(1));
    let child = world.child_of(piece);
    assert_eq!(world.holding(), [piece, child]);
    world.crash();
}

/// The others could leave enough in the pool, and the agent may not use it: the request is refused at once, and waits for no other.
#[test]
fn a_request_beyond_the_budget_of_its_agent_does_not_wait_for_others() {
    let own = Own { budget_tokens: Some(500), ..Own::default() };
    let agents = [own, Own::default(), Own::default()];
    let limits = Limits { agents, budget_tokens: Some(10_000), ..Limits::default() };
    let mut world = World::quiet(Limits { metered: true, pools: true, ..limits });
    let first = world.spawn_piece();
    world.use_tokens(first, 100);
    world.finish(first);
    let beside = world.spawn_piece();
    let agent = Some(AgentId::parse("a").expect("the text is no id"));
    let request = SpawnRequest { agent, ..SpawnRequest::default() };
    let piece = world.spawn(RunIndex::ROOT, Origin::Piece, request).expect("the pool is not empty");
    assert_eq!(world.holding(), [beside, piece]);
    world.ask_model(beside, 9_000);
    world.ask_model(piece, 600);
    assert_eq!(world.requests_of(piece), (0, 0), "its agent has 500");
    world.ask_model(piece, 300);
    assert_eq!(world.requests_of(piece), (1, 0));
    world.ask_model(piece, 400);
    assert_eq!(world.requests_of(piece), (1, 1), "the one before it may cost less than 300");
    world.crash();
}

/// Of the requests of a piece that wait the first alone is on record, and stands in line for all of them.
#[test]
fn a_piece_whose_second_request_waits_keeps_the_place_of_its_first() {
    let (mut world, [first, second, third]) = three_work();
    for piece in [first, second, third, second] {
        world.ask_model(piece, 9_900);
    }
    let held = |world: &World| {
        world.record.iter().filter(|event| event.kind.name() == "request_held").count()
    };
    assert_eq!((world.requests_of(second), held(&world)), ((0, 2), 2));
    let mut turns = Vec::new();
    while let Some((&request, sent)) = world.requests.iter().find(|(_, sent)| sent.granted) {
        turns.push(sent.run);
        world.end_request(request, RequestEnding::Answered, 1);
    }
    assert_eq!((turns, held(&world)), (vec![first, second, third, second], 3));
}

/// Ends a piece whose last request was held for too long, after such a one that is under way; returns the unit for which it has failed.
fn held_too_long(other: Option<(u64, u64)>, last: (u64, u64)) -> Option<String> {
    let limits = Limits { budget_tokens: Some(1_000), budget_usd: Some(1), ..Limits::default() };
    let mut world = World::quiet(Limits { metered: true, pauses_at_cap: true, ..limits });
    let piece = world.spawn_piece();
    for (request, (tokens, micros)) in (1..).zip(other.into_iter().chain([last])) {
        let (model, usd) = (Arc::from("model"), Some(MicroUsd::from_micros(micros)));
        let ask = RequestAsk {
            run: piece,
            request,
            model,
            tokens,
            usd,
            is_last: true,
            is_shortened: false,
        };
        world.requests.insert(request, Sent { run: piece, tokens, granted: false });
        world.step(Input::RequestAsked(ask));
    }
    assert_eq!(world.requests_of(piece), (usize::from(other.is_some()), 1), "it waits");
    let last = *world.requests.keys().last().expect("it waits");
    world.end_request(last, RequestEnding::NotSent, 0);
    let (code, message) = ("held_too_long".into(), "no".into());
    world.step(Input::RequestRefused { run: piece, code, message });
    world.requests.clear();
    world.finish_because(piece, Reason::ExitCode { code: 1 });
    match &world.last_ending()?.reason {
        Reason::Budget { unit, .. } => Some(unit.clone()),
        _ => None,
    }
}

#[test]
fn what_waits_in_vain_fails_for_the_first_unit_in_which_there_was_no_room() {
    let check = |other, last, expected: &str| {
        assert_eq!(held_too_long(other, last).as_deref(), Some(expected), "{other:?}, {last:?}");
    };
    let open = Some((100, 100_000));
    check(open, (10, 450_000), "usd");
    check(open, (450, 10), "tokens");
    check(open, (450, 450_000), "tokens");
    // It was held for the operator, and never for others.
    check(open, (10, 2_000_000), "usd");
    check(None, (10, 2_000_000), "usd");
}

/// The last one waited for dollars, and one before it for tokens, which it had.
#[test]
fn a_request_that_waits_for_the_operator_in_vain_names_its_own_unit() {
    let limits = Limits {
        budget_tokens: Some(1_000),
        budget_usd: Some(1),
        metered: true,
        pauses_at_cap: true,
        ..Limits::default()
    };
    for waits_before in [false, true] {
        let mut world = World::quiet(limits);
        let piece = world.spawn_piece();
        let has = world.left(piece).expect("a budget");
        if waits_before {
            world.ask_model(piece, has);
            let request = *world.requests.keys().next().expect("it is open");
            world.ask_model(piece, 10);
            assert_eq!(world.requests_of(piece), (1, 1));
            world.end_request(request, RequestEnding::Answered, 1);
            assert_eq!(world.requests_of(piece), (1, 0));
            let request = *world.requests.keys().next().expect("it is open");
            world.end_request(request, RequestEnding::Answered, 1);
        }
        let (request, model, usd) =
            (9_999, Arc::from("model"), Some(MicroUsd::from_micros(2_000_000)));
        let ask = RequestAsk {
            run: piece,
            request,
            model,
            tokens: 10,
            usd,
            is_last: true,
            is_shortened: false,
        };
        world.requests.insert(request, Sent { run: piece, tokens: 10, granted: false });
        world.step(Input::RequestAsked(ask));
        assert_eq!(world.requests_of(piece), (0, 1), "it is held");
        world.end_request(9_999, RequestEnding::NotSent, 0);
        let (code, message) = ("held_too_long".into(), "no".into());
        world.step(Input::RequestRefused { run: piece, code, message });
        world.requests.clear();
        world.finish_because(piece, Reason::ExitCode { code: 1 });
        let ended = world.last_ending().map(|ending| ending.reason.clone());
        assert_eq!(
            ended,
            Some(Reason::Budget {
                unit: "usd".to_owned(),
                request: Some(RequestShortage { bound: 2_000_000, left: 500_000 })
            }),
            "{waits_before}"
        );
    }
}

/// The meter has cut the answer of a run for want of budget: where the run fails over that, it has failed for its budget. Where the shortened answer was
/// whole, or did not come, the run has failed for its own reason.
#[test]
fn a_run_that_fails_over_an_answer_that_was_cut_failed_for_its_budget() {
    for (is_cut, ending) in [
        (true, RequestEnding::Answered),
        (false, RequestEnding::Answered),
        (false, RequestEnding::Declined),
    ] {
        let limits = Limits { budget_tokens: Some(1_000), metered: true, ..Limits::default() };
        let mut world = World::quiet(limits);
        let piece = world.spawn_piece();
        let left = world.left(piece).expect("a budget");
        let mut ask = |request, tokens, is_last, is_shortened| {
            let model = Arc::from("model");
            let ask =
                RequestAsk { run: piece, request, model, tokens, usd: None, is_last, is_shortened };
            world.requests.insert(request, Sent { run: piece, tokens, granted: false });
            world.step(Input::RequestAsked(ask));
        };
        ask(1, left + 1, false, false);
        ask(2, left / 4, true, true);
        world.requests.clear();
        let (model, usage, cost) = (Arc::from("model"), Usage::default(), Cost::NONE);
        let over = RequestOver {
            run: piece,
            request: 2,
            model,
            ending,
            usage,
            cost,
            is_pressure: false,
            is_cut,
        };
        world.step(Input::RequestOver(over));
        world.finish_because(piece, Reason::ExitCode { code: 1 });
        let ended = world.last_ending().map(|ending| ending.reason.clone());
        let request = Some(RequestShortage { bound: left + 1, left });
        let expected = match is_cut {
            true => Reason::Budget { unit: "tokens".to_owned(), request },
            false => Reason::ExitCode { code: 1 },
        };
        assert_eq!(ended, Some(expected));
    }
}

#[test]
fn what_asked_for_too_much_and_was_not_held_or_did_its_work_waits_for_no_budget() {
    let limits = Limits {
        budget_tokens: Some(1_000),
        metered: true,
        pauses_at_cap: true,
        resumes: true,
        ..Limits::default()
    };
    let mut world = World::quiet(limits);
    let [piece, other] = [(); 2].map(|()| world.spawn_piece());
    // The program was told so at once, and could have asked for less.
    let (request, model) = (9_999, Arc::from("model"));
    let ask = RequestAsk {
        run: piece,
        request,
        model,
        tokens: 50_000,
        usd: None,
        is_last: false,
        is_shortened: false,
    };
    world.step(Input::RequestAsked(ask));
    world.finish_because(piece, Reason::ExitCode { code: 1 });
    assert_eq!(world.status(piece), Some(RunStatus::Failed));
    world.ask_model(other, 5_000);
    assert_eq!(world.requests_of(other), (0, 1));
    world.finish(other);
    assert_eq!(world.status(other), Some(RunStatus::Completed));
}
