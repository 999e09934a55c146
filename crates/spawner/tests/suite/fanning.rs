//! Tests of the number of pieces that are asked for.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use offshoot_merge::{OnFailure, Values};
use offshoot_model::{Event, EventKind, Payload, Reason};
use offshoot_runtime::{Finished, FnRuntime, Output};
use offshoot_spawner::{FanOut, Piece, PieceNeed, RootSpec, Spawner, SpawnerError};
use offshoot_store::{Commit, DataFolder, MemoryStore, SqliteStore, Store, StoreError, Urgency};
use tokio::sync::{Semaphore, oneshot};

use crate::intercept::Intercept;

#[tokio::test(start_paused = true)]
async fn the_first_pieces_run_while_the_tasks_of_the_last_are_kept() {
    const PIECES: usize = 300;
    // The tasks of the second half are not kept before the first piece has started.
    let started = Arc::new(Semaphore::new(0));
    let (gate, kept) = (Arc::clone(&started), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&kept);
    let before_put = Box::new(move || {
        let (gate, number) = (Arc::clone(&gate), count.fetch_add(1, Ordering::SeqCst));
        async move {
            if number >= PIECES / 2 {
                let _ = gate.acquire().await.expect("it is never closed");
            }
            Ok(())
        }
        .boxed()
    });
    let append = |inner: &MemoryStore, events: &[Arc<Event>]| inner.record(events, Urgency::Now);
    let store = Intercept::new(Arc::new(MemoryStore::new()), append).before_put(before_put);
    let runtime = FnRuntime::new("counts", move |launch, _cx| {
        started.add_permits(1);
        async move { Finished::text(launch.task.len().to_string()) }
    });
    let builder = Spawner::builder().store(Arc::new(store)).runtime(runtime);
    let session = builder.build().expect("a spawner").open(RootSpec::new("all")).await;
    let session = session.expect("a root");
    let task = |number: usize| Piece::task(format!("{number:>5000}"));
    let order = FanOut::new((0..PIECES).map(task)).merge("sum".parse().expect("sum"));
    let fan = tokio::time::timeout(Duration::from_secs(60), session.fan_out(order)).await;
    let answer = fan.expect("no piece waits for all tasks").expect("pieces").answer().await;
    let answer = answer.expect("an answer");
    assert_eq!((answer.completed, kept.load(Ordering::SeqCst)), (300, 300));
    session.conclude(&answer).await.expect("a whole record");
}

/// Asks for pieces whose n-th task cannot be kept, and then again in the next life of the tree.
async fn a_task_cannot_be_kept(number: usize) {
    const PIECES: usize = 100;
    let inner = Arc::new(MemoryStore::new());
    let kept = AtomicUsize::new(0);
    let before_put = Box::new(move || {
        let source = Arc::new(io::Error::from(io::ErrorKind::StorageFull));
        let failure = StoreError::Io { doing: "write", path: "blobs".into(), source };
        let fails = kept.fetch_add(1, Ordering::SeqCst) == number;
        async move { if fails { Err(failure) } else { Ok(()) } }.boxed()
    });
    let append = |inner: &MemoryStore, events: &[Arc<Event>]| inner.record(events, Urgency::Now);
    let broken = Intercept::new(Arc::clone(&inner), append).before_put(before_put);
    let spawner = |store: Arc<dyn Store>| {
        let runtime = FnRuntime::new("counts", |launch, _cx| async move {
            Finished::text(launch.task.len().to_string())
        });
        Spawner::builder().store(store).runtime(runtime).build().expect("a spawner")
    };
    let task = |number: usize| Piece::task(format!("{number:>5000}"));
    let order = || FanOut::new((0..PIECES).map(task)).merge("sum".parse().expect("sum"));
    let root = {
        let spawner = spawner(Arc::new(broken));
        let mut session = spawner.open(RootSpec::new("all")).await.expect("a root");
        let error = session.fan_out(order()).await.expect_err("a task is not kept");
        assert!(matches!(&error, SpawnerError::Store(StoreError::Io { .. })), "{error:?}");
        let ended = session.ended().await;
        assert!(matches!(&ended, Err(SpawnerError::Record(error)) if error.is_full()), "{ended:?}");
        session.root()
    };
    let spawner = spawner(inner);
    let session = spawner.resume(root, RootSpec::new("all")).await.expect("it is not over");
    let fan = session.fan_out(order()).await.expect("pieces");
    let answer = fan.answer().await.expect("an answer");
    assert_eq!((answer.completed, answer.missing()), (100, 0), "the {number}-th task");
    session.conclude(&answer).await.expect("a whole record");
}

#[tokio::test(start_paused = true)]
async fn a_tree_whose_task_cannot_be_kept_is_left_to_a_later_supervisor() {
    // Before a piece is asked for, and after.
    a_task_cannot_be_kept(0).await;
    a_task_cannot_be_kept(70).await;
}

#[tokio::test(start_paused = true)]
async fn so_many_pieces_wait_for_the_disk_at_most() {
    // Nothing after the root is durable before it is let go.
    let held = Arc::new(Mutex::new(Some(Vec::new())));
    let (holds, is_root) = (Arc::clone(&held), AtomicBool::new(true));
    let append = move |inner: &MemoryStore, events: &[Arc<Event>]| {
        let written = inner.record(events, Urgency::Now);
        let mut held = holds.lock().expect("no test panics with it");
        match &mut *held {
            Some(held) if !is_root.swap(false, Ordering::SeqCst) => {
                let (answer, commit) = oneshot::channel();
                held.push(answer);
                Commit::waiting(commit)
            }
            _ => written,
        }
    };
    let store = Intercept::new(Arc::new(MemoryStore::new()), append);
    let runtime =
        FnRuntime::new("echo", |launch, _cx| async move { Finished::text(&*launch.task) });
    let builder = Spawner::builder().store(Arc::new(store)).runtime(runtime);
    let session = builder.build().expect("a spawner").open(RootSpec::new("all")).await;
    let session = session.expect("a root");
    let pieces = (0..20_000).map(|_| Piece::task("1"));
    let order = FanOut::new(pieces).merge("sum".parse().expect("sum"));
    let mut fan = Box::pin(session.fan_out(order));
    // A paused clock goes on once nothing else can.
    let waits = tokio::time::timeout(Duration::from_secs(1), &mut fan).await;
    assert!(waits.is_err(), "it waits for the disk");
    assert_eq!(session.counts().await.live, 1 + 4_096, "the others are not asked for yet");
    let held = held.lock().expect("no test panics with it").take().expect("it was never let go");
    held.into_iter().for_each(|commit| commit.send(Ok(())).expect("it is waited for"));
    let answer = fan.await.expect("pieces").answer().await.expect("an answer");
    assert_eq!(answer.completed, 20_000);
    session.conclude(&answer).await.expect("a whole record");
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_not_held_is_read_from_the_record() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let runtime = FnRuntime::new("mixed", |launch, _cx| async move {
        match &*launch.task {
            "bad" => Finished::of(Reason::ExitCode { code: 3 }),
            task => Finished::text(task),
        }
    });
    let spawner = Spawner::builder().store(Arc::clone(&store)).runtime(runtime).build();
    let session = spawner.expect("a spawner").open(RootSpec::new("all")).await.expect("a root");
    let order = FanOut::new(["good", "bad"].map(Piece::task)).on_failure(OnFailure::Include);
    let answer = session.fan_out(order).await.expect("pieces").answer().await.expect("an answer");
    let values = answer.values(store);
    assert_eq!(values.result(0).expect("it completed"), Payload::text("good"));
    let failed = values.result(1).expect("its envelope is on record");
    assert!(matches!(failed, Payload::Json(json) if json.as_str().contains("exit_code")));
    assert!(values.result(2).is_err(), "there was no such piece");
    session.conclude(&answer).await.expect("a whole record");
}

#[tokio::test]
async fn tasks_of_a_kibibyte_cost_no_file_each() {
    let home = tempfile::tempdir().expect("a folder for the test");
    let folder = Arc::new(DataFolder::open(home.path()).expect("a data folder"));
    let store = Arc::new(SqliteStore::open(&folder).expect("a record"));
    let runtime = FnRuntime::new("counts", |launch, _cx| async move {
        Finished::text(launch.task.len().to_string())
    });
    let builder = Spawner::builder().folder(folder).store(Arc::clone(&store) as Arc<dyn Store>);
    let spawner = builder.runtime(runtime).build().expect("a spawner");
    let session = spawner.open(RootSpec::new("all")).await.expect("a root");
    let task = |number: usize| Piece::task(format!("{number:>1024}"));
    let order = FanOut::new((0..2000).map(task)).merge("sum".parse().expect("sum"));
    let answer = session.fan_out(order).await.expect("pieces").answer().await.expect("an answer");
    assert_eq!(answer.completed, 2000);
    session.conclude(&answer).await.expect("a whole record");
    let blobs = std::fs::read_dir(home.path().join("blobs"));
    assert_eq!(blobs.map_or(0, Iterator::count), 0, "each task stands in the record");
    // Thousands of starts and ends, and a flush for groups of them.
    assert!(store.commits() < 1000, "{} flushes", store.commits());
}

#[tokio::test(start_paused = true)]
async fn pieces_are_told_of_as_they_end() {
    let gate = Arc::new(Semaphore::new(0));
    let opens = Arc::clone(&gate);
    let runtime = FnRuntime::new("mixed", move |launch, _cx| {
        let gate = Arc::clone(&gate);
        async move {
            match &*launch.task {
                "bad" => Finished::of(Reason::ExitCode { code: 3 }),
                "slow" => {
                    let _ = gate.acquire().await.expect("it is never closed");
                    Finished::text("slow")
                }
                task => Finished::text(task),
            }
        }
    });
    let spawner = Spawner::builder().store(Arc::new(MemoryStore::new())).runtime(runtime);
    let spawner = spawner.build().expect("a spawner");
    let order = FanOut::new(["slow", "bad", "good"].map(Piece::task)).on_failure(OnFailure::Skip);
    let session = spawner.open(RootSpec::new("all")).await.expect("a root");
    let mut fan = session.fan_out(order).await.expect("pieces");
    let mut told = Vec::new();
    while let Some(outcome) = fan.next().await.expect("a whole record") {
        let result = outcome.result.expect("it was admitted");
        told.push((outcome.place, outcome.key.to_string(), result.status.is_success()));
        // The first piece ends only once the others were told of.
        if told.len() == 2 {
            opens.add_permits(1);
        }
    }
    assert_eq!(told.last(), Some(&(0, "1".to_owned(), true)), "in the order of their ends");
    told.sort_unstable();
    let expected = [(0, true), (1, false), (2, true)]
        .map(|(place, completed)| (place, (place + 1).to_string(), completed));
    assert_eq!(told, expected);
    let answer = fan.answer().await.expect("an answer");
    assert_eq!((answer.completed, answer.missing()), (2, 1), "what was told is in the answer too");
    session.conclude(&answer).await.expect("a whole record");
}

/// A store in which no end of a run, nor what is written after it, is durable before it is let go.
fn holding_ends(inner: Arc<MemoryStore>, let_go: Arc<Mutex<Option<Vec<HeldWrite>>>>) -> impl Store {
    let append = move |inner: &MemoryStore, events: &[Arc<Event>]| {
        let written = inner.record(events, Urgency::Now);
        let ends = events.iter().any(|event| matches!(event.kind, EventKind::Ended(_)));
        match &mut *let_go.lock().expect("no test panics with it") {
            Some(held) if ends || !held.is_empty() => {
                let (answer, commit) = oneshot::channel();
                held.push(answer);
                Commit::waiting(commit)
            }
            _ => written,
        }
    };
    Intercept::new(inner, append)
}

type HeldWrite = oneshot::Sender<Result<(), StoreError>>;

/// Runs a chain of two, of which the second reads what the first has answered while the record of that is not durable.
async fn reads_ahead_of_the_record(answer_of_first: Option<String>) {
    let home = tempfile::tempdir().expect("a folder");
    let folder = Arc::new(DataFolder::open(home.path()).expect("a data folder"));
    let held = Arc::new(Mutex::new(Some(Vec::new())));
    let store = holding_ends(Arc::new(MemoryStore::new()), Arc::clone(&held));
    let (read, let_go, answer) = (Arc::new(Mutex::new(None)), Arc::clone(&held), answer_of_first);
    let (seen, first) = (Arc::clone(&read), answer.clone());
    let runtime = FnRuntime::new("chain", move |launch, _cx| {
        if let Some(needed) = launch.context.first() {
            let text = std::fs::read_to_string(&needed.path).expect("it is there");
            *seen.lock().expect("no test panics with it") = Some(text);
            // What was written waits until here.
            let writes = let_go.lock().expect("no test panics with it").take();
            writes.expect("an end was held").into_iter().for_each(|write| drop(write.send(Ok(()))));
        }
        let answer = first.clone();
        async move {
            match answer {
                Some(text) => Finished::text(text),
                None => Finished { output: Output::None, ..Finished::text("") },
            }
        }
    });
    let builder = Spawner::builder().store(Arc::new(store)).folder(folder).runtime(runtime);
    let session = builder.build().expect("a spawner").open(RootSpec::new("all")).await;
    let session = session.expect("a root");
    let needs = vec![PieceNeed { name: "first".into(), place: 0 }];
    let chain = [Piece::task("first"), Piece { needs, ..Piece::task("second") }];
    let fan = session.fan_out(FanOut::new(chain)).await.expect("pieces");
    let ended = tokio::time::timeout(Duration::from_secs(60), fan.answer()).await;
    let ended = ended.expect("the second does not wait for the disk").expect("an answer");
    assert_eq!(ended.completed, 2);
    let read = read.lock().expect("no test panics with it").clone();
    assert_eq!(read, Some(answer.unwrap_or_default()));
    session.conclude(&ended).await.expect("a whole record");
}

#[tokio::test]
async fn what_needs_an_answer_does_not_wait_until_that_is_durable() {
    reads_ahead_of_the_record(Some("short".into())).await;
    // Stored as a value.
    reads_ahead_of_the_record(Some("long ".repeat(100_000))).await;
    // It says nothing.
    reads_ahead_of_the_record(None).await;
}
