//! Requests to models that go through the meter.

use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{
    CancelledBy, Cost, CostKnowledge, Ending, Event, EventKind, MicroUsd, Reason, RequestEnding,
    RequestShortage, RunStatus, TokenCount, Usage,
};
use offshoot_policy::RuntimeFacts;
use offshoot_policy::budget::Unit;

use super::super::{Input, Outcome, Reach, RequestAsk, RequestOver, RequestVerdict, RunIndex};
use super::limits::Limits;
use super::world::{World, tokens};

/// A request that is not over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) run: RunIndex,
    pub(super) tokens: u64,
    pub(super) granted: bool,
}

impl World {
    /// A run sends a request of at most so many tokens.
    pub(super) fn ask_model(&mut self, run: RunIndex, most: u64) {
        self.minted += 1;
        let request = self.minted;
        self.requests.insert(request, Sent { run, tokens: most, granted: false });
        let model = Arc::from("model");
        let ask = RequestAsk {
            run,
            request,
            model,
            tokens: most,
            usd: None,
            is_last: true,
            is_shortened: false,
        };
        self.step(Input::RequestAsked(ask));
        if self.requests.get(&request).is_some_and(|sent| !sent.granted) {
            self.saw("request waits");
        }
    }

    /// A run sends some requests at once: small ones, and such as take all that it has left.
    pub(super) fn ask_models(&mut self, run: RunIndex) {
        for _ in 0..=self.seed.below(3) {
            let small = 1 + self.seed.below(300);
            let most = match self.left(run).filter(|_| self.seed.one_in(3)) {
                Some(left) => left.max(1),
                None => small,
            };
            self.ask_model(run, most);
        }
    }

    /// The machine has answered a request.
    pub(super) fn request_answered(&mut self, request: u64, verdict: &RequestVerdict) {
        let Some(sent) = self.requests.get_mut(&request) else { return };
        match verdict {
            RequestVerdict::Granted => {
                sent.granted = true;
                let has_waited = request != self.minted;
                *self.ledger.seen.entry("request waited, and left").or_default() +=
                    u32::from(has_waited);
            }
            RequestVerdict::TooMuch(_) | RequestVerdict::Refused(_) => {
                self.requests.remove(&request);
                self.saw("request refused");
            }
        }
    }

    /// A request that was granted ends in this way, and used so many tokens.
    pub(super) fn end_request(&mut self, request: u64, ending: RequestEnding, used: u64) {
        let Sent { run, .. } = self.requests.remove(&request).expect("it is not over");
        let (usage, cost, model) = (tokens(used), Cost::NONE, Arc::from("model"));
        let is_pressure = ending == RequestEnding::Declined;
        let over =
            RequestOver { run, request, model, ending, usage, cost, is_pressure, is_cut: false };
        self.step(Input::RequestOver(over));
    }

    /// Something happens to one of the requests; answers whether there was one.
    pub(super) fn request_goes_on(&mut self) -> bool {
        let open: Vec<u64> = self.requests.keys().copied().collect();
        if open.is_empty() {
            return false;
        }
        // Rarely one waits for another: then the end of that one is made likely.
        let waits = open.iter().find(|request| !self.requests[request].granted);
        let runs = waits.map(|request| self.requests[request].run);
        let beside = |request: &&u64| {
            let sent = self.requests[*request];
            sent.granted && runs == Some(sent.run)
        };
        let request = match open.iter().find(beside) {
            Some(beside) => *beside,
            None => self.seed.pick(&open),
        };
        self.request_ends(request);
        true
    }

    /// True if a request waits until another is over.
    pub(super) fn has_waiting_requests(&self) -> bool {
        self.requests.values().any(|sent| !sent.granted)
    }

    fn request_ends(&mut self, request: u64) {
        let Sent { tokens, granted, .. } = self.requests[&request];
        let used = self.seed.below(tokens + 1);
        match self.seed.below(6) {
            // Its program does not wait for the answer, or goes on waiting.
            1..=5 if !granted => {}
            _ if !granted => self.end_request(request, RequestEnding::NotSent, 0),
            0 => self.end_request(request, RequestEnding::Declined, 0),
            1 => self.end_request(request, RequestEnding::Broken, tokens),
            _ => self.end_request(request, RequestEnding::Answered, used),
        }
    }

    /// The program of a run is gone, and so are its connections; the meter tells of most of them before the run is over.
    pub(super) fn end_requests(&mut self, run: RunIndex) {
        let of_run = |(request, sent): (&u64, &Sent)| (sent.run == run).then_some(*request);
        let open: Vec<u64> = self.requests.iter().filter_map(of_run).collect();
        for request in open {
            // The end of another may have refused it.
            if !self.requests.contains_key(&request) {
                continue;
            }
            match self.seed.one_in(4) {
                true => drop(self.requests.remove(&request)),
                false => self.request_ends(request),
            }
        }
    }

    /// The requests of a run that were granted, and those that wait.
    pub(super) fn requests_of(&self, run: RunIndex) -> (usize, usize) {
        let own = self.requests.values().filter(|sent| sent.run == run);
        let granted = own.clone().filter(|sent| sent.granted).count();
        (granted, own.count() - granted)
    }

    pub(super) fn left(&self, run: RunIndex) -> Option<u64> {
        Unit::Tokens.of(self.machine.books.ledger.left(self.id(run)))
    }
}

fn metered(tokens: u64) -> World {
    World::quiet(Limits { budget_tokens: Some(tokens), metered: true, ..Limits::default() })
}

#[test]
fn no_request_leaves_without_its_reservation() {
    let mut world = metered(1_000);
    let piece = world.spawn_piece();
    let has = world.left(piece).expect("a budget");
    world.ask_model(piece, has - 100);
    assert_eq!((world.requests_of(piece), world.left(piece)), ((1, 0), Some(100)));
    let reserved = world.record.last().map(|event| event.kind.name());
    assert_eq!(reserved, Some("request_reserved"), "on record before it leaves");
    // A second one waits until the first is over, and is not refused.
    world.ask_model(piece, 200);
    assert_eq!(world.requests_of(piece), (1, 1));
    let first = *world.requests.keys().next().expect("it is open");
    world.end_request(first, RequestEnding::Answered, 50);
    assert_eq!((world.requests_of(piece), world.left(piece)), ((1, 0), Some(has - 250)));
    // One that can never fit is refused at once.
    world.ask_model(piece, has);
    assert_eq!(world.requests_of(piece), (1, 0));
    assert_eq!(world.times("request refused"), 1);
}

#[test]
fn at_the_cap_a_request_waits_for_more_budget_where_the_run_pauses_there() {
    let limits = Limits {
        budget_tokens: Some(1_000),
        metered: true,
        pauses_at_cap: true,
        ..Limits::default()
    };
    let mut world = World::quiet(limits);
    let [piece, other] = [(); 2].map(|()| world.spawn_piece());
    let held = |world: &World| {
        let is_held = |event: &&Event| event.kind.name() == "request_held";
        world.record.iter().filter(is_held).count()
    };
    world.ask_model(piece, 5_000);
    assert_eq!(
        (world.requests_of(piece), held(&world)),
        ((0, 1), 1),
        "it waits, and that is on record"
    );
    // It is tried again with each step, and recorded once.
    world.ask_model(other, 1);
    world.advance(1_000);
    assert_eq!((world.requests_of(piece), held(&world)), ((0, 1), 1));
    world.raise(piece, 10_000).expect("it lives under a budget");
    assert_eq!(world.requests_of(piece), (1, 0), "the operator has given more");
    // A program that gives up at the cap has failed for its budget.
    world.ask_model(piece, 50_000);
    assert_eq!(held(&world), 2);
    world.finish_because(piece, Reason::ExitCode { code: 1 });
    let ended = world.last_ending().map(|ending| ending.reason.clone());
    let request = Some(RequestShortage { bound: 50_000, left: 5_500 });
    assert_eq!(ended, Some(Reason::Budget { unit: "tokens".to_owned(), request }));
    // One that comes again with a smaller bound is told so at once.
    let (request, model) = (9_999, Arc::from("model"));
    let ask = RequestAsk {
        run: other,
        request,
        model,
        tokens: 50_000,
        usd: None,
        is_last: false,
        is_shortened: false,
    };
    world.step(Input::RequestAsked(ask));
    assert_eq!(held(&world), 2);
}

/// A program that gives up at the cap loses nothing where its session goes on: its run stands in line until there is more, over the death of
/// its supervisor too.
#[test]
fn a_session_that_gave_up_at_the_cap_waits_for_more_budget() {
    let limits = Limits {
        budget_tokens: Some(1_000),
        metered: true,
        pauses_at_cap: true,
        resumes: true,
        max_concurrent: 1,
        ..Limits::default()
    };
    for dies in [false, true] {
        let mut world = World::quiet(limits);
        let [piece, other] = [(); 2].map(|()| world.spawn_piece());
        world.ask_model(piece, 5_000);
        world.finish_because(piece, Reason::ExitCode { code: 1 });
        assert_eq!(world.holding(), [other], "it holds no slot");
        if dies {
            world.die(Duration::ZERO);
            while world.claim() {}
            assert_eq!(world.holding(), [other]);
        }
        world.finish(other);
        world.advance(3_600_000);
        assert!(world.holding().is_empty(), "time alone gives nothing");
        world.raise(piece, 10_000).expect("it lives under a budget");
        assert_eq!(world.holding(), [piece]);
        world.ask_model(piece, 5_000);
        assert_eq!(world.requests_of(piece), (1, 0));
        world.finish(piece);
        assert_eq!(world.status(piece), Some(RunStatus::Completed));
    }
}

#[test]
fn a_run_that_gives_up_at_its_budget_failed_for_its_budget() {
    let mut world = metered(1_000);
    let [piece, other, third] = [(); 3].map(|()| world.spawn_piece());
    let ended = |world: &World| world.last_ending().map(|ending| ending.reason.clone());
    world.ask_model(piece, 5_000);
    world.finish_because(piece, Reason::ExitCode { code: 1 });
    let request = Some(RequestShortage { bound: 5_000, left: 500 });
    assert_eq!(ended(&world), Some(Reason::Budget { unit: "tokens".to_owned(), request }));
    // One that did its work without that request is a success.
    world.ask_model(other, 5_000);
    world.finish(other);
    assert_eq!(world.status(other), Some(RunStatus::Completed));
    // One that asked for less since, and was answered, has failed for another reason.
    world.ask_model(third, 5_000);
    world.ask_model(third, 10);
    world.finish_because(third, Reason::ExitCode { code: 1 });
    assert_eq!(ended(&world), Some(Reason::ExitCode { code: 1 }));
}

#[test]
fn a_request_that_was_under_way_at_a_crash_is_charged_at_its_bound() {
    let limits =
        Limits { budget_tokens: Some(1_000), metered: true, resumes: true, ..Limits::default() };
    let mut world = World::quiet(limits);
    let piece = world.spawn_piece();
    let has = world.left(piece).expect("a budget");
    world.ask_model(piece, 100);
    let first = *world.requests.keys().next().expect("it is open");
    world.end_request(first, RequestEnding::Answered, 30);
    world.ask_model(piece, 200);
    world.crash();
    assert_eq!(world.left(piece), Some(has - 230), "it goes on with the rest of its grant");
    assert_eq!(world.holding(), [piece]);
    world.ask_model(piece, has - 230);
    assert_eq!(world.requests_of(piece), (1, 0), "all of the rest can be used");
    world.finish(piece);
    let of_root =
        |world: &World| world.machine.books.ledger.balance(world.id(RunIndex::ROOT), Unit::Tokens);
    assert_eq!(of_root(&world).map(|root| root.overrun), Some(0));
}

#[test]
fn what_is_added_to_a_budget_lets_waiting_requests_leave() {
    let mut world = metered(1_000);
    let piece = world.spawn_piece();
    let has = world.left(piece).expect("a budget");
    world.ask_model(piece, has);
    world.ask_model(piece, 300);
    assert_eq!(world.requests_of(piece), (1, 1));
    world.raise(piece, 300).expect("it has a budget");
    assert_eq!(world.requests_of(piece), (2, 0));
}

#[test]
fn a_run_that_is_to_stop_asks_no_model() {
    let mut world = metered(1_000);
    let piece = world.spawn_piece();
    world.cancel(piece, Reach::Subtree, CancelledBy::Operator);
    world.ask_model(piece, 1);
    assert_eq!((world.requests_of(piece), world.times("request_reserved")), ((0, 0), 0));
}

/// Pieces of one pool hold no more of it than their requests need, and wait for each other instead of being refused.
#[test]
fn requests_of_a_pool_wait_for_those_beside_them() {
    let limits =
        Limits { budget_tokens: Some(1_000), metered: true, pools: true, ..Limits::default() };
    let mut world = World::quiet(limits);
    world.fan_out(3);
    let first = world.holding()[0];
    world.ask_model(first, 400);
    let only = |world: &World| *world.requests.keys().next().expect("it is open");
    let request = only(&world);
    world.end_request(request, RequestEnding::Answered, 100);
    world.finish(first);
    let [second, third] = world.holding()[..] else { panic!("each probably uses 100 of 900") };
    world.ask_model(second, 600);
    world.ask_model(third, 600);
    assert_eq!((world.requests_of(second), world.requests_of(third)), ((1, 0), (0, 1)));
    let request = only(&world);
    world.end_request(request, RequestEnding::Answered, 50);
    assert_eq!((world.requests_of(second), world.requests_of(third)), ((0, 0), (1, 0)));
    // 150 are used: 850 is the most that one of them could ever have.
    world.ask_model(second, 851);
    assert_eq!(world.requests_of(second), (0, 0), "it is refused");
    world.ask_model(second, 850);
    assert_eq!(world.requests_of(second), (0, 1), "it waits");
    world.crash();
}

/// Unknown is not zero, and a run whose requests have no price is one run of unknown cost.
#[test]
fn requests_without_a_price_are_one_unknown_cost() {
    let mut world = World::quiet(Limits { metered: true, resumes: true, ..Limits::default() });
    let piece = world.spawn_piece();
    for _ in 0..2 {
        world.ask_model(piece, 100);
    }
    world.crash();
    world.finish(piece);
    let costs: Vec<Cost> = world
        .record
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Ended(ending) => Some(ending.cost),
            _ => None,
        })
        .collect();
    assert_eq!(costs, [Cost::unknown()]);
}

/// The requests of a program that were refused, as the record tells of them: the code, and the number where it is not the first.
fn refused(world: &World) -> Vec<(&str, Option<u64>)> {
    let of = |event: &Event| match &event.kind {
        EventKind::RequestRefused { code, times, .. } => Some((code.clone(), *times)),
        _ => None,
    };
    let all = world.record.iter().filter_map(of);
    let name = |code: &str| if code == "rate" { "rate" } else { "model" };
    all.map(|(code, times)| (name(&code), times)).collect()
}

#[test]
fn requests_that_are_refused_in_a_loop_are_recorded_once_and_counted() {
    let mut world = metered(1_000);
    let piece = world.spawn_piece();
    for (code, times) in [("rate", 3), ("model", 1)] {
        for _ in 0..times {
            let (code, message) = (code.into(), "not now".into());
            world.step(Input::RequestRefused { run: piece, code, message });
        }
    }
    assert_eq!(refused(&world), [("rate", None), ("model", None)]);
    world.finish(piece);
    assert_eq!(refused(&world)[2..], [("rate", Some(2))], "with the end, the other two");
}

/// A runtime of programs of which nothing is known where they ask nothing through the meter.
fn unknown_where_it_asks_nothing(world: &World) -> Arc<RuntimeFacts> {
    let unasked_cost = CostKnowledge::Unknown;
    Arc::new(RuntimeFacts { unasked_cost, ..(*world.facts).clone() })
}

/// Ends a metered run whose program says this of its use, after these charges of requests; returns what is on record.
fn metered_use(charges: &[(u64, Cost)], reason: Reason, said: (u64, Cost)) -> (Usage, Cost) {
    let mut world = World::quiet(Limits { metered: true, ..Limits::default() });
    world.facts = unknown_where_it_asks_nothing(&world);
    let piece = world.spawn_piece();
    for &(used, cost) in charges {
        world.ask_model(piece, 100);
        let request = *world.requests.keys().next().expect("it is open");
        world.requests.clear();
        let (model, ending) = (Arc::from("model"), RequestEnding::Answered);
        let usage = tokens(used);
        let over = RequestOver {
            run: piece,
            request,
            model,
            ending,
            usage,
            cost,
            is_pressure: false,
            is_cut: false,
        };
        world.step(Input::RequestOver(over));
    }
    world.actors.remove(&piece).expect("it runs");
    let ending = Ending { usage: tokens(said.0), cost: said.1, ..Ending::of(reason) };
    world.step(Input::Finished { run: piece, outcome: Box::new(Outcome::from(ending)) });
    let ended = world.record.iter().rev().find_map(|event| match &event.kind {
        EventKind::Ended(ending) => Some((ending.usage, ending.cost)),
        _ => None,
    });
    ended.expect("it has ended")
}

#[test]
fn what_went_through_the_meter_counts_and_a_program_is_believed_where_it_says_more() {
    let done = || Reason::Completed { exit_code: None };
    let cents = |count: u64| MicroUsd::from_micros(count * 10_000);
    let charged = Cost::metered(cents(10));
    let said = Cost { known_usd: cents(500), ..Cost::NONE };
    let once = &[(30, charged)][..];
    assert_eq!(metered_use(once, done(), (0, said)), (tokens(30), charged), "it has a price");
    assert_eq!(metered_use(once, done(), (30, said)), (tokens(30), charged));
    let beside = (tokens(31), charged.cut_off());
    assert_eq!(metered_use(once, done(), (31, said)), beside, "one went another way");
    // Without a price its word is all there is, unless it knows nothing either.
    let unpriced = &[(30, Cost::unknown())][..];
    assert_eq!(metered_use(unpriced, done(), (30, said)), (tokens(30), said));
    assert_eq!(metered_use(unpriced, done(), (30, said.cut_off())), (tokens(30), Cost::unknown()));
}

#[test]
fn of_a_program_that_asks_nothing_through_the_meter_nothing_is_known() {
    let not_known = (Usage::UNKNOWN, Cost::unknown());
    let gone = Reason::CannotStart { message: "no such file".into() };
    assert_eq!(metered_use(&[], Reason::ExitCode { code: 1 }, (0, Cost::NONE)), not_known);
    assert_eq!(metered_use(&[], gone, (0, Cost::NONE)), (Usage::default(), Cost::NONE));
    // One that is refused for its budget asks the meter, and one that is refused for another reason may ask elsewhere.
    let nothing = (Usage::default(), Cost::NONE);
    for (code, expected) in [("budget_exhausted", nothing), ("unpriced", not_known)] {
        let mut world = metered(1_000);
        world.facts = unknown_where_it_asks_nothing(&world);
        let piece = world.spawn_piece();
        world.ask_model(piece, 5_000);
        let (code, message) = (code.into(), "no".into());
        world.step(Input::RequestRefused { run: piece, code, message });
        world.finish(piece);
        assert_eq!(last_use(&world), expected);
    }
}

/// The use of the run that has ended last.
fn last_use(world: &World) -> (Usage, Cost) {
    let ended = world.record.iter().rev().find_map(|event| match &event.kind {
        EventKind::Ended(ending) => Some((ending.usage, ending.cost)),
        _ => None,
    });
    ended.expect("one has ended")
}

/// The estimate of a runtime that a request might have been answered, of which the meter knows that it did not leave.
#[test]
fn a_request_that_was_held_and_given_up_costs_nothing() {
    for pauses_at_cap in [true, false] {
        let limits = Limits {
            budget_tokens: Some(1_000),
            metered: true,
            pauses_at_cap,
            ..Limits::default()
        };
        let mut world = World::quiet(limits);
        world.facts = unknown_where_it_asks_nothing(&world);
        let piece = world.spawn_piece();
        world.ask_model(piece, 5_000);
        if !pauses_at_cap {
            let (code, message) = ("budget_exhausted".into(), "no".into());
            world.step(Input::RequestRefused { run: piece, code, message });
        }
        world.cancel(piece, Reach::Subtree, CancelledBy::Operator);
        world.actors.remove(&piece).expect("it runs");
        world.requests.clear();
        let input = TokenCount::Estimated(1_232);
        let usage = Usage { input, output: TokenCount::Unknown, ..Usage::default() };
        let reason = Reason::Cancelled { by: CancelledBy::Operator };
        let ending = Ending { usage, cost: Cost::unknown(), ..Ending::of(reason) };
        world.step(Input::Finished { run: piece, outcome: Box::new(Outcome::from(ending)) });
        assert_eq!(last_use(&world), (Usage::default(), Cost::NONE), "{pauses_at_cap}");
        let root = world.machine.books.ledger.balance(world.id(RunIndex::ROOT), Unit::Tokens);
        assert_eq!(root.map(|root| root.used), Some(0));
    }
}

/// The next supervisors know it too: a program that asks the meter, and is held or told no, does not ask elsewhere.
#[test]
fn an_attempt_that_is_lost_while_its_request_was_held_or_too_much_costs_nothing() {
    for pauses_at_cap in [true, false] {
        let limits = Limits { budget_tokens: Some(1_000), metered: true, ..Limits::default() };
        let mut world = World::quiet(Limits { pauses_at_cap, resumes: true, ..limits });
        world.facts = unknown_where_it_asks_nothing(&world);
        let piece = world.spawn_piece();
        world.ask_model(piece, 5_000);
        if !pauses_at_cap {
            let (code, message) = ("budget_exhausted".into(), "no".into());
            world.step(Input::RequestRefused { run: piece, code, message });
        }
        // The second one finds the end of the lost attempt on record, and after it the next.
        for used in [7, 0] {
            world.crash();
            world.ask_model(piece, 10);
            let request = *world.requests.keys().next().expect("it is open");
            world.end_request(request, RequestEnding::Answered, used);
        }
        world.finish(piece);
        assert_eq!(last_use(&world), (tokens(7), Cost::NONE), "{pauses_at_cap}");
    }
}

/// The meter lets a request wait for some minutes. That there was no room for it then is no fault of a service, and what fails before is.
#[test]
fn a_request_that_has_waited_in_vain_fails_its_run_for_its_budget() {
    let fault = Reason::RuntimeError { message: "402".into(), retryable: false };
    let budget = Reason::Budget { unit: "tokens".to_owned(), request: None };
    for (code, expected) in [("held_too_long", budget), ("unpriced", fault.clone())] {
        let mut world = metered(1_000);
        let piece = world.spawn_piece();
        let has = world.left(piece).expect("a budget");
        for most in [has / 2, has] {
            world.ask_model(piece, most);
        }
        assert_eq!(world.requests_of(piece), (1, 1));
        let (code, message) = (code.into(), "no".into());
        world.step(Input::RequestRefused { run: piece, code, message });
        world.actors.remove(&piece).expect("it runs");
        world.requests.clear();
        let outcome = Box::new(Outcome::from(Ending::of(fault.clone())));
        world.step(Input::Finished { run: piece, outcome });
        let ended = world.record.iter().rev().find_map(|event| match &event.kind {
            EventKind::Ended(ending) => Some(ending.reason.clone()),
            _ => None,
        });
        assert_eq!(ended, Some(expected));
    }
}

#[test]
fn of_a_lost_attempt_that_asked_nothing_nothing_is_known_whatever_one_before_it_asked() {
    let mut world = World::quiet(Limits { metered: true, resumes: true, ..Limits::default() });
    world.facts = unknown_where_it_asks_nothing(&world);
    let piece = world.spawn_piece();
    for used in [7, 1] {
        world.ask_model(piece, 10);
        let request = *world.requests.keys().next().expect("it is open");
        world.end_request(request, RequestEnding::Answered, used);
        if used == 7 {
            world.crash();
            // This attempt asks nothing.
            world.crash();
        }
    }
    world.finish(piece);
    assert_eq!(last_use(&world).1, Cost::unknown());
}
