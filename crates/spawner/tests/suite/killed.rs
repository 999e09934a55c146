//! A supervisor that is killed at every single write, just before it and just after, and the tree that goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use offshoot_audit::Audit;
use offshoot_config::Loader;
use offshoot_merge::OnFailure;
use offshoot_model::{Event, EventKind, Payload, RootId, RunId};
use offshoot_runtime::{Finished, FnRuntime, NextTurn, WaitFor};
use offshoot_spawner::{FanOut, Piece, PieceNeed, RootSpec, Session, Spawner, SpawnerError};
use offshoot_store::{Commit, DataFolder, MemoryStore, Store, StoreError, Urgency};
use tokio::sync::{Notify, oneshot};

use crate::intercept::Intercept;

use crate::asking::ask;

/// The fate of the last write before everything is gone.
#[derive(Clone, Copy, Debug)]
enum Last {
    /// Nothing of it is on disk.
    Lost,
    /// The write is durable, and no caller was told.
    Untold,
}

/// Answers that never come.
type Never = Mutex<Vec<oneshot::Sender<Result<(), StoreError>>>>;

/// A store whose process dies at a certain write: from then on nothing is written and no call is answered.
fn dying(inner: Arc<MemoryStore>, write: i64, last: Last, dead: Arc<Notify>) -> Arc<impl Store> {
    let (left, never) = (AtomicI64::new(write), Never::default());
    let silence = move || {
        let (answer, commit) = oneshot::channel();
        never.lock().expect("a thread panicked with the lock").push(answer);
        dead.notify_one();
        Commit::waiting(commit)
    };
    let append = move |inner: &MemoryStore, events: &[Arc<Event>]| match (
        left.fetch_sub(1, Ordering::SeqCst),
        last,
    ) {
        (2.., _) => inner.record(events, Urgency::Now),
        (1, Last::Untold) => {
            drop(inner.record(events, Urgency::Now));
            silence()
        }
        _ => silence(),
    };
    Arc::new(Intercept::new(inner, append))
}

/// The number of starts of each run.
type Starts = Arc<Mutex<BTreeMap<RunId, u32>>>;

/// Agents that always answer the same: some ask for two children and wait, some for two and end their turn.
fn agents(starts: &Starts) -> FnRuntime {
    let starts = Arc::clone(starts);
    let agents = FnRuntime::new("agents", move |launch, mut cx| {
        let starts = Arc::clone(&starts);
        async move {
            *starts
                .lock()
                .expect("a thread panicked with the lock")
                .entry(launch.run)
                .or_default() += 1;
            let task = launch.task.to_string();
            let mut answer = task.clone();
            for given in &launch.context {
                let needed = std::fs::read_to_string(&given.path).expect("an answer on record");
                answer = format!("{answer} of {needed}");
            }
            let children = || ["x", "y"].map(|part| format!("leaf {part} of {task}"));
            if task.starts_with("wait") {
                for child in children() {
                    cx.host.spawn(ask(&child)).await.expect("the spawn was refused");
                }
                let waited = cx.host.wait(WaitFor::default()).await.expect("the tree is over");
                for ended in waited.ended {
                    answer = format!("{answer}, {}", text(ended.data.as_ref()));
                }
            } else if task.starts_with("turn") {
                for child in children() {
                    cx.host.spawn(ask(&child)).await.expect("the spawn was refused");
                }
                while let NextTurn::Go(prompt) = cx.turns.ended(None).await {
                    let leaves = prompt.lines().filter(|line| line.starts_with("leaf"));
                    answer = leaves.fold(answer, |answer, leaf| format!("{answer}, {leaf}"));
                }
            }
            Finished::text(answer)
        }
    });
    agents.with_turns()
}

fn text(data: Option<&Payload>) -> &str {
    match data {
        Some(Payload::Text(text)) => text,
        other => panic!("a short text, not {other:?}"),
    }
}

fn spawner(
    store: Arc<dyn Store>,
    folder: &Arc<DataFolder>,
    starts: &Starts,
    more: &[(&str, &str)],
) -> Spawner {
    let flag = |loader: Loader, (key, value): (&str, &str)| {
        loader.flag(format!("agents.defaults.subagents.{key}"), value, "test")
    };
    let settings =
        [("allowRecursiveSpawn", "true"), ("maxConcurrent", "2"), ("budget.tokens", "100000")];
    let settings = settings.into_iter().chain(more.iter().copied());
    let config = settings.fold(Loader::new(), flag).load().expect("the configuration was refused");
    let builder = Spawner::builder().config(config).store(store).folder(Arc::clone(folder));
    builder.runtime(agents(starts)).build().expect("a spawner")
}

/// Every piece does something else.
fn order() -> FanOut {
    FanOut::new(["plain", "wait a", "turn b", "plain c", "wait d"].map(Piece::task))
}

/// Each piece needs the one before it.
fn chain() -> FanOut {
    let needs = |place: u32| {
        let need = |place| PieceNeed { name: "last".into(), place };
        place.checked_sub(1).map(need).into_iter().collect()
    };
    let piece = |(place, task)| Piece { needs: needs(place), ..Piece::task(task) };
    FanOut::new((0..).zip(["a", "b", "wait c", "d"]).map(piece))
}

async fn answered(session: Session, order: FanOut) -> Result<Payload, SpawnerError> {
    let answer = session.fan_out(order).await?.answer().await?;
    session.conclude(&answer).await?;
    Ok(answer.answer.to_payload().expect("a short text"))
}

fn world() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Runs the tree, kills it at this write and goes on. Answers whether it got that far.
fn killed_at(write: i64, last: Last, order: fn() -> FanOut, expected: &Payload) -> bool {
    let home = tempfile::tempdir().expect("a folder for the test");
    let folder = Arc::new(DataFolder::open(home.path()).expect("a data folder"));
    let inner = Arc::new(MemoryStore::new());
    let dead = Arc::new(Notify::new());
    let dying = dying(Arc::clone(&inner), write, last, Arc::clone(&dead));
    let before = Starts::default();
    let first = world();
    let (root, survived) = first.block_on(async {
        let spawner = spawner(dying, &folder, &before, &[]);
        let session = spawner.open(RootSpec::new("all")).await.expect("a root");
        let root = session.root();
        let survived = tokio::select! {
            answer = answered(session, order()) => Some(answer.expect("a whole record")),
            () = dead.notified() => None,
        };
        (root, survived)
    });
    drop(first);
    if let Some(answer) = survived {
        assert_eq!(answer, *expected);
        return false;
    }
    let ended = ended(&inner, root);
    if inner.admitted(root, root.run()).expect("a record").is_none() {
        assert!(before.lock().expect("no agent runs").is_empty(), "recorded before it is begun");
        return true;
    }
    let after = Starts::default();
    let answer = world().block_on(async {
        let spawner = spawner(Arc::<MemoryStore>::clone(&inner), &folder, &after, &[]);
        match spawner.resume(root, RootSpec::new("all")).await {
            Ok(session) => answered(session, order()).await.expect("a whole record"),
            Err(SpawnerError::Over) => {
                let ending = inner.ending(root, root.run()).expect("a record").expect("it is over");
                ending.output.expect("an answer")
            }
            Err(error) => panic!("{error}"),
        }
    });
    assert_eq!(answer, *expected, "killed at write {write}, {last:?}");
    for (run, starts) in &*after.lock().expect("no agent runs any more") {
        assert!(!ended.contains(run), "what had ended is not run again");
        assert_eq!(*starts, 1);
    }
    let events: Vec<Event> =
        inner.events(root, 0).map(|event| event.expect("a whole record")).collect();
    let findings = Audit::of(&events);
    assert!(findings.breaches.is_empty(), "{write}, {last:?}: {:?}", findings.breaches);
    assert_eq!(findings.unfinished, 0);
    true
}

fn ended(store: &MemoryStore, root: RootId) -> BTreeSet<RunId> {
    let events = store.events(root, 0).map(|event| event.expect("a whole record"));
    events
        .filter(|event| matches!(event.kind, EventKind::Ended(_)))
        .map(|event| event.run)
        .collect()
}

#[test]
fn a_tree_survives_its_supervisor_at_every_write() {
    let expected = Payload::text(
        "plain\n---\nwait a, leaf x of wait a, leaf y of wait a\n---\n\
         turn b, leaf x of turn b, leaf y of turn b\n---\nplain c\n---\n\
         wait d, leaf x of wait d, leaf y of wait d",
    );
    for last in [Last::Lost, Last::Untold] {
        let killed = (1..).take_while(|&write| killed_at(write, last, order, &expected)).count();
        assert!(killed > 10, "a tree of eleven runs has more writes than {killed}");
    }
}

#[test]
fn what_needs_an_answer_survives_its_supervisor_at_every_write() {
    let (b, c) = ("b of a", "wait c of b of a, leaf x of wait c, leaf y of wait c");
    let expected = Payload::text(format!("a\n---\n{b}\n---\n{c}\n---\nd of {c}"));
    for last in [Last::Lost, Last::Untold] {
        let killed = (1..).take_while(|&write| killed_at(write, last, chain, &expected)).count();
        assert!(killed > 6, "a chain of four has more writes than {killed}");
    }
}

/// Kills a tree of plain pieces that must not be run twice at this write, and goes on. Answers whether it got that far.
fn runs_nothing_twice(write: i64, last: Last) -> bool {
    let home = tempfile::tempdir().expect("a folder for the test");
    let folder = Arc::new(DataFolder::open(home.path()).expect("a data folder"));
    let inner = Arc::new(MemoryStore::new());
    let dead = Arc::new(Notify::new());
    let dying = dying(Arc::clone(&inner), write, last, Arc::clone(&dead));
    let (before, after) = (Starts::default(), Starts::default());
    let settings = [("onInterrupt", "lost"), ("maxConcurrent", "1")];
    let order = || FanOut::new(["a", "b", "c"].map(Piece::task)).on_failure(OnFailure::Skip);
    let first = world();
    let (root, survived) = first.block_on(async {
        let spawner = spawner(dying, &folder, &before, &settings);
        let session = spawner.open(RootSpec::new("all")).await.expect("a root");
        let root = session.root();
        let work = async {
            let fan = session.fan_out(order()).await?;
            session.conclude(&fan.answer().await?).await
        };
        tokio::select! {
            ending = work => (root, ending.is_ok()),
            () = dead.notified() => (root, false),
        }
    });
    drop(first);
    if survived || inner.admitted(root, root.run()).expect("a record").is_none() {
        return !survived;
    }
    world().block_on(async {
        let spawner = spawner(Arc::<MemoryStore>::clone(&inner), &folder, &after, &settings);
        match spawner.resume(root, RootSpec::new("all")).await {
            Ok(session) => {
                let fan = session.fan_out(order()).await.expect("pieces");
                let answer = fan.answer().await.expect("an answer");
                session.conclude(&answer).await.expect("a whole record");
            }
            Err(error) => assert!(matches!(error, SpawnerError::Over), "{error}"),
        }
    });
    let before = before.lock().expect("no agent runs any more");
    for run in after.lock().expect("no agent runs any more").keys() {
        assert!(!before.contains_key(run), "killed at write {write}, {last:?}: run twice");
    }
    let events: Vec<Event> =
        inner.events(root, 0).map(|event| event.expect("a whole record")).collect();
    assert_eq!(Audit::of(&events).breaches, [], "{write}, {last:?}");
    true
}

#[test]
fn what_must_not_be_run_twice_is_not_although_its_supervisor_dies_at_any_write() {
    for last in [Last::Lost, Last::Untold] {
        let killed = (1..).take_while(|&write| runs_nothing_twice(write, last)).count();
        assert!(killed > 4, "three pieces one after the other have more writes than {killed}");
    }
}
