//! The scenario in which everything happens passes, and each way of forging its record is found.

#[path = "forged/again.rs"]
mod again;
mod script;

use std::sync::Arc;
use std::time::Duration;

use offshoot_audit::{Audit, Breach, Rule, Unit};
use offshoot_model::{
    Admitted, Cost, DeliveryId, Ending, Event, EventClass, EventKind, Origin, Payload, Reason,
    RootId, Rules, RunId, RunStatus, Timestamp, TokenCount, Usage,
};
use offshoot_test_support::scenario;

/// The kept events of the first tree, whole.
fn record() -> Vec<Event> {
    let [first, ..] = scenario::trees();
    first.into_iter().filter(|event| event.kind.class() == EventClass::Kept).collect()
}

/// Returns the position of the n-th event of this name.
fn nth(events: &[Event], name: &str, n: usize) -> usize {
    let mut found = (0..events.len()).filter(|&at| events[at].kind.name() == name);
    found.nth(n).unwrap_or_else(|| panic!("there are not that many `{name}`"))
}

/// Returns the position of the event of this name about a run.
fn about(events: &[Event], run: RunId, name: &str) -> usize {
    let is_it = |event: &Event| event.run == run && event.kind.name() == name;
    events.iter().position(is_it).unwrap_or_else(|| panic!("no `{name}` of {run}"))
}

fn admitted(events: &mut [Event], run: RunId) -> &mut Admitted {
    let at = about(events, run, "admitted");
    match &mut events[at].kind {
        EventKind::Admitted(admitted) => admitted,
        _ => unreachable!("found by its name"),
    }
}

fn ending(events: &mut [Event], run: RunId) -> &mut Ending {
    let at = about(events, run, "ended");
    match &mut events[at].kind {
        EventKind::Ended(ending) => ending,
        _ => unreachable!("found by its name"),
    }
}

fn insert(events: &mut Vec<Event>, at: usize, run: RunId, kind: EventKind) {
    let like = events[at - 1].clone();
    events.insert(at, Event { run, kind, ..like });
}

/// Numbers the events anew, as a forger would.
fn renumber(events: &mut [Event]) {
    for (seq, event) in (1..).zip(events) {
        event.seq = seq;
    }
}

#[track_caller]
fn check(what: &str, forge: impl FnOnce(&mut Vec<Event>), expected: &[Rule]) -> Vec<Breach> {
    let mut events = record();
    forge(&mut events);
    renumber(&mut events);
    let breaches = Audit::of(&events).breaches;
    let rules: Vec<Rule> = breaches.iter().map(|breach| breach.rule).collect();
    assert_eq!(rules, expected, "{what}: {breaches:#?}");
    breaches
}

/// The root, the second piece, and the two that it asked for.
fn cast() -> (RunId, RunId, RunId, RunId) {
    let events = record();
    let children: Vec<&Event> = events
        .iter()
        .filter(|event| match &event.kind {
            EventKind::Admitted(admitted) => admitted.origin == Origin::Agent,
            _ => false,
        })
        .collect();
    let parent = match &children[0].kind {
        EventKind::Admitted(admitted) => admitted.parent.expect("an agent asked"),
        _ => unreachable!("chosen above"),
    };
    (events[0].run, parent, children[0].run, children[1].run)
}

#[test]
fn everything_passes() {
    let [first, second, third, fourth] = scenario::trees();
    let found = Audit::of(&first);
    assert_eq!(found.breaches, []);
    assert_eq!((found.runs, found.spawns, found.refusals, found.deepest), (10, 2, 12_346, 2));
    assert_eq!((found.deliveries.results, found.deliveries.repeated), (5, 0));
    assert_eq!(found.endings[&RunStatus::Completed], 5);
    assert_eq!((found.unfinished, found.clock_set_back), (0, 0));
    assert!(found.peak_concurrency <= 4 && found.not_recorded.is_empty());

    let found = Audit::of(&second);
    assert_eq!(found.breaches, []);
    assert_eq!(found.unfinished, 2, "it still goes on");

    let found = Audit::of(&third);
    assert_eq!(found.breaches, []);
    assert_eq!((found.runs, found.unfinished, found.deliveries.undelivered), (4, 0, 1));

    let found = Audit::of(&fourth);
    assert_eq!(found.breaches, []);
    assert_eq!((found.runs, found.unfinished, found.endings[&RunStatus::Completed]), (4, 0, 3));
}

#[test]
fn a_gap_and_a_stranger_are_found() {
    let mut events = record();
    events.remove(9);
    let breaches = Audit::of(&events).breaches;
    assert_eq!((breaches[0].rule, breaches[0].seq), (Rule::Sequence, 11));
    let mut events = record();
    events[9].root = RootId::new(RunId::from_bytes([7; 16]));
    assert_eq!(Audit::of(&events).breaches[0].rule, Rule::Sequence);
}

#[test]
fn lineage_is_counted_again() {
    let (root, parent, first, second) = cast();
    let stranger = RunId::from_bytes([7; 16]);
    check(
        "a parent that does not exist",
        |events| admitted(events, first).parent = Some(stranger),
        &[Rule::Lineage, Rule::Delivery],
    );
    check(
        "a parent that is itself",
        |events| admitted(events, second).parent = Some(second),
        &[Rule::Lineage, Rule::Delivery],
    );
    check(
        "another depth",
        |events| admitted(events, first).depth = 1,
        &[Rule::Lineage, Rule::Lineage],
    );
    check(
        "another key",
        |events| admitted(events, second).key = admitted(events, root).key.clone(),
        &[Rule::Lineage, Rule::Lineage, Rule::Delivery],
    );
    check(
        "no admission",
        |events| drop(events.remove(about(events, second, "admitted"))),
        &[Rule::Lineage, Rule::Lineage, Rule::Lineage],
    );
    check(
        "a second root",
        |events| {
            let second = admitted(events, second);
            (second.parent, second.origin, second.depth) = (None, Origin::Root, 0);
        },
        &[Rule::Lineage, Rule::Lineage, Rule::Delivery],
    );
    check(
        "admitted twice",
        |events| {
            let again = events[about(events, second, "admitted")].clone();
            events.insert(about(events, second, "admitted") + 1, again);
        },
        &[Rule::Lineage],
    );
    check(
        "a piece of an agent",
        |events| admitted(events, second).origin = Origin::Piece,
        &[Rule::Lineage],
    );
    check(
        "spawned before its parent started",
        |events| {
            let at = about(events, second, "admitted");
            let child = events.remove(at);
            events.insert(about(events, parent, "starting"), child);
        },
        &[Rule::Lineage],
    );
    check(
        "spawned after its parent ended",
        |events| {
            let from = about(events, second, "admitted");
            let child = events.remove(from);
            events.remove(about(events, second, "stopping"));
            events.remove(about(events, second, "ended"));
            events.remove(about(events, second, "delivered"));
            events.insert(about(events, parent, "ended") + 1, child);
        },
        &[Rule::Lineage],
    );
    check(
        "spawned by one that was asked to stop",
        |events| {
            let reason = Box::new(Reason::Deadline);
            let at = about(events, second, "admitted");
            insert(events, at, parent, EventKind::Stopping { reason });
        },
        &[Rule::Lineage],
    );
}

#[test]
fn states_are_gone_through_in_order() {
    let (root, parent, first, second) = cast();
    let forged = |what: &str, run: RunId, before: &str, kind: EventKind, rule: Rule| {
        check(
            what,
            |events| {
                let at = about(events, run, before);
                insert(events, at, run, kind);
            },
            &[rule],
        );
    };
    forged("started twice", first, "used", EventKind::Starting, Rule::States);
    forged(
        "started unasked",
        first,
        "starting",
        EventKind::Started { process: None },
        Rule::States,
    );
    forged("returned unlent", first, "used", EventKind::Returned, Rule::States);
    forged("lent without a slot", first, "starting", EventKind::Waiting, Rule::States);
    let used = EventKind::Used { usage: Usage::default(), cost: Cost::NONE };
    forged("used before it started", first, "starting", used, Rule::States);
    let reason = Box::new(Reason::Cancelled { by: offshoot_model::CancelledBy::Parent });
    forged("asked twice", second, "stopping", EventKind::Stopping { reason }, Rule::States);
    let answer = None;
    forged(
        "a turn",
        first,
        "starting",
        EventKind::TurnEnded { answer, letters_taken: None },
        Rule::States,
    );
    let letter = |from| EventKind::Letter { from, text: Payload::text("hurry") };
    forged("a letter", parent, "waiting", letter(Some(first)), Rule::Lineage);
    check(
        "letters from above",
        |events| {
            for from in [None, Some(parent), Some(root)] {
                let at = about(events, first, "used");
                insert(events, at, first, letter(from));
            }
        },
        &[],
    );
    check(
        "ended twice",
        |events| {
            let at = about(events, parent, "ended");
            let again = events[at].clone();
            events.insert(at + 1, again);
        },
        &[Rule::States],
    );
    check(
        "ended for another reason",
        |events| ending(events, second).reason = Reason::ExitCode { code: 1 },
        &[Rule::States],
    );
}

#[test]
fn limits_are_counted_again() {
    let (root, parent, first, second) = cast();
    let rules = |events: &mut Vec<Event>, change: &dyn Fn(&mut Rules)| {
        let rules = admitted(events, root).rules.as_mut().expect("the root says its limits");
        change(Arc::make_mut(rules));
    };
    check(
        "one spawn too many",
        |events| rules(events, &|rules| rules.max_spawns = 1),
        &[Rule::Spawns],
    );
    check(
        "one child too many",
        |events| rules(events, &|rules| rules.max_children = Some(1)),
        &[Rule::Children],
    );
    check(
        "too many in a minute",
        |events| rules(events, &|rules| rules.max_spawns_per_minute = Some(1)),
        &[Rule::SpawnRate],
    );
    check(
        "not too many in a minute",
        |events| {
            rules(events, &|rules| rules.max_spawns_per_minute = Some(1));
            let from = about(events, second, "admitted");
            for event in &mut events[from..] {
                event.at = event.at.plus(Duration::from_secs(60));
            }
        },
        &[],
    );
    check(
        "started at the cap",
        |events| {
            rules(events, &|rules| rules.max_concurrent = 1);
            // The second piece holds the only slot while the first of its children starts.
            events.remove(about(events, parent, "waiting"));
            events.remove(about(events, parent, "returned"));
        },
        &[Rule::Concurrency],
    );
    check(
        "started on a full level",
        |events| {
            rules(events, &|rules| rules.max_concurrent_per_level = Some(1));
            let at = about(events, first, "used");
            insert(events, at, second, EventKind::Starting);
        },
        &[Rule::Concurrency],
    );
    check(
        "deeper than may be",
        |events| {
            let grant = &mut admitted(events, parent).grant;
            Arc::make_mut(grant).max_depth = 1;
        },
        &[Rule::Depth, Rule::Depth],
    );
    let mut silent = record();
    admitted(&mut silent, root).rules = None;
    let found = Audit::of(&silent);
    assert_eq!((found.breaches, found.not_recorded), (vec![], vec!["limits"]));
}

#[test]
fn rights_only_shrink() {
    let (_, parent, first, _) = cast();
    let narrow = |events: &mut Vec<Event>, run: RunId, allow: Option<&[&str]>, deny: &[&str]| {
        let grant = Arc::make_mut(&mut admitted(events, run).grant);
        let tools = Arc::make_mut(&mut grant.tools);
        tools.allow = allow.map(|allow| allow.iter().map(|&right| right.to_owned()).collect());
        tools.deny.extend(deny.iter().map(|&right| right.to_owned()));
    };
    let two = [Rule::Rights, Rule::Rights];
    check("what is denied above", |events| narrow(events, parent, None, &["fetch"]), &two);
    check(
        "more than is allowed above",
        |events| narrow(events, parent, Some(&["read"]), &[]),
        &two,
    );
    check(
        "within what exec implies",
        |events| {
            narrow(events, parent, Some(&["exec", "spawn"]), &[]);
            narrow(events, first, Some(&["read"]), &[]);
        },
        &[Rule::Rights],
    );
    check(
        "what is for roots alone",
        |events| {
            let grant = Arc::make_mut(&mut admitted(events, first).grant);
            Arc::make_mut(&mut grant.tools).deny.remove("cron");
        },
        &two,
    );
    check(
        "spawned without the right to",
        |events| Arc::make_mut(&mut admitted(events, parent).grant).may_spawn = false,
        &two,
    );
}

#[test]
fn budgets_add_up() {
    let (_, parent, first, _) = cast();
    let fund = |events: &mut Vec<Event>, run: RunId, tokens: u64| {
        Arc::make_mut(&mut admitted(events, run).grant).budget.tokens = Some(tokens);
    };
    let broken = check(
        "more than was free",
        |events| fund(events, parent, 11_899),
        &[
            // The sibling has no limit at all below one that has.
            Rule::Budget,
            Rule::Budget,
            // And its parent goes on with nothing left.
            Rule::Budget,
            Rule::Overrun,
        ],
    );
    assert_eq!(broken[0].message, "was promised 11900 tokens of 11899 that were free");
    check(
        "an overrun that is not booked",
        |events| drop(events.remove(about(events, first, "overrun"))),
        &[Rule::Overrun],
    );
    check(
        "more was spent than was ever added",
        |events| drop(events.remove(about(events, first, "budget_raised"))),
        &[Rule::Overrun],
    );
    check(
        "an overrun by one less",
        |events| {
            let at = about(events, first, "overrun");
            events[at].kind = EventKind::Overrun { tokens: 339, micro_usd: 1_500 };
        },
        &[Rule::Overrun],
    );
    check(
        "an end that says more than was booked",
        |events| ending(events, first).usage.output = TokenCount::Known(1_301),
        &[Rule::Overrun],
    );
    check(
        "unknown: all that was left is charged, and no more",
        |events| {
            events.remove(about(events, first, "used"));
            events.remove(about(events, first, "overrun"));
            let ending = ending(events, first);
            (ending.usage, ending.cost) = (Usage::UNKNOWN, Cost::unknown());
        },
        &[],
    );
    check(
        "went on after its budget was used up",
        |events| {
            let at = about(events, first, "overrun");
            insert(events, at, first, EventKind::Waiting);
        },
        &[Rule::Budget],
    );
}

#[test]
fn the_account_of_the_root_is_shown() {
    let mut events = record();
    let root = events[0].run;
    Arc::make_mut(&mut admitted(&mut events, root).grant).budget.tokens = Some(20_000);
    let runs: Vec<RunId> = events
        .iter()
        .filter(|event| event.kind.name() == "admitted")
        .map(|event| event.run)
        .skip(1)
        .collect();
    for run in runs {
        let grant = Arc::make_mut(&mut admitted(&mut events, run).grant);
        grant.budget.tokens.get_or_insert(0);
    }
    let found = Audit::of(&events);
    let account = found.budgets[0];
    assert_eq!((account.unit, account.granted), (Unit::Tokens, 20_100), "100 were added");
    let sum = account.used + account.overrun + account.reserved + account.free;
    assert_eq!(sum, u128::from(account.granted) + account.deficit);
    assert_eq!(account.used + account.overrun, 12_340);
}

#[test]
fn a_cascade_takes_what_is_below() {
    let (_, parent, first, _) = cast();
    let cascade = |events: &mut Vec<Event>| {
        let rules = admitted(events, parent).rules.get_or_insert_with(|| {
            Arc::new(Rules {
                max_concurrent: 4,
                max_spawns: 100,
                cascade: true,
                ..Rules::default()
            })
        });
        assert!(rules.cascade);
        // It ends before the first of its children has reported.
        let at = about(events, parent, "ended");
        let end = events.remove(at);
        events.remove(about(events, parent, "returned"));
        events.remove(about(events, parent, "stall_lent"));
        let delivered = about(events, first, "delivered");
        events.remove(delivered);
        events.insert(about(events, first, "used"), end);
    };
    check("spared", cascade, &[Rule::States, Rule::Delivery, Rule::Delivery]);
}

#[test]
fn deliveries_go_to_the_parent_once() {
    let (_, parent, first, second) = cast();
    let delivered = |events: &mut Vec<Event>, redelivered: bool| {
        let at = about(events, first, "delivered");
        let mut again = events[at].clone();
        if let EventKind::Delivered { redelivered: marked, .. } = &mut again.kind {
            *marked = redelivered;
        }
        events.insert(at + 1, again);
    };
    check("twice, the second as a repetition", |events| delivered(events, true), &[]);
    check("twice as if it were the first", |events| delivered(events, false), &[Rule::Delivery]);
    check(
        "its end is not on record",
        |events| drop(events.remove(about(events, first, "delivered"))),
        &[Rule::Delivery],
    );
    check(
        "given up although its parent is there",
        |events| {
            let at = about(events, first, "delivered");
            let EventKind::Delivered { delivery, .. } = events[at].kind.clone() else {
                unreachable!("found by its name")
            };
            events[at].kind = EventKind::Undelivered { delivery };
        },
        &[Rule::Delivery],
    );
    check(
        "before it ended",
        |events| {
            let delivered = events.remove(about(events, first, "delivered"));
            events.insert(about(events, first, "ended"), delivered);
        },
        &[Rule::Delivery],
    );
    check(
        "to a parent that is over",
        |events| {
            let delivered = events.remove(about(events, first, "delivered"));
            events.insert(about(events, parent, "ended") + 1, delivered);
        },
        &[Rule::Delivery],
    );
    check(
        "under the id of another",
        |events| {
            let key = admitted(events, second).key.clone();
            let at = about(events, first, "delivered");
            let delivery = DeliveryId::new(&key, second);
            events[at].kind = EventKind::Delivered { delivery, redelivered: false };
        },
        &[Rule::Delivery],
    );
    check(
        "the root's, undelivered",
        |events| {
            let root = events[0].run;
            let key = admitted(events, root).key.clone();
            let delivery = DeliveryId::new(&key, root);
            let at = events.len();
            insert(events, at, root, EventKind::Delivered { delivery, redelivered: false });
        },
        &[Rule::Delivery],
    );
}

#[test]
fn a_clock_that_was_set_back_is_said_and_is_no_breach() {
    let mut events = record();
    let hour = Duration::from_secs(3600).as_micros() as u64;
    let half = events.len() / 2;
    for event in &mut events[half..] {
        event.at = Timestamp::from_micros(event.at.as_micros() - hour);
    }
    let found = Audit::of(&events);
    assert_eq!((found.breaches, found.clock_set_back), (vec![], 1));
}

#[test]
fn nothing_that_is_read_makes_it_panic() {
    let events = record();
    // Every event moved to every other place, and every pair of runs exchanged.
    for from in 0..events.len() {
        for to in 0..events.len() {
            let mut moved = events.clone();
            let event = moved.remove(from);
            moved.insert(to, event);
            renumber(&mut moved);
            Audit::of(&moved);
            let mut exchanged = events.clone();
            exchanged[from].run = events[to].run;
            Audit::of(&exchanged);
        }
    }
    let first = nth(&events, "ended", 0);
    assert!(!Audit::of(&events[first..]).breaches.is_empty());
}
