//! Trees whose supervisor dies with everything in it, and which a new one takes over.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use offshoot_audit::Audit;
use offshoot_config::Loader;
use offshoot_model::{
    CancelledBy, Event, EventKind, Payload, Reason, RootId, RunId, RunStatus, SpawnRequest,
    Timestamp,
};
use offshoot_runtime::{Finished, FnRuntime, Launch};
use offshoot_spawner::{Clock, FanOut, Piece, RootSpec, Spawner, SpawnerError, SystemClock};
use offshoot_store::{DataFolder, SqliteStore, Store};
use tokio::sync::mpsc;

/// The number of runs of each task.
type Runs = Arc<Mutex<BTreeMap<String, u32>>>;

/// Everything a supervisor lives in. Dropping it is as good as killing it, once the handles of its tree are gone too
/// and with them the last write of its store.
fn world() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime")
}

fn spawner(home: &Path, settings: &[(&str, &str)], runtime: FnRuntime) -> Spawner {
    spawner_by(SystemClock, home, settings, runtime)
}

fn spawner_by(
    clock: impl Clock,
    home: &Path,
    settings: &[(&str, &str)],
    runtime: FnRuntime,
) -> Spawner {
    let flag = |loader: Loader, (key, value): &(&str, &str)| {
        loader.flag(format!("agents.defaults.subagents.{key}"), *value, "test")
    };
    let config =
        settings.iter().fold(Loader::new(), flag).load().expect("the configuration was refused");
    let folder = Arc::new(DataFolder::open(home).expect("a data folder"));
    let store = Arc::new(SqliteStore::open(&folder).expect("a record"));
    let builder = Spawner::builder().config(config).store(store).folder(folder);
    let builder = builder.clock(Arc::new(clock));
    builder.runtime(runtime).build().expect("a spawner")
}

/// Answers its task in capitals; hangs where `hangs` says so, and tells when it begins.
fn worker(
    runs: &Runs,
    told: mpsc::UnboundedSender<String>,
    hangs: impl Fn(&Launch) -> bool + Clone + Send + Sync + 'static,
) -> FnRuntime {
    let runs = Arc::clone(runs);
    FnRuntime::new("worker", move |launch, _cx| {
        let (runs, told, hangs) = (Arc::clone(&runs), told.clone(), hangs.clone());
        async move {
            let task = launch.task.to_string();
            *runs
                .lock()
                .expect("a thread panicked with the lock")
                .entry(task.clone())
                .or_default() += 1;
            if hangs(&launch) {
                let _ = told.send(task.clone());
                std::future::pending::<()>().await;
            }
            Finished::text(task.to_uppercase())
        }
    })
}

fn order(many: usize) -> FanOut {
    FanOut::new((0..many).map(|number| Piece::task(format!("piece {number}"))))
}

fn events(home: &Path, root: RootId) -> Vec<Event> {
    let folder = DataFolder::open(home).expect("a data folder");
    let store = SqliteStore::open(&folder).expect("a record");
    store.events(root, 0).map(|event| event.expect("a whole record")).collect()
}

fn kinds(home: &Path, root: RootId) -> Vec<EventKind> {
    events(home, root).into_iter().map(|event| event.kind).collect()
}

#[test]
fn pieces_that_had_ended_are_not_run_again_and_the_answer_is_the_same() {
    let home = tempfile::tempdir().expect("a folder for the test");
    let runs = Runs::default();
    let settings = [("maxConcurrent", "2")];
    let first = world();
    let (root, session, fan) = first.block_on(async {
        let (told, mut hanging) = mpsc::unbounded_channel();
        let hangs = |launch: &Launch| matches!(&*launch.task, "piece 2" | "piece 3");
        let spawner = spawner(home.path(), &settings, worker(&runs, told, hangs));
        let session = spawner.open(RootSpec::new("all")).await.expect("a root");
        let fan = session.fan_out(order(6)).await.expect("pieces");
        for _ in 0..2 {
            hanging.recv().await.expect("two hold the slots, and two stand in line");
        }
        let root = session.root();
        (root, session, fan)
    });
    drop(first);
    drop((session, fan));

    let second = world();
    let answer = second.block_on(async {
        let (told, _) = mpsc::unbounded_channel();
        let spawner = spawner(home.path(), &settings, worker(&runs, told, |_| false));
        let spec = RootSpec::new("all");
        let session = spawner.resume(root, spec.clone()).await.expect("the tree cannot be resumed");
        let held = spawner.resume(root, spec.clone()).await.expect_err("one root, one supervisor");
        assert!(matches!(held, SpawnerError::Store(_)), "{held}");
        // More than the first supervisor had got to: these are asked for now.
        let fan = session.fan_out(order(8)).await.expect("pieces");
        let answer = fan.answer().await.expect("an answer");
        session.conclude(&answer).await.expect("a whole record");
        let over = spawner.resume(root, spec).await.expect_err("nothing lives any more");
        assert!(matches!(over, SpawnerError::Over), "{over}");
        answer
    });
    let expected: Vec<String> = (0..8).map(|number| format!("PIECE {number}")).collect();
    let expected = Payload::text(expected.join("\n---\n"));
    assert_eq!(answer.answer.to_payload(), Some(expected), "as if nothing had happened");
    let runs = runs.lock().expect("no agent runs any more");
    let times: Vec<u32> = runs.values().copied().collect();
    assert_eq!(times, [1, 1, 2, 2, 1, 1, 1, 1], "only what was interrupted runs twice");
    let resumed = |kind: &&EventKind| matches!(kind, EventKind::Resumed { attempt: 2, .. });
    assert_eq!(kinds(home.path(), root).iter().filter(resumed).count(), 2);
}

#[test]
fn the_losers_of_an_early_answer_are_no_failures_to_a_later_supervisor() {
    let home = tempfile::tempdir().expect("a folder for the test");
    let runs = Runs::default();
    let order = || FanOut {
        max_fail: Some(0),
        ..order(3).merge("first".parse().expect("the strategy is unknown"))
    };
    let hangs = |launch: &Launch| &*launch.task != "piece 1";
    let first = world();
    let (root, session) = first.block_on(async {
        let (told, _) = mpsc::unbounded_channel();
        let spawner = spawner(home.path(), &[], worker(&runs, told, hangs));
        let session = spawner.open(RootSpec::new("all")).await.expect("a root");
        let fan = session.fan_out(order()).await.expect("pieces");
        let answer = fan.answer().await.expect("an answer");
        assert_eq!(answer.cut_short, Some(CancelledBy::EarlyAnswer));
        (session.root(), session)
    });
    drop(first);
    drop(session);

    world().block_on(async {
        let (told, _) = mpsc::unbounded_channel();
        let spawner = spawner(home.path(), &[], worker(&runs, told, |_| false));
        let session =
            spawner.resume(root, RootSpec::new("all")).await.expect("the tree cannot be resumed");
        let fan = session.fan_out(order()).await.expect("pieces");
        let answer = fan.answer().await.expect("an answer");
        assert!(answer.is_success() && answer.failures.is_empty(), "{answer:?}");
        session.conclude(&answer).await.expect("a whole record");
    });
    let failed = kinds(home.path(), root).into_iter().find_map(|kind| match kind {
        EventKind::Merged(summary) => Some(summary.failed),
        _ => None,
    });
    assert_eq!(failed, Some(0));
}

#[test]
fn a_failure_behind_an_early_answer_is_none_to_a_later_supervisor() {
    let home = tempfile::tempdir().expect("a folder for the test");
    let order = || FanOut {
        max_fail: Some(0),
        ..order(2).merge("first".parse().expect("the strategy is unknown"))
    };
    let first = world();
    let (root, session, fan) = first.block_on(async {
        // Whichever of them is first: the record of a supervisor that had its answer from the second looks the same.
        let runtime = FnRuntime::new("worker", |launch, _cx| async move {
            match &*launch.task {
                "piece 0" => Finished::of(Reason::ExitCode { code: 3 }),
                task => Finished::text(task),
            }
        });
        let spawner = spawner(home.path(), &[], runtime);
        let session = spawner.open(RootSpec::new("all")).await.expect("a root");
        let mut events = session.events();
        let fan = session.fan_out(order()).await.expect("pieces");
        // Dead before it has merged anything.
        for _ in 0..2 {
            while let Some(event) = events.next().await {
                if matches!(event.expect("a whole record").kind, EventKind::Ended(_)) {
                    break;
                }
            }
        }
        (session.root(), session, fan)
    });
    drop(first);
    drop((session, fan));

    world().block_on(async {
        let (told, _) = mpsc::unbounded_channel();
        let spawner = spawner(home.path(), &[], worker(&Runs::default(), told, |_| false));
        let session =
            spawner.resume(root, RootSpec::new("all")).await.expect("the tree cannot be resumed");
        let fan = session.fan_out(order()).await.expect("pieces");
        let answer = fan.answer().await.expect("an answer");
        assert!(answer.is_success(), "{answer:?}");
        assert_eq!(answer.cut_short, Some(CancelledBy::EarlyAnswer));
        session.conclude(&answer).await.expect("a whole record");
    });
}

#[test]
fn a_run_that_is_not_to_be_run_again_is_lost_with_what_it_had_asked_for() {
    let home = tempfile::tempdir().expect("a folder for the test");
    let settings = [("allowRecursiveSpawn", "true")];
    let parent = |told: mpsc::UnboundedSender<String>| {
        FnRuntime::new("parent", move |launch, cx| {
            let told = told.clone();
            async move {
                if launch.depth < 2 {
                    let request = SpawnRequest { task: "below".into(), ..SpawnRequest::default() };
                    cx.host.spawn(request).await.expect("the spawn was refused");
                }
                let _ = told.send(launch.task.to_string());
                std::future::pending::<()>().await;
                Finished::text("never")
            }
        })
    };
    let first = world();
    let (root, session) = first.block_on(async {
        let (told, mut hanging) = mpsc::unbounded_channel();
        let spawner = spawner(home.path(), &settings, parent(told));
        let session = spawner.run(RootSpec::new("top")).await.expect("a root");
        for _ in 0..3 {
            hanging.recv().await.expect("three levels");
        }
        let root = session.root();
        (root, session)
    });
    drop(first);
    drop(session);

    world().block_on(async {
        let (told, _) = mpsc::unbounded_channel();
        let spawner = spawner(home.path(), &settings, parent(told));
        let mut session =
            spawner.resume(root, RootSpec::new("top")).await.expect("the tree cannot be resumed");
        session.ended().await.expect("a whole record");
        let tree = spawner.tree().expect("a record");
        let nodes: Vec<_> = tree.nodes().collect();
        assert_eq!(nodes.len(), 3);
        for node in nodes {
            assert_eq!(node.status, RunStatus::Lost);
            assert_eq!(node.reason, Some(Reason::Interrupted));
        }
    });
}

#[test]
fn what_an_agent_had_asked_for_begins_again_where_that_is_wanted() {
    let home = tempfile::tempdir().expect("a folder for the test");
    let settings = [("onInterrupt", "rerun"), ("maxConcurrent", "1")];
    let runs = Runs::default();
    let first = world();
    let (root, session) = first.block_on(async {
        let (told, mut hanging) = mpsc::unbounded_channel();
        let spawner = spawner(home.path(), &settings, worker(&runs, told, |_| true));
        let session = spawner.run(RootSpec::new("top")).await.expect("a root");
        hanging.recv().await.expect("nothing has begun");
        let root = session.root();
        (root, session)
    });
    drop(first);
    drop(session);
    world().block_on(async {
        let (told, _) = mpsc::unbounded_channel();
        let spawner = spawner(home.path(), &settings, worker(&runs, told, |_| false));
        let mut session =
            spawner.resume(root, RootSpec::new("?")).await.expect("the tree cannot be resumed");
        let envelope = session.answer().await.expect("an answer");
        assert_eq!(envelope.data, Some(Payload::text("TOP")), "the task stands in the record");
        session.ended().await.expect("a whole record");
    });
}

/// Neither needs to be here what ran it, nor is any of it started: not what was to be run again, and not what stood in line.
#[test]
fn a_tree_without_a_supervisor_is_cancelled_where_its_runtime_is_gone() {
    let home = tempfile::tempdir().expect("a folder for the test");
    let settings = [("onInterrupt", "rerun"), ("maxConcurrent", "1")];
    let runs = Runs::default();
    let first = world();
    let (root, session) = first.block_on(async {
        let (told, mut hanging) = mpsc::unbounded_channel();
        let is_second = |launch: &Launch| &*launch.task == "piece 1";
        let spawner = spawner(home.path(), &settings, worker(&runs, told, is_second));
        let session = spawner.open(RootSpec::new("top")).await.expect("a root");
        let root = session.root();
        let _fan = session.fan_out(order(3)).await.expect("it can be asked for");
        hanging.recv().await.expect("nothing has begun");
        (root, session)
    });
    drop(first);
    drop(session);

    world().block_on(async {
        let other = FnRuntime::new("other", |_, _| async { Finished::text("never") });
        let spawner = spawner(home.path(), &settings, other);
        let resumed = spawner.resume(root, RootSpec::new("top")).await;
        assert!(matches!(resumed, Err(SpawnerError::RuntimeMissing { .. })), "{resumed:?}");
        let tree = spawner.abandoned_to_cancel(root).await.expect("it was abandoned");
        let mut session = tree.cancel().await.expect("nothing is left");
        session.ended().await.expect("a whole record");
        let tree = spawner.tree().expect("a record");
        let statuses: Vec<_> = tree.nodes().map(|node| node.status).collect();
        let cancelled = RunStatus::Cancelled;
        assert_eq!(statuses, [cancelled, RunStatus::Completed, cancelled, cancelled]);
        let by_operator = Reason::Cancelled { by: CancelledBy::Operator };
        let reasons = tree.nodes().filter(|node| node.status == cancelled);
        assert!(reasons.into_iter().all(|node| node.reason.as_ref() == Some(&by_operator)));
        let again = spawner.abandoned_to_cancel(root).await;
        assert!(matches!(again, Err(SpawnerError::Over)), "{again:?}");
    });
    let runs = runs.lock().expect("a thread panicked with the lock");
    assert_eq!(runs.values().sum::<u32>(), 2, "{runs:?}");
    let audit = Audit::of(&events(home.path(), root));
    assert_eq!((audit.breaches.len(), audit.unfinished), (0, 0), "{:?}", audit.breaches);
}

#[test]
fn pieces_that_were_lost_or_being_stopped_keep_their_end() {
    let check = |on_interrupt: &str, stopped: bool, expected: RunStatus| {
        let home = tempfile::tempdir().expect("a folder for the test");
        let runs = Runs::default();
        let settings = [("onInterrupt", on_interrupt), ("graceSeconds", "3600")];
        let first = world();
        let (root, session, fan) = first.block_on(async {
            let (told, mut hanging) = mpsc::unbounded_channel();
            let hangs = |launch: &Launch| &*launch.task == "piece 1";
            let spawner = spawner(home.path(), &settings, worker(&runs, told, hangs));
            let session = spawner.open(RootSpec::new("all")).await.expect("a root");
            let mut events = session.events();
            let fan = session.fan_out(order(3)).await.expect("pieces");
            hanging.recv().await.expect("nothing has begun");
            if stopped {
                session.stopper().stop_all(false);
                let stops = |event: &Event| matches!(event.kind, EventKind::Stopping { .. });
                while !stops(&events.next().await.expect("more").expect("a record")) {}
            }
            (session.root(), session, fan)
        });
        drop(first);
        drop((session, fan));
        world().block_on(async {
            let (told, _) = mpsc::unbounded_channel();
            let spawner = spawner(home.path(), &settings, worker(&runs, told, |_| false));
            let session = spawner
                .resume(root, RootSpec::new("all"))
                .await
                .expect("the tree cannot be resumed");
            let fan = session.fan_out(order(3)).await.expect("pieces");
            let answer = fan.answer().await.expect("an answer");
            let [(_, envelope)] = &answer.failures[..] else { panic!("{:?}", answer.failures) };
            assert_eq!(envelope.status, expected);
            session.conclude(&answer).await.expect("a whole record");
        });
        let times: Vec<u32> = runs.lock().expect("no agent runs").values().copied().collect();
        assert_eq!(times, [1, 1, 1], "{on_interrupt}, {stopped}: nothing is run a second time");
    };
    check("lost", false, RunStatus::Lost);
    check("rerun", true, RunStatus::Cancelled);
}

/// A wall that was set back an hour.
struct AnHourAgo;

impl Clock for AnHourAgo {
    fn now(&self) -> Timestamp {
        let hour = Duration::from_secs(3600).as_micros() as u64;
        Timestamp::from_micros(SystemClock.now().as_micros() - hour)
    }

    fn mint(&self) -> RunId {
        SystemClock.mint()
    }
}

#[test]
fn the_times_of_a_tree_never_go_back_although_the_clock_was_set_back_an_hour() {
    let home = tempfile::tempdir().expect("a folder for the test");
    let settings = [("maxConcurrent", "2"), ("runTimeoutSeconds", "600")];
    let runs = Runs::default();
    let first = world();
    let (root, session, fan) = first.block_on(async {
        let (told, mut hanging) = mpsc::unbounded_channel();
        let hangs = |launch: &Launch| &*launch.task == "piece 1";
        let spawner = spawner(home.path(), &settings, worker(&runs, told, hangs));
        let session = spawner.open(RootSpec::new("all")).await.expect("a root");
        let fan = session.fan_out(order(2)).await.expect("pieces");
        hanging.recv().await.expect("nothing has begun");
        let root = session.root();
        (root, session, fan)
    });
    drop(first);
    drop((session, fan));
    world().block_on(async {
        let (told, _) = mpsc::unbounded_channel();
        let worker = worker(&runs, told, |_| false);
        let spawner = spawner_by(AnHourAgo, home.path(), &settings, worker);
        let session =
            spawner.resume(root, RootSpec::new("all")).await.expect("the tree cannot be resumed");
        let fan = session.fan_out(order(3)).await.expect("pieces");
        let answer = fan.answer().await.expect("an answer");
        session.conclude(&answer).await.expect("a whole record");
    });
    let folder = DataFolder::open(home.path()).expect("a data folder");
    let store = SqliteStore::open(&folder).expect("a record");
    let events: Vec<Event> =
        store.events(root, 0).map(|event| event.expect("a whole record")).collect();
    assert!(events.is_sorted_by_key(|event| event.at), "{events:?}");
    let reopened = events.iter().position(|event| event.kind == EventKind::Reopened);
    let after = &events[reopened.expect("a second supervisor")..];
    assert!(after.len() > 5 && after[0].at < after[after.len() - 1].at, "and time passes");
    let findings = Audit::of(&events);
    assert_eq!((findings.breaches.len(), findings.clock_set_back), (0, 0));
    let took = after.last().expect("an end").at.since(events[0].at);
    assert!(took < Duration::from_secs(600), "no hour is added to it: {took:?}");
}

#[test]
fn a_tree_whose_answer_cannot_be_kept_has_it_when_it_is_resumed() {
    let home = tempfile::tempdir().expect("a folder for the test");
    let runs = Runs::default();
    let order = || FanOut::new([1, 2].map(|part| Piece::task(format!("{part}").repeat(100_000))));
    let spool = home.path().join("spool");
    let (told, _) = mpsc::unbounded_channel();
    let worker = worker(&runs, told, |_| false);
    let root = world().block_on(async {
        let spawner = spawner(home.path(), &[], worker.clone());
        let session = spawner.open(RootSpec::new("all")).await.expect("a root");
        let root = session.root();
        let fan = session.fan_out(order()).await.expect("pieces");
        let answer = fan.answer().await.expect("an answer");
        // Where the answer is written, nothing can be written any more.
        std::fs::remove_dir_all(&spool).expect("the folder cannot be removed");
        let error = session.conclude(&answer).await.expect_err("it cannot be kept");
        assert!(matches!(error, SpawnerError::Store(_)), "{error}");
        root
    });
    let ends = |home: &Path| {
        let ended = |kind: &EventKind| matches!(kind, EventKind::Ended(_));
        kinds(home, root).iter().filter(|kind| ended(kind)).count()
    };
    assert_eq!(ends(home.path()), 2, "the pieces, and not the root");
    world().block_on(async {
        let spawner = spawner(home.path(), &[], worker);
        let session =
            spawner.resume(root, RootSpec::new("all")).await.expect("the tree cannot be resumed");
        let fan = session.fan_out(order()).await.expect("pieces");
        let answer = fan.answer().await.expect("an answer");
        let ending = session.conclude(&answer).await.expect("a whole record");
        let Some(Payload::Stored(value)) = ending.output else { panic!("it is large") };
        assert_eq!(value.size, 200_005);
    });
    assert_eq!(ends(home.path()), 3);
    assert!(runs.lock().expect("no agent runs any more").values().all(|times| *times == 1));
}

/// The runtime of tokio that is dropped under a tree is no failure of its agents: what ran is interrupted, and runs again.
#[test]
fn what_is_dropped_with_its_threads_is_interrupted() {
    const PIECES: u32 = 8;
    for round in 0..30 {
        let home = tempfile::tempdir().expect("a folder for the test");
        let threads =
            || tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_all().build();
        let first = threads().expect("threads");
        let runs = Runs::default();
        let (root, handles) = first.block_on(async {
            let (told, mut hanging) = mpsc::unbounded_channel();
            let spawner = spawner(home.path(), &[], worker(&runs, told, |_| true));
            let session = spawner.open(RootSpec::new("all")).await.expect("a root");
            let fan = session.fan_out(order(PIECES as usize)).await.expect("a live tree");
            for _ in 0..PIECES {
                hanging.recv().await.expect("each begins");
            }
            (session.root(), (session, fan))
        });
        drop(first);
        drop(handles);
        threads().expect("threads").block_on(async {
            let (told, _) = mpsc::unbounded_channel();
            let spawner = spawner(home.path(), &[], worker(&runs, told, |_| false));
            let session = spawner
                .resume(root, RootSpec::new("all"))
                .await
                .expect("the tree cannot be resumed");
            let fan = session.fan_out(order(PIECES as usize)).await.expect("a live tree");
            let answer = fan.answer().await.expect("an answer");
            assert_eq!(answer.completed, PIECES, "round {round}: {:?}", answer.failures);
            session.conclude(&answer).await.expect("a whole record");
        });
    }
}
