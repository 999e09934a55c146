//! Trees that ran, once more with other numbers of slots.

use offshoot_model::{ContentHash, Need, Particulars, Reason};
use offshoot_test_support::Timed;

use super::*;

/// The times in milliseconds with these numbers of slots.
#[track_caller]
fn check(timed: &Timed, expected: &[(u32, u64)]) {
    let mut what_if = WhatIf::default();
    timed.events.iter().for_each(|event| what_if.apply(event));
    let found: Vec<_> = expected
        .iter()
        .map(|&(slots, _)| (slots, what_if.with_slots(slots).as_millis() as u64))
        .collect();
    assert_eq!(found, expected);
    let slots = what_if.slots().expect("the tree is over");
    assert_eq!(what_if.with_slots(slots), what_if.time(), "as it was");
}

/// Pieces that take so long, with so many slots, each started when a slot came free.
fn pieces(slots: u32, times: &[u64]) -> Timed {
    let (mut timed, root) = Timed::tree(slots, None);
    let runs: Vec<_> = times.iter().map(|_| timed.child(0, root, "a")).collect();
    let mut free = vec![0; slots as usize];
    let mut ends = Vec::new();
    for (&run, &time) in runs.iter().zip(times) {
        let slot = free.iter_mut().min().expect("there is a slot");
        ends.push((*slot, 1, run));
        *slot += time;
        ends.push((*slot, 0, run));
    }
    ends.sort_by_key(|&(at, starts, _)| (at, starts));
    for (at, starts, run) in ends {
        match starts {
            1 => timed.start(at, run),
            _ => timed.complete(at, run),
        }
    }
    let over = free.into_iter().max().unwrap_or_default();
    timed.complete(over, root);
    timed
}

#[test]
fn equal_pieces_take_half_the_time_with_twice_the_slots() {
    check(&pieces(2, &[100; 8]), &[(1, 800), (2, 400), (4, 200), (8, 100), (100, 100)]);
    check(&pieces(1, &[50; 3]), &[(1, 150), (2, 100), (4, 50)]);
    // The longest piece is the bound.
    check(&pieces(2, &[10, 10, 10, 300]), &[(2, 310), (4, 300), (8, 300)]);
}

#[test]
fn a_parent_that_waits_lends_its_slot() {
    // Works 10, asks for two that take 100 each, waits for both, and works 20.
    let (mut timed, root) = Timed::tree(1, Some("exec"));
    timed.start(0, root);
    let (a, b) = (timed.child(10, root, "a"), timed.child(10, root, "b"));
    timed.say(10, root, EventKind::Waiting);
    timed.start(10, a);
    timed.complete(110, a);
    timed.start(110, b);
    timed.complete(210, b);
    timed.say(210, root, EventKind::Returned);
    timed.complete(230, root);
    check(&timed, &[(1, 230), (2, 130), (4, 130)]);
}

#[test]
fn a_level_and_a_part_of_the_tree_keep_their_own_limits() {
    let rules = Rules { max_concurrent: 4, max_concurrent_per_level: Some(1), ..Rules::default() };
    let (mut timed, root) = Timed::under(rules, Some("exec"));
    timed.start(0, root);
    let (a, b) = (timed.child(0, root, "a"), timed.child(0, root, "b"));
    timed.start(0, a);
    timed.complete(100, a);
    timed.start(100, b);
    timed.complete(200, b);
    timed.complete(250, root);
    check(&timed, &[(4, 250), (8, 250)]);
    // Below `a` one at a time, whatever the tree may do.
    let (mut timed, root) = Timed::tree(4, None);
    let own = Rules { max_concurrent: 1, ..Rules::default() };
    let a = timed.admit(0, Some(root), "a", |it| it.rules = Some(own.into()));
    timed.start(0, a);
    let (b, c) = (timed.child(0, a, "b"), timed.child(0, a, "c"));
    timed.say(0, a, EventKind::Waiting);
    timed.start(0, b);
    timed.complete(10, b);
    timed.start(10, c);
    timed.complete(20, c);
    timed.say(20, a, EventKind::Returned);
    timed.complete(20, a);
    timed.complete(20, root);
    check(&timed, &[(1, 20), (4, 20), (8, 20)]);
}

#[test]
fn needs_retries_and_runs_that_never_started_keep_their_order() {
    let (mut timed, root) = Timed::tree(1, None);
    let (a, b) = (timed.child(0, root, "a"), timed.child(0, root, "b"));
    let needs = vec![Need { name: "a".into(), run: Some(a) }];
    let c = timed.admit(0, Some(root), "c", |it| it.needs = needs);
    let never = timed.child(0, root, "never");
    timed.start(0, a);
    timed.again(10, a, Some(Reason::ExitCode { code: 1 }), Some(30));
    timed.start(10, b);
    timed.complete(60, b);
    timed.start(60, a);
    timed.complete(70, a);
    timed.start(70, c);
    timed.complete(170, c);
    timed.end(170, never, Reason::ExitCode { code: 1 }, Default::default());
    timed.complete(170, root);
    // With two, `a` starts again at 40, and `c` at 50.
    check(&timed, &[(1, 170), (2, 150)]);
}

#[test]
fn of_a_tree_that_goes_on_or_was_interrupted_nothing_is_said() {
    let mut going = pieces(2, &[10; 2]);
    going.events.pop();
    let mut interrupted = pieces(2, &[10; 2]);
    let root = interrupted.events[0].run;
    interrupted.say(30, root, EventKind::Reopened);
    for timed in [going, interrupted] {
        let mut what_if = WhatIf::default();
        timed.events.iter().for_each(|event| what_if.apply(event));
        assert_eq!(what_if.slots(), None);
    }
}

#[test]
fn a_run_that_ends_while_it_waits_has_waited_until_then() {
    let (mut timed, root) = Timed::tree(2, None);
    let parent = timed.child(0, root, "parent");
    let needs = vec![Need { name: "parent".into(), run: Some(parent) }];
    let next = timed.admit(0, Some(root), "next", |it| it.needs = needs);
    timed.start(0, parent);
    let child = timed.child(10, parent, "child");
    timed.say(10, parent, EventKind::Waiting);
    timed.start(10, child);
    timed.end(50, parent, Reason::Signal { signal: 15 }, Default::default());
    timed.start(50, next);
    timed.complete(100, child);
    timed.complete(150, next);
    timed.complete(150, root);
    check(&timed, &[(2, 150), (4, 150)]);
}

#[test]
fn a_wait_that_no_child_has_ended_takes_as_long_as_it_took() {
    let (mut timed, root) = Timed::tree(2, Some("exec"));
    timed.start(0, root);
    let (early, late) = (timed.child(0, root, "early"), timed.child(0, root, "late"));
    timed.start(0, early);
    timed.complete(5, early);
    timed.start(5, late);
    // The patience of the root is over at 40.
    timed.say(10, root, EventKind::Waiting);
    timed.say(40, root, EventKind::Returned);
    timed.complete(45, late);
    timed.complete(50, root);
    check(&timed, &[(2, 50), (4, 50)]);
}

#[test]
fn a_wait_for_what_is_over_by_then_takes_no_time() {
    let (mut timed, root) = Timed::tree(1, Some("exec"));
    timed.start(0, root);
    let child = timed.child(0, root, "child");
    timed.say(50, root, EventKind::Waiting);
    timed.start(50, child);
    timed.complete(60, child);
    timed.say(60, root, EventKind::Returned);
    timed.complete(80, root);
    check(&timed, &[(1, 80), (2, 70)]);
}

#[test]
fn what_began_its_work_first_ends_it_first() {
    let (mut timed, root) = Timed::tree(2, None);
    let (asks, works) = (timed.child(0, root, "asks"), timed.child(0, root, "works"));
    let long = timed.child(0, root, "long");
    timed.start(0, asks);
    timed.start(0, works);
    // The work of the first is named after that of the second from here on.
    let never = timed.child(50, asks, "never");
    timed.complete(100, works);
    timed.start(100, long);
    let child = timed.child(100, asks, "child");
    timed.complete(120, asks);
    timed.start(120, child);
    timed.complete(130, child);
    timed.complete(300, long);
    timed.end(300, never, Reason::ExitCode { code: 1 }, Default::default());
    timed.complete(300, root);
    check(&timed, &[(2, 300), (3, 200)]);
}

#[test]
fn below_a_run_without_limits_of_its_own_all_slots_of_the_tree_count() {
    let (mut timed, root) = Timed::tree(2, None);
    let parent = timed.child(0, root, "parent");
    timed.start(0, parent);
    let children = ["a", "b", "c"].map(|child| timed.child(0, parent, child));
    timed.say(0, parent, EventKind::Waiting);
    timed.start(0, children[0]);
    timed.start(0, children[1]);
    timed.complete(100, children[0]);
    timed.complete(100, children[1]);
    timed.start(100, children[2]);
    timed.complete(200, children[2]);
    timed.say(200, parent, EventKind::Returned);
    timed.complete(200, parent);
    timed.complete(200, root);
    check(&timed, &[(1, 300), (2, 200), (3, 100)]);
}

/// Five pieces, of which `never` does not start, `next` needs it, and `last` needs that one; then four more. `never` is over at once, or needs the
/// first piece and is over together with it.
fn with_one_that_never_starts(needs_first: bool) -> Timed {
    let (mut timed, root) = Timed::tree(2, None);
    let need = |run| vec![Need { name: "it".into(), run: Some(run) }];
    let piece =
        |timed: &mut Timed, at, needs| timed.admit(at, Some(root), "piece", |it| it.needs = needs);
    let [a, b] = [(); 2].map(|()| piece(&mut timed, 0, vec![]));
    let never = piece(&mut timed, 0, if needs_first { need(a) } else { vec![] });
    let next = piece(&mut timed, 0, need(never));
    let last = piece(&mut timed, 0, need(next));
    timed.start(0, a);
    timed.start(0, b);
    let over = if needs_first { 10 } else { 0 };
    let reason = Reason::NeedFailed { need: "it".into() };
    if over == 0 {
        timed.end(over, never, reason.clone(), Default::default());
    }
    let [x, y] = [(); 2].map(|()| piece(&mut timed, 5, vec![]));
    timed.complete(10, a);
    if over == 10 {
        timed.end(over, never, reason, Default::default());
    }
    timed.complete(10, b);
    let mut runs = vec![next, last, x, y];
    let times = match needs_first {
        true => [(20, 100), (120, 50), (10, 10), (10, 10), (20, 50), (70, 50)],
        false => [(10, 100), (110, 50), (10, 10), (20, 10), (30, 50), (80, 50)],
    };
    let starts = times.iter().enumerate().map(|(run, &(at, _))| (at, 1, run));
    let ends = times.iter().enumerate().map(|(run, &(at, time))| (at + time, 0, run));
    let mut moments: Vec<_> = starts.chain(ends).collect();
    moments.sort_unstable();
    for (at, starts, run) in moments {
        if at > 12 && runs.len() == 4 {
            runs.extend([(); 2].map(|()| piece(&mut timed, 12, vec![])));
        }
        match starts {
            1 => timed.start(at, runs[run]),
            _ => timed.complete(at, runs[run]),
        }
    }
    timed.complete(170, root);
    timed
}

#[test]
fn what_needs_a_run_that_never_started_stands_in_line_as_soon_as_that_is_over() {
    check(&with_one_that_never_starts(true), &[(2, 170), (9, 160)]);
    check(&with_one_that_never_starts(false), &[(2, 160), (9, 150)]);
}

#[test]
fn what_a_merge_asks_follows_from_the_results_of_the_same_root() {
    let (mut timed, root) = Timed::tree(1, None);
    let pieces = [(); 2].map(|()| timed.child(0, root, "piece"));
    timed.start(0, pieces[0]);
    timed.complete(10, pieces[0]);
    timed.start(10, pieces[1]);
    timed.complete(30, pieces[1]);
    let merges = || {
        let results = Some(ContentHash::of(b"results"));
        Particulars { merges: results, ..Particulars::default() }
    };
    let particulars = Some(merges().into());
    let asks = timed.admit(30, Some(root), "merges", |it| it.particulars = particulars);
    timed.start(30, asks);
    timed.complete(40, asks);
    timed.complete(40, root);
    // With two slots the results are there after 20, and the merge takes 10.
    check(&timed, &[(1, 40), (2, 30)]);
    // A piece that is at work when the merge is asked is no part of it.
    let (mut timed, root) = Timed::tree(2, None);
    let pieces = [(); 2].map(|()| timed.child(0, root, "piece"));
    pieces.into_iter().for_each(|run| timed.start(0, run));
    timed.complete(10, pieces[0]);
    let particulars = Some(merges().into());
    let asks = timed.admit(10, Some(root), "merges", |it| it.particulars = particulars);
    timed.start(10, asks);
    timed.complete(20, asks);
    timed.complete(100, pieces[1]);
    timed.complete(100, root);
    check(&timed, &[(2, 100), (3, 100)]);
}
