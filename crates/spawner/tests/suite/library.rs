//! The engine as a library user meets it: closures as agents, the record in memory, a clock that is paused.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use offshoot_merge::{NothingStored, OnFailure, Values};
use offshoot_model::{CancelledBy, Ending, EventKind, Payload, Reason, RunStatus};
use offshoot_runtime::{Finished, FnRuntime, WaitFor};
use offshoot_spawner::{FanAnswer, FanOut, Piece, RootSpec, Spawner, TestClock};

use crate::asking::{ask, config};

/// Returns the text of a merge of results that are at hand.
fn text(answer: &FanAnswer) -> String {
    let mut out = Vec::new();
    answer.answer.write_to(&mut out, &NothingStored).expect("nothing large went in");
    String::from_utf8(out).expect("texts in, text out")
}

fn done() -> Ending {
    Ending::of(Reason::Completed { exit_code: None })
}

/// Spawns one child less deep and waits for it; the answer shows the way down.
fn nesting() -> FnRuntime {
    FnRuntime::new("nesting", |launch, cx| async move {
        let depth = launch.depth;
        let child = cx.host.spawn(ask(&format!("deeper than {depth}"))).await;
        match child {
            Ok(_) => {
                let answer = cx.host.wait(WaitFor::default()).await.expect("the tree is over");
                let Some(Payload::Text(below)) = &answer.ended[0].data else {
                    return Finished::text("a child without an answer");
                };
                Finished::text(format!("{depth} {below}"))
            }
            Err(refusal) => Finished::text(format!("{depth} {}", refusal.code)),
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_waiting_parent_lends_its_slot() {
    let config =
        config(&[("maxConcurrent", "1"), ("maxDepth", "10"), ("allowRecursiveSpawn", "true")]);
    let spawner = Spawner::builder()
        .config(config)
        .clock(Arc::new(TestClock::new()))
        .runtime(nesting())
        .build()
        .expect("a spawner");
    let mut session = spawner.run(RootSpec::new("go down")).await.expect("a root");
    let envelope = session.answer().await.expect("an answer");
    assert_eq!(envelope.data, Some(Payload::text("0 1 2 3 4 5 6 7 8 9 10 depth_limit")));
    session.ended().await.expect("a whole record");
    let tree = spawner.tree().expect("a record");
    assert_eq!(tree.nodes().count(), 11);
    assert!(tree.nodes().all(|node| node.status == RunStatus::Completed));
}

#[tokio::test(start_paused = true)]
async fn one_failing_child_never_hurts_its_siblings() {
    let runtime = FnRuntime::new("picky", |launch, _cx| async move {
        match &*launch.task {
            "panic" => panic!("on purpose"),
            "fail" => Finished::of(Reason::ExitCode { code: 7 }),
            task => Finished::text(task),
        }
    });
    let spawner = Spawner::builder().runtime(runtime).build().expect("a spawner");
    let session = spawner.open(RootSpec::new("pieces")).await.expect("a root");
    let order = FanOut {
        on_failure: OnFailure::Skip,
        ..FanOut::new(["a", "panic", "b", "fail", "c"].map(Piece::task))
    };
    let answer = session.fan_out(order).await.expect("pieces").answer().await.expect("an answer");
    assert_eq!(text(&answer), "a\n---\nb\n---\nc");
    assert_eq!((answer.total, answer.completed), (5, 3));
    let codes: Vec<&str> = answer
        .failures
        .iter()
        .map(|(_, envelope)| envelope.error.as_ref().expect("a failure says why").code.as_str())
        .collect();
    assert_eq!(codes, ["runtime_error", "exit_code"]);
    session.conclude(&answer).await.expect("a whole record");
}

#[tokio::test(start_paused = true)]
async fn the_cap_holds_and_is_used() {
    let (live, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (live_inside, most_inside) = (Arc::clone(&live), Arc::clone(&most));
    let runtime = FnRuntime::new("counted", move |_launch, _cx| {
        let (live, most) = (Arc::clone(&live_inside), Arc::clone(&most_inside));
        async move {
            most.fetch_max(live.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            live.fetch_sub(1, Ordering::SeqCst);
            Finished::text("1")
        }
    });
    let spawner = Spawner::builder()
        .config(config(&[("maxConcurrent", "3")]))
        .runtime(runtime)
        .build()
        .expect("a spawner");
    let session = spawner.open(RootSpec::new("pieces")).await.expect("a root");
    let order = FanOut::new((0..50).map(|_| Piece::task("x"))).merge("sum".parse().expect("sum"));
    let answer = session.fan_out(order).await.expect("pieces").answer().await.expect("an answer");
    assert_eq!(text(&answer), "50");
    assert_eq!(most.load(Ordering::SeqCst), 3);
    session.conclude(&answer).await.expect("a whole record");
}

#[tokio::test(start_paused = true)]
async fn the_first_answer_cancels_the_rest() {
    let runtime = FnRuntime::new("race", |launch, _cx| async move {
        if &*launch.task == "hang" {
            std::future::pending::<()>().await;
        }
        Finished::text(&*launch.task)
    });
    let spawner = Spawner::builder().runtime(runtime).build().expect("a spawner");
    let session = spawner.open(RootSpec::new("race")).await.expect("a root");
    let pieces = ["hang", "fast", "hang"].map(Piece::task);
    let order = FanOut::new(pieces).merge("first".parse().expect("the strategy is unknown"));
    let answer = session.fan_out(order).await.expect("pieces").answer().await.expect("an answer");
    assert_eq!(text(&answer), "fast");
    assert_eq!(answer.cut_short, Some(CancelledBy::EarlyAnswer));
    assert!(answer.failures.is_empty() && answer.verdict.is_ok());
    session.conclude(&answer).await.expect("a whole record");
    let cancelled = |tree: &offshoot_model::Tree| {
        tree.nodes().filter(|node| node.status == RunStatus::Cancelled).count()
    };
    assert_eq!(cancelled(&spawner.tree().expect("a record")), 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_is_a_failure_unless_the_answer_stands_without_it() {
    let runtime = FnRuntime::new("race", |launch, _cx| async move {
        match &*launch.task {
            "bad" => Finished::of(Reason::ExitCode { code: 1 }),
            "hang" => std::future::pending().await,
            task => Finished::text(task),
        }
    });
    let spawner = Spawner::builder().runtime(runtime).build().expect("a spawner");
    // Strategy, what becomes of failures, tasks, whether it succeeds, how many did not complete.
    for (strategy, on_failure, tasks, succeeds, missing) in [
        ("first", OnFailure::Fail, &["refused", "good", "hang"][..], true, 1),
        ("first", OnFailure::Fail, &["bad", "good"], true, 1),
        ("quorum:2", OnFailure::Fail, &["good", "good", "refused", "hang", "hang"], true, 1),
        ("quorum:2", OnFailure::Fail, &["good", "refused"], false, 1),
        ("concatenate", OnFailure::Fail, &["good", "refused"], false, 1),
        ("concatenate", OnFailure::Skip, &["good", "refused", "bad"], true, 2),
        ("concatenate", OnFailure::Skip, &["refused", "bad"], false, 2),
        ("concatenate", OnFailure::Include, &["good", "refused"], true, 1),
    ] {
        let row = format!("{strategy} {on_failure:?} {tasks:?}");
        let session = spawner.open(RootSpec::new("race")).await.expect("a root");
        let piece = |task: &&str| match *task {
            // Without a label of at least one character it is not admitted.
            "refused" => Piece::task("refused").label(" "),
            task => Piece::task(task),
        };
        let order = FanOut::new(tasks.iter().map(piece)).merge(strategy.parse().expect(strategy));
        let fan = session.fan_out(order.on_failure(on_failure)).await.expect("pieces");
        let answer = fan.answer().await.expect("an answer");
        assert_eq!((answer.is_success(), answer.missing()), (succeeds, missing), "{row}");
        let mut events = session.events();
        let ending = session.conclude(&answer).await.expect("a whole record");
        assert_eq!(ending.status().is_success(), succeeds, "{row}");
        while let Some(event) = events.next().await {
            if let EventKind::Merged(summary) = &event.expect("a record that can be read").kind {
                assert_eq!(summary.failed, missing, "{row}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn more_failures_than_allowed_cancel_the_rest() {
    let runtime = FnRuntime::new("bad", |launch, _cx| async move {
        if &*launch.task == "hang" {
            std::future::pending::<()>().await;
        }
        Finished::of(Reason::ExitCode { code: 1 })
    });
    let spawner = Spawner::builder().runtime(runtime).build().expect("a spawner");
    let session = spawner.open(RootSpec::new("bad")).await.expect("a root");
    let pieces = ["bad", "bad", "hang", "hang"].map(Piece::task);
    let order = FanOut { max_fail: Some(1), ..FanOut::new(pieces) };
    let answer = session.fan_out(order).await.expect("pieces").answer().await.expect("an answer");
    assert_eq!(answer.cut_short, Some(CancelledBy::MaxFail));
    assert_eq!(answer.failures.len(), 4, "those that were cancelled are told of too");
    assert!(answer.verdict.is_err());
    let ending = session.conclude(&answer).await.expect("a whole record");
    assert_eq!(ending.status(), RunStatus::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_time_limit_ends_what_hangs() {
    let runtime = FnRuntime::new("hang", |_launch, _cx| std::future::pending::<Finished>());
    let spawner = Spawner::builder()
        .config(config(&[("runTimeoutSeconds", "3"), ("graceSeconds", "2")]))
        .clock(Arc::new(TestClock::new()))
        .runtime(runtime)
        .build()
        .expect("a spawner");
    let session = spawner.open(RootSpec::new("hang")).await.expect("a root");
    let begun = tokio::time::Instant::now();
    let fan = session.fan_out(FanOut::new([Piece::task("hang")])).await.expect("pieces");
    let answer = fan.answer().await.expect("an answer");
    assert_eq!(begun.elapsed().as_secs(), 5, "the limit and the grace");
    let (_, envelope) = &answer.failures[0];
    assert_eq!(envelope.status, RunStatus::TimedOut);
    assert_eq!(envelope.error.as_ref().expect("why").message, "timed out after 3 s");
    session.conclude(&answer).await.expect("a whole record");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_wrong_is_answered() {
    let runtime = FnRuntime::new("vague", |_launch, cx| async move {
        let refusal = cx.host.spawn(ask("")).await.expect_err("there is nothing to do");
        Finished::text(format!("{}: {}", refusal.code, refusal.field.expect("a field")))
    });
    let spawner = Spawner::builder().runtime(runtime).build().expect("a spawner");
    let mut session = spawner.run(RootSpec::new("ask for nothing")).await.expect("a root");
    let envelope = session.answer().await.expect("an answer");
    assert_eq!(envelope.data, Some(Payload::text("invalid_request: task")));
    session.ended().await.expect("a whole record");
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_given_up_leaves_the_children_alone() {
    let runtime = FnRuntime::new("slow", |_launch, _cx| async move {
        #[expect(
            clippy::disallowed_methods,
            reason = "the clock is paused: this is an amount of work"
        )]
        tokio::time::sleep(Duration::from_secs(60)).await;
        Finished::text("late")
    });
    let spawner = Spawner::builder().runtime(runtime).build().expect("a spawner");
    let session = spawner.open(RootSpec::new("root")).await.expect("a root");
    let run = session.spawn(ask("slow")).await.expect("a child");
    let impatient = WaitFor { timeout: Some(Duration::from_millis(1)), ..WaitFor::default() };
    let answer = session.wait(impatient).await.expect("an answer");
    assert_eq!((answer.ended.len(), answer.pending), (0, vec![run]));
    let answer = session.wait(WaitFor::default()).await.expect("an answer");
    assert_eq!(answer.ended[0].data, Some(Payload::text("late")));
    let again = session.wait(WaitFor::default()).await.expect("an answer");
    assert_eq!(answer, again, "asking again repeats the same answer");
    session.close(done()).await.expect("a whole record");
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_joins_late_misses_nothing() {
    let spawner = Spawner::builder().runtime(nesting()).build().expect("a spawner");
    let session = spawner.open(RootSpec::new("root")).await.expect("a root");
    session.spawn(ask("one")).await.expect("a child");
    session.wait(WaitFor::default()).await.expect("an answer");
    let mut events = session.events();
    let root = session.root();
    session.close(done()).await.expect("a whole record");
    let mut kinds = Vec::new();
    let mut last = 0;
    while let Some(event) = events.next().await {
        let event = event.expect("a record that can be read");
        assert_eq!((event.root, event.seq), (root, last + 1));
        last = event.seq;
        kinds.push(event.kind.name());
    }
    assert_eq!(kinds, ["admitted", "admitted", "starting", "started", "refused", "ended", "ended"]);
}

#[tokio::test(start_paused = true)]
async fn a_tree_without_a_handle_ends() {
    let runtime = FnRuntime::new("hang", |_launch, _cx| std::future::pending::<Finished>());
    let spawner = Spawner::builder().runtime(runtime).build().expect("a spawner");
    let session = spawner.open(RootSpec::new("root")).await.expect("a root");
    session.spawn(ask("hang")).await.expect("a child");
    let mut events = session.events();
    drop(session);
    while events.next().await.is_some() {}
    let tree = spawner.tree().expect("a record");
    assert!(tree.nodes().all(|node| node.status == RunStatus::Cancelled));
    assert_eq!(spawner.active_count(), 0);
}

#[tokio::test]
async fn large_answers_are_named_and_not_carried() {
    let runtime =
        FnRuntime::new(
            "large",
            |_launch, _cx| async move { Finished::text("x".repeat(1_000_000)) },
        );
    let spawner = Spawner::builder().runtime(runtime).build().expect("a spawner");
    let session = spawner.open(RootSpec::new("root")).await.expect("a root");
    let pieces = ["a", "b"].map(Piece::task);
    let fan = session.fan_out(FanOut::new(pieces)).await.expect("pieces");
    let answer = fan.answer().await.expect("an answer");
    let mut out = Vec::new();
    answer.answer.write_to(&mut out, &session.values()).expect("stored values can be read");
    assert_eq!(out.len(), 2_000_000 + "\n---\n".len());
    let values = session.values();
    let ending = session.conclude(&answer).await.expect("a whole record");
    let Some(Payload::Stored(reference)) = ending.output else { panic!("{:?}", ending.output) };
    let mut kept = Vec::new();
    values.open(&reference).expect("a value").read_to_end(&mut kept).expect("its bytes");
    assert_eq!(kept, out, "the answer of the root is the answer that was printed");
}

#[tokio::test(start_paused = true)]
async fn of_many_failures_the_first_are_listed_and_all_are_counted() {
    const PIECES: u32 = 1_203;
    let runtime = FnRuntime::new("bad", |launch, _cx| async move {
        match launch.task.parse::<u32>().expect("a number") {
            0 => Finished::text("0"),
            1 => Finished::of(Reason::TurnLimit),
            _ => Finished::of(Reason::ExitCode { code: 1 }),
        }
    });
    for on_failure in [OnFailure::Skip, OnFailure::Include] {
        let runtime = runtime.clone();
        let spawner = Spawner::builder().runtime(runtime).build().expect("a spawner");
        let session = spawner.open(RootSpec::new("bad")).await.expect("a root");
        let pieces = (0..PIECES).map(|number| Piece::task(number.to_string()));
        let order = FanOut::new(pieces).on_failure(on_failure);
        let answer = session.fan_out(order).await.expect("pieces").answer().await.expect("one");
        assert_eq!((answer.completed, answer.missing()), (1, 1202), "{on_failure}");
        let listed: Vec<String> = answer.failures.iter().map(|(key, _)| key.to_string()).collect();
        // The name of a piece is its number from 1.
        let first: Vec<String> = (2..1002).map(|number| number.to_string()).collect();
        assert_eq!(listed, first, "{on_failure}");
        let failed = [("exit_code".to_owned(), 1201), ("turn_limit".to_owned(), 1)];
        assert_eq!(answer.failed, failed.into(), "{on_failure}");
        assert_eq!(answer.answer.merged(), if on_failure == OnFailure::Skip { 1 } else { PIECES });
        let ending = session.conclude(&answer).await.expect("a whole record");
        assert_eq!(ending.status(), RunStatus::Completed);
    }
}
