//! Tests of what a tree that was read back counts, and of which of its runs go on.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use offshoot_config::OnInterrupt;
use offshoot_model::{
    AgentId, CancelledBy, Changes, ContentHash, ContextEntry, Cost, CostKnowledge, Ending, Event,
    EventKind, InputRange, Isolation, MicroUsd, Origin, Payload, Reason, RootId, RunStatus,
    SpawnRequest, TokenCount, Usage, ValueKind, VariableRef,
};
use offshoot_policy::budget::Unit;
use offshoot_policy::{Fallback, RuntimeFacts};
use offshoot_runtime::{EXEC, RunEvent};

use super::super::{Effect, Library, Machine, Opening, Reach, Recall, Recalled, RunIndex};
use super::limits::Limits;
use super::world::{World, id, tokens};
use crate::{LeftChange, RootKind};

fn ending(world: &World, run: RunIndex) -> Option<&Ending> {
    let id = world.id(run);
    world.ledger.events.iter().find_map(|event| match &event.kind {
        EventKind::Ended(ending) if event.run == id => Some(&**ending),
        _ => None,
    })
}

#[test]
fn what_never_started_costs_nothing() {
    let check = |max_concurrent, expected: u128| {
        let budget_tokens = Some(1_000);
        let mut world = World::quiet(Limits { max_concurrent, budget_tokens, ..Limits::default() });
        let (parent, child) = world.family();
        world.crash();
        assert_eq!(world.status(child), Some(RunStatus::Lost), "no run asks for it any more");
        let balance = world.machine.books.ledger.balance(world.id(parent), Unit::Tokens);
        assert_eq!(balance.expect("it has a budget").used, expected);
    };
    // The parent, which is run again and has told nothing, is charged half of what it had left.
    check(1, 125);
    // In any case the child had half of the half.
    check(2, 125 + 250);
}

/// A run that is killed in its first request comes to the end of its budget with the third time.
#[test]
fn no_number_of_kills_makes_requests_free() {
    let budget_tokens = Some(1_000);
    let mut world = World::quiet(Limits { budget_tokens, ..Limits::default() });
    let piece = world.spawn_piece();
    let mut used = 0;
    for more in [Some(250), Some(125), None] {
        assert_eq!(world.holding(), [piece], "it goes on after {used}");
        world.die(Duration::ZERO);
        while world.claim() {}
        let balance = world.machine.books.ledger.balance(world.id(piece), Unit::Tokens);
        match more {
            None => assert_eq!(balance, None, "it is over"),
            Some(more) => {
                used += more;
                assert_eq!(balance.expect("it has a budget").used, used);
            }
        }
    }
    let reason = ending(&world, piece).map(|ending| &ending.reason);
    assert_eq!(reason, Some(&Reason::Budget { unit: "tokens".into(), request: None }));
    world.close();
    world.assert_ended();
}

#[test]
fn what_an_interrupted_attempt_may_have_used_is_charged_as_a_request_of_it() {
    let settled = |limits| {
        let mut world = World::quiet(limits);
        world.spawn_piece();
        world.crash();
        let reserved = world.record.iter().find_map(|event| match event.kind {
            EventKind::RequestReserved { request, tokens, micro_usd, .. } => {
                Some((request, tokens, micro_usd))
            }
            _ => None,
        });
        let settled = world.record.iter().find_map(|event| match event.kind {
            EventKind::RequestSettled { request, usage, cost, .. } => Some((request, usage, cost)),
            _ => None,
        });
        (reserved.expect("it was taken for lost"), settled.expect("it was charged"))
    };
    let in_tokens = Limits { budget_tokens: Some(1_000), ..Limits::default() };
    let usage = Usage { input: TokenCount::Estimated(250), ..Usage::default() };
    assert_eq!(settled(in_tokens), ((1, 250, Some(0)), (1, usage, Cost::NONE)));
    let in_dollars = Limits { budget_usd: Some(1), ..Limits::default() };
    let cost = Cost::estimated(MicroUsd::from_micros(250_000));
    assert_eq!(settled(in_dollars), ((1, 0, Some(250_000)), (1, Usage::default(), cost)));
}

#[test]
fn a_piece_that_is_at_its_limit_ends_and_nothing_of_it_runs() {
    let mut world = World::quiet(Limits { budget_tokens: Some(1_000), ..Limits::default() });
    let piece = world.spawn_piece();
    world.child_of(piece);
    world.use_tokens(piece, 250);
    // It is not known what the child has used, so it was all it had, and so the rest of what the piece had.
    world.crash();
    assert!(world.holding().is_empty());
    let reason = ending(&world, piece).map(|ending| &ending.reason);
    assert_eq!(reason, Some(&Reason::Budget { unit: "tokens".into(), request: None }));
    world.close();
    world.assert_ended();
}

#[test]
fn a_piece_that_is_stopped_before_its_owner_asks_for_it_never_runs() {
    let mut world = World::quiet(Limits::default());
    let piece = world.spawn_piece();
    world.die(Duration::ZERO);
    world.stop_all(false);
    while world.claim() {}
    assert!(world.holding().is_empty());
    assert_eq!(world.status(piece), Some(RunStatus::Cancelled));
    world.close();
    world.assert_ended();
}

#[test]
fn time_without_a_supervisor_never_counts() {
    let mut world = World::quiet(Limits { deadline_seconds: 60, ..Limits::default() });
    let piece = world.spawn_piece();
    for _ in 0..2 {
        world.advance(20_000);
        world.use_tokens(piece, 1);
        world.die(Duration::from_secs(1_000));
        while world.claim() {}
    }
    world.advance(19_999);
    assert!(world.asked_to_stop().is_empty());
    world.advance(1);
    assert_eq!(world.asked_to_stop(), [piece]);
}

#[test]
fn a_run_has_what_is_left_of_its_time() {
    let mut world = World::quiet(Limits { run_timeout_seconds: 10, ..Limits::default() });
    let piece = world.spawn_piece();
    world.advance(6_000);
    world.use_tokens(piece, 1);
    world.die(Duration::from_secs(1_000));
    while world.claim() {}
    world.advance(3_999);
    assert!(world.asked_to_stop().is_empty());
    world.advance(1);
    assert_eq!(world.asked_to_stop(), [piece]);
}

#[test]
fn what_an_interrupted_attempt_told_stays_a_lower_bound() {
    let check = |told: Option<u64>, deaths, expected| {
        let mut world = World::quiet(Limits { budget_tokens: Some(1_000), ..Limits::default() });
        let piece = world.spawn_piece();
        if let Some(told) = told {
            world.use_tokens(piece, told);
        }
        // From the second one on it stands in line.
        for _ in 0..deaths {
            world.die(Duration::ZERO);
        }
        while world.claim() {}
        world.finish(piece);
        assert_eq!(world.status(piece), Some(RunStatus::Completed));
        let used = ending(&world, piece).map(|ending| ending.usage.total());
        assert_eq!(used, Some(expected), "{told:?}, {deaths} times");
    };
    for deaths in [1, 2, 3] {
        // Half of its own half of the budget: a request of it may have been answered, and have used more than that.
        check(None, deaths, TokenCount::AtLeast(250));
        check(Some(20), deaths, TokenCount::AtLeast(20));
    }
    check(Some(20), 0, TokenCount::Known(20));
}

#[test]
fn pieces_that_are_not_asked_for_again_end_with_the_root() {
    let mut world = World::quiet(Limits { max_concurrent: 1, ..Limits::default() });
    let pieces = [(); 3].map(|()| world.spawn_piece());
    world.die(Duration::ZERO);
    assert!(world.claim());
    let [runs] = world.holding()[..] else { panic!("one was asked for again") };
    world.close();
    for piece in pieces.into_iter().filter(|piece| *piece != runs) {
        assert_eq!(world.status(piece), Some(RunStatus::Lost));
    }
    world.finish(runs);
    world.assert_ended();
}

#[test]
fn what_costs_nothing_is_charged_nothing_where_it_was_interrupted() {
    let mut world = World::quiet(Limits { budget_tokens: Some(1_000), ..Limits::default() });
    let free = RuntimeFacts { cost: CostKnowledge::None, ..(*world.facts).clone() };
    world.facts = free.into();
    let piece = world.spawn_piece();
    world.crash();
    assert_eq!(world.holding(), [piece]);
    assert_eq!(world.times("request_settled"), 0);
}

/// The first versions wrote zeros at the end of what was interrupted, where they meant that nothing was known.
#[test]
fn zeros_at_the_end_of_what_was_interrupted_are_not_believed() {
    let used = |usage, ends: fn(&World, RunIndex) -> RunIndex| {
        let limits = Limits { budget_tokens: Some(1_000), max_concurrent: 1, ..Limits::default() };
        let mut world = World::quiet(limits);
        let pieces = [(); 2].map(|()| world.spawn_piece());
        let run = ends(&world, pieces[1]);
        let last = world.record.last().expect("it has begun").clone();
        let ending = Ending { usage, ..Ending::of(Reason::Interrupted) };
        let (seq, run) = (last.seq + 1, world.id(run));
        world.record.push(Event { seq, run, kind: EventKind::Ended(Box::new(ending)), ..last });
        let recall = world.read_again();
        let root = recall.machine().books.ledger.balance(world.id(RunIndex::ROOT), Unit::Tokens);
        root.map(|root| root.used)
    };
    let started: fn(&World, RunIndex) -> RunIndex = |world, _| world.holding()[0];
    let in_line: fn(&World, RunIndex) -> RunIndex = |_, run| run;
    assert_eq!(used(Usage::default(), started), Some(500), "all that it had");
    assert_eq!(used(tokens(10), started), Some(10), "this is no zero");
    assert_eq!(used(Usage::default(), in_line), Some(0), "it never started");
}

#[test]
fn what_an_attempt_has_told_of_its_cost_is_charged_alone_where_it_was_interrupted() {
    let mut world = World::quiet(Limits { budget_usd: Some(1), ..Limits::default() });
    let piece = world.spawn_piece();
    let cost = Cost { known_usd: MicroUsd::from_micros(1_000), ..Cost::NONE };
    world.tells(piece, RunEvent::Used { usage: tokens(10), cost });
    world.crash();
    assert_eq!(world.holding(), [piece]);
    assert_eq!(world.times("request_settled"), 0);
}

fn changes() -> Box<Changes> {
    Box::new(Changes {
        isolation: Isolation::Copy,
        of: Arc::new("folder".into()),
        base: None,
        patch: None,
        files: 3,
        notes: Vec::new(),
    })
}

/// The folder of the run stands on the shelf as the last attempt has left it, and no attempt has worked since.
#[test]
fn a_run_in_line_with_changes_is_not_charged_again_when_its_supervisor_dies_too() {
    for is_new in [false, true] {
        let limits = Limits {
            budget_tokens: Some(1_000),
            on_interrupt: Some(OnInterrupt::Rerun),
            ..Limits::default()
        };
        let mut world = World::quiet(limits);
        let piece = world.spawn_piece();
        let left = |world: &World, is_new: bool| {
            let left = LeftChange { changes: changes(), is_new };
            HashMap::from([(world.id(piece), left)])
        };
        let first = left(&world, true);
        world.die_and(|recall| recall.left(first));
        assert_eq!((world.times("resumed"), world.times("request_settled")), (1, 1));
        let second = left(&world, is_new);
        world.die_and(|recall| recall.left(second));
        let again = if is_new { 2 } else { 1 };
        assert_eq!((world.times("resumed"), world.times("request_settled")), (again, again));
    }
}

#[test]
fn what_an_interrupted_attempt_has_changed_stands_on_record() {
    for on_interrupt in [OnInterrupt::Lost, OnInterrupt::Rerun] {
        let limits = Limits { on_interrupt: Some(on_interrupt), ..Limits::default() };
        let mut world = World::quiet(limits);
        let piece = world.spawn_piece();
        let changes = changes();
        let left = LeftChange { changes: changes.clone(), is_new: true };
        let left = HashMap::from([(world.id(piece), left)]);
        world.die_and(|recall| recall.left(left));
        let found = world.record.iter().find_map(|event| match &event.kind {
            EventKind::Ended(ending) => ending.changes.clone(),
            EventKind::Resumed { changes, .. } => changes.clone(),
            _ => None,
        });
        assert_eq!(found, Some(changes), "{on_interrupt:?}");
    }
}

/// The tree of an agent that is its root, read back after so many of the events with which it begins, where these runtimes are.
fn root_read_back(world: &World, events: usize, library: &impl Library) -> Recall {
    let (root, agent) = (RootId::new(id(1)), AgentId::main());
    let mut machine = Machine::new(world.config.clone(), root, &agent);
    let opening = Opening {
        kind: RootKind::Run,
        run: id(1),
        agent,
        task: Payload::text("work"),
        request: SpawnRequest { task: "work".into(), ..SpawnRequest::default() },
        facts: Some(Arc::clone(&world.facts)),
        fallbacks: None,
        plan: None,
    };
    let effects = machine.open(world.now, opening).expect("it is admitted");
    let recorded = effects.into_iter().filter_map(|effect| match effect {
        Effect::Record(event) => Some(Event::clone(&event)),
        _ => None,
    });
    let mut recorded = recorded.take(events).peekable();
    let Some(EventKind::Admitted(admitted)) = recorded.peek().map(|event| &event.kind) else {
        panic!("its admission comes first")
    };
    let mut recall = Recall::new(world.config.clone(), root, admitted, u64::MAX);
    recorded.for_each(|event| recall.apply(event, library).expect("the record fits together"));
    recall
}

#[test]
fn a_root_whose_start_is_not_on_record_stands_in_line_as_before() {
    let world = World::quiet(Limits::default());
    let recall = root_read_back(&world, 1, &world);
    assert!(recall.root_goes_on());
    let Recalled { effects, waiting, .. } = recall.reopen(world.now);
    let waits = waiting.iter().map(|waiting| (waiting.run, waiting.continues));
    assert_eq!(waits.collect::<Vec<_>>(), [(RunIndex::ROOT, false)]);
    let recorded = effects.iter().filter_map(|effect| match effect {
        Effect::Record(event) => Some(event.kind.name()),
        _ => None,
    });
    assert_eq!(recorded.collect::<Vec<_>>(), ["reopened", "starting"]);
}

#[test]
fn a_root_that_was_cut_off_goes_on_where_it_can_be_repeated() {
    let check = |on_interrupt, resumes, goes_on: bool| {
        let on_interrupt = Some(on_interrupt);
        let world = World::quiet(Limits { on_interrupt, resumes, ..Limits::default() });
        let recall = root_read_back(&world, usize::MAX, &world);
        assert_eq!(recall.root_goes_on(), goes_on, "{on_interrupt:?}, {resumes}");
        let Recalled { waiting, .. } = recall.reopen(world.now);
        assert_eq!(!waiting.is_empty(), goes_on, "{on_interrupt:?}, {resumes}");
    };
    check(OnInterrupt::Lost, false, false);
    check(OnInterrupt::Lost, true, true);
    check(OnInterrupt::Rerun, false, true);
    // One that holds pieces goes on with them.
    let world = World::quiet(Limits::default());
    assert!(world.read_back().root_goes_on());
}

/// No runtime is here any more.
struct NoRuntimes;

impl Library for NoRuntimes {
    fn facts(&self, _runtime: &str) -> Option<Arc<RuntimeFacts>> {
        None
    }

    fn fallbacks(&self, _agent: &AgentId, _on: &str) -> Option<Arc<[Fallback]>> {
        None
    }

    fn task(&self, _task: &Payload) -> Arc<str> {
        "".into()
    }
}

#[test]
fn a_run_whose_runtime_is_not_here_does_not_go_on() {
    let world = World::quiet(Limits { resumes: true, ..Limits::default() });
    for events in [1, usize::MAX] {
        assert_eq!(root_read_back(&world, events, &world).missing_runtime(), None);
        let recall = root_read_back(&world, events, &NoRuntimes);
        assert_eq!(recall.missing_runtime(), Some((id(1), "test".into())));
        assert!(!recall.root_goes_on());
    }
}

#[test]
fn a_piece_that_was_not_needed_any_more_is_no_failure_after_a_crash() {
    for (by, unneeded) in [(CancelledBy::EarlyAnswer, true), (CancelledBy::Operator, false)] {
        let mut world = World::quiet(Limits::default());
        let piece = world.spawn_piece();
        world.cancel(piece, Reach::Subtree, by);
        let Recalled { ending, .. } = world.read_back().reopen(world.now);
        let ending = ending.iter().map(|piece| (piece.run, piece.unneeded));
        assert_eq!(ending.collect::<Vec<_>>(), [(piece, unneeded)]);
    }
}

#[test]
fn the_parts_of_files_that_pieces_read_are_known_by_their_places() {
    let mut world = World::quiet(Limits::default());
    (0..3).for_each(|_| _ = world.spawn_piece());
    let range = |(path, offset): (&str, u64)| InputRange {
        path: Arc::new(path.into()),
        offset,
        length: 10,
        header: 0,
        hash: None,
    };
    let ranges = [("one", 0), ("one", 10), ("other", 0)].map(range);
    let mut inputs = ranges.iter().cloned();
    for event in &mut world.record {
        if let EventKind::Admitted(admitted) = &mut event.kind
            && admitted.place.is_some()
        {
            admitted.input = inputs.next();
        }
    }
    let expected: Vec<_> = world.places.keys().copied().zip(ranges).collect();
    assert_eq!(world.read_again().inputs(), expected);
}

#[test]
fn a_piece_that_ends_with_its_supervisor_stays_without_an_answer() {
    let limits = Limits { on_interrupt: Some(OnInterrupt::Lost), ..Limits::default() };
    let mut world = World::quiet(limits);
    let [answered, _] = [(); 2].map(|()| world.spawn_piece());
    world.finish(answered);
    let mut staying = world.read_back().staying();
    staying.sort_unstable();
    let expected: Vec<_> = world.places.keys().copied().zip([true, false]).collect();
    assert_eq!(staying, expected);
}

#[test]
fn a_run_is_known_again_by_all_that_it_was_asked() {
    let mut world = World::quiet(Limits { resumes: true, ..Limits::default() });
    let piece = world.spawn_piece();
    let value = VariableRef { hash: ContentHash::of(b"x"), size: 1, kind: ValueKind::Text };
    let context = vec![ContextEntry { name: "notes".into(), value }];
    let command = Some(Arc::from(["work".to_owned()]));
    let requests = [
        SpawnRequest { context, ..SpawnRequest::default() },
        SpawnRequest { command, ..SpawnRequest::default() },
    ];
    let children = requests
        .map(|request| world.spawn(piece, Origin::Agent, request).expect("the piece may spawn"));
    let lineages = |machine: &Machine| children.map(|child| machine.lineage(child));
    assert_eq!(lineages(world.read_back().machine()), lineages(&world.machine));
}

#[test]
fn a_program_costs_after_a_crash_what_it_cost_before() {
    let mut world = World::quiet(Limits::default());
    let program = |cost| RuntimeFacts { name: EXEC.into(), cost, ..(*world.facts).clone() };
    let [plain, chosen] = [CostKnowledge::None, CostKnowledge::Unknown].map(program);
    world.facts = plain.into();
    let piece = world.spawn_piece();
    // The command of the operator costs nothing. One that an agent has chosen may call a model.
    world.facts = chosen.into();
    let command = Some(Arc::from(["work".to_owned()]));
    let request = SpawnRequest { command, ..SpawnRequest::default() };
    let child = world.spawn(piece, Origin::Agent, request).expect("the piece may spawn");
    let recall = world.read_again();
    let costs = [piece, child].map(|run| recall.machine().runs.live(run).map(|live| live.cost));
    assert_eq!(costs, [CostKnowledge::None, CostKnowledge::Unknown].map(Some));
}
