//! Acts of owners and agents that are allowed at any moment: drop a handle, ask too late, flood, close a tree whose record
//! broke.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use offshoot_merge::OnFailure;
use offshoot_model::{
    CancelledBy, Ending, EventKind, JsonText, Payload, Reason, RefusalCode, RunStatus, ToolUse,
};
use offshoot_runtime::{Finished, FnRuntime, RunHost, WaitFor};
use offshoot_spawner::{
    FanOut, Piece, RootSpec, RunSpec, Session, Spawner, SpawnerError, TestClock,
};
use offshoot_store::{DataFolder, SqliteStore};

use crate::asking::{ask, config};

fn hang() -> FnRuntime {
    FnRuntime::new("hang", |_launch, _cx| std::future::pending::<Finished>())
}

fn spawner(runtime: FnRuntime, settings: &[(&str, &str)]) -> Spawner {
    Spawner::builder()
        .config(config(settings))
        .clock(Arc::new(TestClock::new()))
        .runtime(runtime)
        .build()
        .expect("a spawner")
}

/// Brings an owner to a state before it drops everything it holds.
async fn begin(spawner: &Spawner, state: &str) -> Session {
    let root = || RootSpec::new("root");
    let session = match state {
        "runs" | "runs and was asked" => spawner.run(root()).await.expect("a root"),
        _ => spawner.open(root()).await.expect("a root"),
    };
    match state {
        "empty" | "runs" => {}
        "runs and was asked" => {
            spawner_idle().await;
            assert_eq!(session.counts().await.active, 1);
        }
        "one runs, one queues" | "paused" => {
            session.pause(state == "paused");
            for task in ["a", "b"] {
                session.spawn(ask(task)).await.expect("a child");
            }
        }
        "a caller waits" => {
            session.spawn(ask("a")).await.expect("a child");
            let waited = session.wait(WaitFor::default()).now_or_never();
            assert!(waited.is_none(), "it hangs");
        }
        "a fan was dropped" => {
            let pieces = ["a", "b"].map(Piece::task);
            drop(session.fan_out(FanOut::new(pieces)).await.expect("pieces"));
        }
        "an answer was not waited for" => {
            let fan = session.fan_out(FanOut::new([Piece::task("a")])).await.expect("pieces");
            assert!(fan.answer().now_or_never().is_none(), "it hangs");
        }
        "stopped" => {
            session.spawn(ask("a")).await.expect("a child");
            session.stopper().stop_all(false);
        }
        other => panic!("no such state: {other}"),
    }
    session
}

/// Lets everything that can happen without the passing of time happen.
async fn spawner_idle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_may_be_dropped_in_any_state() {
    for state in [
        "empty",
        "runs",
        "runs and was asked",
        "one runs, one queues",
        "paused",
        "a caller waits",
        "a fan was dropped",
        "an answer was not waited for",
        "stopped",
    ] {
        let spawner = spawner(hang(), &[("maxConcurrent", "1")]);
        let session = begin(&spawner, state).await;
        let mut events = session.events();
        drop(session);
        while let Some(event) = events.next().await {
            event.expect("a record that can be read");
        }
        let tree = spawner.tree().expect("a record");
        assert!(tree.nodes().all(|node| node.status == RunStatus::Cancelled), "{state}");
        assert_eq!(spawner.active_count(), 0, "{state}");
    }
}

#[tokio::test(start_paused = true)]
async fn asking_too_late_is_answered() {
    let kept: Arc<Mutex<Option<RunHost>>> = Arc::default();
    let keep = Arc::clone(&kept);
    let runtime = FnRuntime::new("keeps", move |_launch, cx| {
        *keep.lock().expect("no holder panics") = Some(cx.host);
        async { Finished::text("done") }
    });
    let spawner = spawner(runtime, &[]);
    let session = spawner.open(RootSpec::new("root")).await.expect("a root");
    let run = session.spawn(ask("keep")).await.expect("a child");
    session.wait(WaitFor::default()).await.expect("an answer");
    let host = kept.lock().expect("no holder panics").take().expect("it ran");

    let refusal = host.spawn(ask("late")).await.expect_err("it is over");
    assert_eq!(refusal.code, RefusalCode::CallerEnded);
    assert!(host.wait(WaitFor::default()).await.is_ok_and(|answer| answer.ended.is_empty()));
    host.progress("late");

    let stopper = session.stopper();
    session.close(Ending::of(Reason::Completed { exit_code: None })).await.expect("a record");
    let refusal = host.spawn(ask("later")).await.expect_err("the tree is over");
    assert_eq!(refusal.code, RefusalCode::CallerEnded);
    let for_one = WaitFor { runs: vec![run], ..WaitFor::default() };
    let refusal = host.wait(for_one).await.expect_err("the tree is over");
    assert_eq!(refusal.code, RefusalCode::CallerEnded);
    host.progress("later");
    stopper.stop_all(true);
}

#[tokio::test(start_paused = true)]
async fn a_follower_may_be_dropped_and_asked_again() {
    let spawner = spawner(hang(), &[]);
    let session = spawner.open(RootSpec::new("root")).await.expect("a root");
    // By the time it is counted, all that there is was told.
    session.counts().await;
    let mut events = session.events();
    // Reading the record takes a thread, which is rarely so fast that this is not dropped half way.
    let at_once = events.next().now_or_never();
    let next = async { events.next().await };
    let next = match at_once {
        Some(answer) => Ok(answer),
        None => tokio::time::timeout(Duration::from_secs(60), next).await,
    };
    let event = next.expect("it is in the record").expect("one").expect("a record");
    assert!(matches!(event.kind, EventKind::Admitted(_)));
}

#[tokio::test(start_paused = true)]
async fn what_failed_too_often_is_no_success_whatever_is_left_out() {
    let runtime =
        FnRuntime::new(
            "bad",
            |_launch, _cx| async move { Finished::of(Reason::ExitCode { code: 1 }) },
        );
    let spawner = spawner(runtime, &[]);
    let session = spawner.open(RootSpec::new("bad")).await.expect("a root");
    let order = FanOut::new(["a", "b"].map(Piece::task)).on_failure(OnFailure::Skip);
    let order = FanOut { max_fail: Some(1), ..order };
    let answer = session.fan_out(order).await.expect("pieces").answer().await.expect("an answer");
    let ending = session.conclude(&answer).await.expect("a whole record");
    assert_eq!(ending.reason, Reason::Cancelled { by: CancelledBy::MaxFail });
}

#[tokio::test(start_paused = true)]
async fn asking_is_a_sign_of_life() {
    let runtime = FnRuntime::new("asks", |_launch, cx| async move {
        for _ in 0..10 {
            #[expect(
                clippy::disallowed_methods,
                reason = "the clock is paused: an amount of work"
            )]
            tokio::time::sleep(Duration::from_secs(2)).await;
            // A refusal is an answer, too.
            let _ = cx.host.spawn(ask("")).await;
        }
        Finished::text("done")
    });
    let spawner = spawner(runtime, &[("idleTimeoutSeconds", "3")]);
    let mut session = spawner.run(RootSpec::new("ask")).await.expect("a root");
    let envelope = session.answer().await.expect("an answer");
    assert_eq!(envelope.data, Some(Payload::text("done")));
    session.ended().await.expect("a whole record");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_flood_does_not_stop_the_clock() {
    let runtime = FnRuntime::new("flood", |_launch, cx| async move {
        loop {
            for _ in 0..1_000 {
                cx.host.progress("more");
            }
            tokio::task::yield_now().await;
        }
    });
    let spawner = Spawner::builder()
        .config(config(&[("runTimeoutSeconds", "1"), ("graceSeconds", "0")]))
        .runtime(runtime)
        .build()
        .expect("a spawner");
    let session = spawner.open(RootSpec::new("flood")).await.expect("a root");
    let fan = session.fan_out(FanOut::new(["a", "b", "c"].map(Piece::task))).await.expect("pieces");
    let answer = tokio::time::timeout(Duration::from_secs(60), fan.answer()).await;
    let answer = answer.expect("the time limit is heard").expect("an answer");
    let codes = answer.failures.iter().map(|(_, envelope)| envelope.status);
    assert_eq!(codes.collect::<Vec<_>>(), [RunStatus::TimedOut; 3]);
    session.conclude(&answer).await.expect("a whole record");
}

#[tokio::test]
async fn a_flood_of_lines_keeps_no_use_of_a_tool_out_of_the_record() {
    let runtime = FnRuntime::new("flood", |_launch, cx| async move {
        // The supervisor takes nothing meanwhile: it shares the thread.
        (0..2_000).for_each(|_| cx.host.progress("more"));
        (0..2_000).for_each(|_| cx.host.tool_used(ToolUse::named("grep")));
        Finished::text("done")
    });
    let spawner = spawner(runtime, &[]);
    let session = spawner.open(RootSpec::new("flood")).await.expect("a root");
    let mut events = session.events();
    let pieces = FanOut::new(["a", "b"].map(Piece::task));
    session.fan_out(pieces).await.expect("pieces").answer().await.expect("an answer");
    let (mut used, mut ended) = (0, 0);
    while ended < 2 {
        let event = events.next().await.expect("one").expect("a record");
        used += u32::from(event.kind.name() == "tool_used");
        ended += u32::from(event.kind.name() == "ended");
    }
    assert_eq!(used, 200, "as many of each run as a record takes at once");
    session.stopper().stop_all(true);
}

#[tokio::test(start_paused = true)]
async fn pieces_divide_a_budget_in_the_step_that_admits_them() {
    let runtime = FnRuntime::new("tells", |launch, _cx| async move {
        Finished::text(format!("{:?}", launch.grant.budget.tokens))
    });
    // A closure costs nothing, but one that may spawn passes its part on.
    let settings =
        [("budget.tokens", "1000"), ("budget.share", "0.5"), ("allowRecursiveSpawn", "true")];
    let spawner = spawner(runtime, &settings);
    let session = spawner.open(RootSpec::new("root")).await.expect("a root");
    let order = FanOut::new(["a", "b"].map(Piece::task))
        .merge("structured".parse().expect("the strategy is unknown"));
    let answer = session.fan_out(order).await.expect("pieces").answer().await.expect("an answer");
    let merged = answer.answer.to_payload();
    let expected = r#"{"1":"Some(400)","2":"Some(400)"}"#.to_owned();
    assert_eq!(merged, Some(Payload::json(expected).expect("JSON")));
    session.conclude(&answer).await.expect("a whole record");
}

#[tokio::test(start_paused = true)]
async fn a_root_is_described_in_words() {
    let spawner = spawner(hang(), &[]);
    let spec = RootSpec {
        label: Some("a name".into()),
        plan: JsonText::of(&1).ok(),
        run_spec: RunSpec {
            runtime: Some("other".into()),
            ok_exit: Arc::from([0, 1]),
            ..RunSpec::command("/", ["true"])
        },
        ..RootSpec::new("task")
    };
    let session = spawner.open(spec).await.expect("a root");
    session.counts().await;
    let tree = spawner.tree().expect("a record");
    assert_eq!(tree.roots().next().and_then(|root| root.label.as_deref()), Some("a name"));
    let piece = Piece { key: Some("two".into()), ..Piece::task("a").label("one") };
    let fan = session.fan_out(FanOut::new([piece])).await;
    let error = fan.expect_err("there is no runtime `other`");
    assert!(matches!(&error, SpawnerError::Refused(_)), "{error}");
}

#[tokio::test]
async fn everything_can_be_waited_for_in_a_task_of_its_own() {
    let runtime = FnRuntime::new("echo", |launch, _cx| async move { Finished::text(launch.task) });
    let spawner = spawner(runtime, &[]);
    let tree = async move {
        let mut root = spawner.run(RootSpec::new("root")).await?;
        root.answer().await?;
        root.ended().await?;
        let session = spawner.open(RootSpec::new("root")).await?;
        let mut events = session.events();
        events.next().await;
        session.spawn(ask("a")).await.map_err(|refusal| refusal.to_string())?;
        session.wait(WaitFor::default()).await?;
        let answer = session.fan_out(FanOut::new([Piece::task("b")])).await?.answer().await?;
        session.conclude(&answer).await?;
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(answer.completed)
    };
    #[expect(clippy::disallowed_methods, reason = "that it can be done is what is tested")]
    let task = tokio::spawn(tree);
    assert_eq!(task.await.expect("the task panicked").expect("a whole record"), 1);
}

#[tokio::test]
async fn a_follower_that_joins_while_something_is_being_recorded_misses_nothing() {
    let home = tempfile::tempdir().expect("a folder for the test");
    let folder = Arc::new(DataFolder::open(home.path().join("data")).expect("a data folder"));
    let store = Arc::new(SqliteStore::open(&folder).expect("a record"));
    let spawner = Spawner::builder()
        .config(config(&[]))
        .store(store)
        .folder(folder)
        .runtime(hang())
        .build()
        .expect("a spawner");
    let session = spawner.open(RootSpec::new("root")).await.expect("a root");
    session.pause(true);
    let fan = session.fan_out(FanOut::new([Piece::task("a")])).await.expect("pieces");
    // The supervisor has seen it, the disk has not answered yet, and nothing happens after it.
    session.counts().await;
    let mut events = session.events();
    let mut kinds = Vec::new();
    while kinds.len() < 3 {
        let next = tokio::time::timeout(Duration::from_secs(10), events.next()).await;
        let event = next.expect("nothing was told").expect("one").expect("a record");
        kinds.push(event.kind.name());
    }
    assert_eq!(kinds, ["admitted", "paused", "admitted"]);
    session.stopper().stop_all(true);
    fan.answer().await.expect("an answer");
}
