use std::sync::Arc;

use offshoot_model::{MicroUsd, RequestEnding, TokenCount};
use offshoot_test_support::{Timed, scenario};

use super::*;

#[test]
fn percentiles_are_the_smallest_values_that_so_many_do_not_exceed() {
    let of = |times: std::ops::RangeInclusive<u64>| {
        let Percentiles { count, p50, p95, p99 } =
            Percentiles::of(times.rev().map(Duration::from_millis).collect());
        (count, p50, p95, p99)
    };
    assert_eq!(of(1..=100), (100, Some(50), Some(95), Some(99)));
    assert_eq!(of(7..=7), (1, Some(7), Some(7), Some(7)));
    assert_eq!(of(1..=3), (3, Some(2), Some(3), Some(3)));
    assert_eq!(Percentiles::of(Vec::new()).p50, None);
}

#[test]
fn causes_that_differ_in_numbers_and_ids_alone_are_the_same() {
    let same = |a: &str, b: &str| without_numbers(a) == without_numbers(b);
    assert!(same("failed  part-1.txt: line 20", "failed  part-22.txt: line 3"));
    assert!(same(
        "code 1: run 01a2093b-8459-7cb4-b49c-307877493ddb: exited with code 3",
        "code 1: run 01a2093b-866a-75b6-b1a5-6038eb04385a: exited with code 3",
    ));
    assert!(!same("no such table", "no such file"));
}

#[test]
fn everything_is_counted_once() {
    let mut stats = Stats::default();
    let events = scenario::everything();
    events.iter().for_each(|event| stats.apply(event));
    stats.lose(events.last().expect("much has happened").root);
    let page = stats.page(Timestamp::EPOCH);
    insta::assert_snapshot!("stats", page);
    let tree = offshoot_model::Tree::of(&events);
    let runs = tree.nodes().count() as u64 - 2;
    assert_eq!(page.runs + page.ran_again, runs, "all but the two roots that hold pieces");
    for sums in [page.agents.values().collect::<Vec<_>>(), page.depths.values().collect()] {
        assert_eq!(sums.iter().map(|spent| spent.runs).sum::<u64>(), runs);
    }
    let failed: u64 = page.causes.iter().map(|cause| cause.runs).sum();
    let over = |status: &RunStatus| status.is_terminal() && !status.is_success();
    let statuses = page.statuses.iter().filter(|(status, _)| over(status));
    assert_eq!(failed, statuses.map(|(_, count)| count).sum::<u64>());
}

#[test]
fn refusals_are_summed_by_their_codes() {
    let mut stats = Stats::default();
    scenario::everything().iter().for_each(|event| stats.apply(event));
    let page = stats.page(Timestamp::EPOCH);
    // One by itself, and 12,345 in one event.
    let json = serde_json::to_value(&page).expect("plain data");
    assert_eq!(json["refusals"]["depth_limit"], 12_346);
    let text = page.to_string();
    assert!(text.contains("\nrefused      12,346 × depth_limit\n"), "{text}");
}

#[test]
fn dead_time_is_no_work() {
    let everything = scenario::everything();
    let admission = |is_it: &dyn Fn(&Event, &Admitted) -> bool| {
        let found = everything.iter().find(|event| match &event.kind {
            EventKind::Admitted(admitted) => is_it(event, admitted),
            _ => false,
        });
        found.expect("the scenario has one").clone()
    };
    let root = admission(&|_, it| it.parent.is_none() && it.runtime.is_none());
    let piece = admission(&|_, it| it.parent == Some(root.run));
    let mut stats = Stats::default();
    let mut tell = |second: u64, run: RunId, kind: EventKind| {
        let at = Timestamp::from_micros(1_000_000 * (1_000 + second));
        stats.apply(&Event { root: root.root, seq: second, at, run, kind });
    };
    tell(0, root.run, root.kind.clone());
    tell(0, piece.run, piece.kind.clone());
    tell(1, piece.run, EventKind::Starting);
    tell(2, piece.run, EventKind::Used { usage: Usage::default(), cost: Cost::NONE });
    // The supervisor is killed, and an hour later another one begins.
    tell(3602, root.run, EventKind::Reopened);
    let after = None;
    let again =
        EventKind::Resumed { attempt: 2, continues: false, after, wait_ms: None, changes: None };
    tell(3602, piece.run, again);
    tell(3603, piece.run, EventKind::Starting);
    let completed = Reason::Completed { exit_code: Some(0) };
    tell(3605, piece.run, EventKind::Ended(Box::new(Ending::of(completed))));
    let page = stats.page(Timestamp::EPOCH);
    assert_eq!(page.queue.p50, Some(1000));
    // One second before the death, two after the second start: what stood in line between has no slot.
    assert_eq!(page.run.p50, Some(3000));
    assert_eq!(
        page.parallelism.achieved, 0.75,
        "of the four seconds in which the tree had a supervisor"
    );
}

#[test]
fn the_run_at_work_that_has_taken_longest_is_named() {
    let mut stats = Stats::default();
    let events = scenario::everything();
    events.iter().for_each(|event| stats.apply(event));
    let last = events.last().expect("much has happened").at;
    let at = |later: u64| stats.clone().page(last.plus(Duration::from_secs(later))).longest;
    let longest = at(3_600).expect("one is at work");
    let tree = offshoot_model::Tree::of(&events);
    let at_work = |node: &&offshoot_model::Node| {
        matches!(node.status, RunStatus::Starting | RunStatus::Running) && !node.runs_nothing()
    };
    let first = tree.nodes().filter(at_work).filter_map(|node| Some((node.started_at?, node.run)));
    assert_eq!(Some(longest.run_id), first.min().map(|(_, run)| run));
    assert!(longest.ms >= 3_600_000, "{longest:?}");
    assert_eq!(at(3_660).map(|it| it.ms), Some(longest.ms + 60_000));
    // Nothing is at work in a tree that has lost its supervisor.
    stats.lose(tree.get(longest.run_id).expect("it is on record").root);
    assert!(stats.page(last).longest.is_none_or(|it| it.run_id != longest.run_id));
}

/// Of a tree that lives: what holds a slot now, what waits for its children, and what stands in line for another attempt.
#[test]
fn runs_that_are_not_over_count_for_the_time_that_they_held_a_slot() {
    let (mut timed, root) = Timed::tree(4, None);
    let parent = timed.child(0, root, "parent");
    timed.start(0, parent);
    timed.say(2000, parent, EventKind::Waiting);
    let child = timed.child(2000, parent, "child");
    timed.start(2000, child);
    let again = timed.child(2000, parent, "again");
    timed.start(2000, again);
    timed.again(5000, again, Some(Reason::ExitCode { code: 75 }), Some(60_000));
    let mut stats = Stats::default();
    timed.events.iter().for_each(|event| stats.apply(event));
    let page = stats.page(Timestamp::from_micros(10_000_000));
    // Two seconds of the parent, eight of the child and three of the other one, in ten.
    assert_eq!(page.parallelism.achieved, 1.3);
    assert_eq!(page.parallelism.possible, 4.0);
    let longest = page.longest.expect("one is at work");
    assert_eq!((longest.run_id, longest.ms), (child, 8000));
}

/// Runs that took too long are of one cause, whatever each was at.
#[test]
fn the_last_words_of_runs_that_were_ended_are_no_causes() {
    let (mut timed, root) = Timed::tree(4, None);
    for word in ["fetching a", "parsing b"] {
        let run = timed.child(0, root, "a");
        timed.start(0, run);
        let ending = Ending {
            diagnostics: Some(word.to_owned()),
            ..Ending::of(Reason::Timeout { seconds: 5 })
        };
        timed.say(5000, run, EventKind::Ended(Box::new(ending)));
    }
    let mut stats = Stats::default();
    timed.events.iter().for_each(|event| stats.apply(event));
    let causes = stats.page(Timestamp::EPOCH).causes;
    assert_eq!(causes.iter().map(|cause| cause.runs).collect::<Vec<_>>(), [2]);
    assert!(causes[0].words.starts_with("timed out  after 5 s"), "{:?}", causes[0]);
}

/// Each request that the meter has counted is under the model that it asked; a runtime tells the sum alone.
#[test]
fn what_was_spent_is_under_the_model_that_was_asked() {
    let models = |is_metered: bool| {
        let (mut timed, run) = Timed::tree(1, Some("exec"));
        let usage = |tokens| Usage { input: TokenCount::Known(tokens), ..Usage::default() };
        let usd = |micros| Cost::metered(MicroUsd::from_micros(micros));
        timed.start(0, run);
        let mut ask = |request, model: &str, tokens, micros| {
            if is_metered {
                let (model, ending) = (Arc::from(model), RequestEnding::Answered);
                let (usage, cost) = (usage(tokens), usd(micros));
                timed.say(
                    request,
                    run,
                    EventKind::RequestSettled { request, model, ending, usage, cost },
                );
            }
        };
        ask(1, "large", 10, 100);
        ask(2, "small", 1, 5);
        ask(3, "small", 2, 6);
        timed.say(4, run, EventKind::ModelChanged { model: "small".into() });
        let ending = Ending {
            usage: usage(13),
            cost: usd(111),
            ..Ending::of(Reason::Completed { exit_code: Some(0) })
        };
        timed.say(5, run, EventKind::Ended(Box::new(ending)));
        let mut stats = Stats::default();
        timed.events.iter().for_each(|event| stats.apply(event));
        let page = stats.page(Timestamp::EPOCH);
        let spent = |(model, spent): (String, Spent)| {
            (model, spent.runs, spent.usage.input.charged(), spent.cost.dollars().as_micros())
        };
        page.models.into_iter().map(spent).collect::<Vec<_>>()
    };
    let of = |model: &str, tokens, micros| (model.to_owned(), 1, tokens, micros);
    assert_eq!(models(true), [of("large", 10, 100), of("small", 3, 11)]);
    assert_eq!(models(false), [of("small", 13, 111)]);
}
