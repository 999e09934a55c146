use offshoot_model::{Grant, Need, Pooled, Reason};
use offshoot_test_support::Timed;

use super::*;

#[track_caller]
fn check(timed: &Timed, expected: &[(&str, u64)]) {
    let mut bounds = Bounds::default();
    timed.events.iter().for_each(|event| bounds.apply(event));
    let found: Vec<_> =
        bounds.queued().into_iter().map(|it| (it.bound.to_string(), it.ms)).collect();
    let found: Vec<_> = found.iter().map(|(bound, ms)| (bound.as_str(), *ms)).collect();
    assert_eq!(found, expected);
}

#[test]
fn slots_of_the_tree_of_a_level_and_of_a_part_are_told_apart() {
    let (mut timed, root) = Timed::tree(1, None);
    let runs = [(); 3].map(|()| timed.child(0, root, "a"));
    for (at, run) in (0..).zip(runs) {
        timed.start(at * 10, run);
        timed.complete(at * 10 + 10, run);
    }
    check(&timed, &[("maxConcurrent", 30)]);

    let rules = Rules { max_concurrent: 9, max_concurrent_per_level: Some(1), ..Rules::default() };
    let (mut timed, root) = Timed::under(rules, Some("exec"));
    timed.start(0, root);
    let (a, b) = (timed.child(0, root, "a"), timed.child(0, root, "b"));
    timed.start(0, a);
    timed.complete(7, a);
    timed.start(7, b);
    check(&timed, &[("maxConcurrentPerLevel", 7)]);

    let (mut timed, root) = Timed::tree(9, None);
    let own = Rules { max_concurrent: 1, ..Rules::default() };
    let a = timed.admit(0, Some(root), "lead", |it| it.rules = Some(own.into()));
    timed.start(0, a);
    let (b, c) = (timed.child(0, a, "b"), timed.child(0, a, "b"));
    timed.start(0, b);
    timed.complete(5, b);
    timed.start(5, c);
    check(&timed, &[("maxConcurrent of lead", 5)]);
}

#[test]
fn the_time_in_the_line_of_an_account_has_its_name() {
    let (mut timed, root) = Timed::tree(9, None);
    let account = Account::of_runtime("exec");
    let run = timed.child(0, root, "a");
    timed.say(0, root, EventKind::AccountFull { account: account.clone() });
    timed.say(8, root, EventKind::AccountFree { account });
    timed.start(8, run);
    timed.complete(9, run);
    check(&timed, &[("host.maxConcurrentPerAccount", 8)]);
}

/// The pieces of one parent wait for their budget, and beside them those of another one for something else.
#[test]
fn the_time_of_pieces_that_wait_for_their_budget_has_its_name() {
    let (mut timed, root) = Timed::tree(9, None);
    let parents = [(); 2].map(|()| timed.child(0, root, "lead"));
    parents.iter().for_each(|&parent| timed.start(0, parent));
    let pooled = Pooled { tokens: true, usd: false };
    let [piece, other] = parents.map(|parent| {
        timed.admit(0, Some(parent), "a", |it| {
            it.grant = Grant { pooled, ..Grant::clone(&it.grant) }.into();
        })
    });
    let [short, long] = parents;
    timed.say(0, root, EventKind::PoolShort { run: short });
    timed.start(2, other);
    timed.say(4, root, EventKind::PoolShort { run: long });
    timed.say(6, root, EventKind::PoolEnough { run: short });
    timed.start(6, piece);
    check(&timed, &[("the budget that they share", 6), ("their start, once a slot was free", 2)]);
}

#[test]
fn pauses_breakers_retries_and_needs_have_their_names() {
    let (mut timed, root) = Timed::tree(2, None);
    let a = timed.child(0, root, "a");
    let needs = vec![Need { name: "a".into(), run: Some(a) }];
    let b = timed.admit(0, Some(root), "b", |it| it.needs = needs);
    timed.say(0, root, EventKind::Paused);
    timed.say(10, root, EventKind::Unpaused);
    timed.start(12, a);
    timed.again(15, a, Some(Reason::ExitCode { code: 1 }), Some(20));
    let agent = AgentId::parse("a").expect("an id");
    let opened = EventKind::BreakerOpened { agent: agent.clone(), faults: 1, wait_ms: 30 };
    timed.say(15, root, opened);
    timed.say(45, root, EventKind::BreakerClosed { agent });
    timed.start(45, a);
    timed.complete(60, a);
    timed.start(60, b);
    timed.complete(61, b);
    check(
        &timed,
        &[
            ("what they need", 60),
            ("another attempt", 20),
            ("the breaker", 10),
            ("the pause", 10),
            ("their start, once a slot was free", 2),
        ],
    );
}

#[test]
fn a_slot_that_is_lent_or_lost_with_its_supervisor_binds_nothing() {
    let (mut timed, root) = Timed::tree(1, Some("exec"));
    timed.start(0, root);
    let a = timed.child(0, root, "a");
    timed.say(4, root, EventKind::Waiting);
    timed.start(4, a);
    timed.say(900, root, EventKind::Reopened);
    let b = timed.child(900, root, "b");
    timed.start(902, b);
    check(&timed, &[("maxConcurrent", 4), ("their start, once a slot was free", 2)]);
}
