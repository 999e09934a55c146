//! A record that breaks at any write: nothing is told that is not recorded, nothing hangs, nothing goes on.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use offshoot_model::{Ending, Event, Reason, SpawnRequest};
use offshoot_runtime::{
    Abilities, Finished, FnRuntime, Launch, RunContext, Runtime, Stop, WaitFor, WaitMode,
};
use offshoot_spawner::{Clock, RootSpec, Spawner, SpawnerError, TestClock};
use offshoot_store::{Commit, MemoryStore, Store, StoreError, Urgency};

use crate::intercept::Intercept;

/// Refuses one append, and with it everything that follows.
fn breaking(write: i64) -> Arc<impl Store> {
    let left = AtomicI64::new(write);
    let append = move |inner: &MemoryStore, events: &[Arc<Event>]| {
        let mut events: Vec<_> = events.iter().map(|event| Event::clone(event)).collect();
        if left.fetch_sub(1, Ordering::SeqCst) <= 0 {
            // A gap is what the store itself refuses.
            events.iter_mut().for_each(|event| event.seq += 1_000);
        }
        inner.append(&events)
    };
    Arc::new(Intercept::new(Arc::new(MemoryStore::new()), append))
}

/// Counts those that run; the last one hangs until it is killed.
fn runtime(live: &Arc<AtomicUsize>) -> FnRuntime {
    let live = Arc::clone(live);
    FnRuntime::new("counted", move |launch, _cx| {
        let alive = Alive::one_of(&live);
        async move {
            let _alive = alive;
            if &*launch.task == "hang" {
                std::future::pending::<()>().await;
            }
            Finished::text(&*launch.task)
        }
    })
}

struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn one_of(live: &Arc<AtomicUsize>) -> Self {
        live.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(live))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Runs a tree whose record breaks at the n-th write; answers whether it broke at all.
async fn breaks_at(write: i64) -> bool {
    let live = Arc::new(AtomicUsize::new(0));
    let store: Arc<dyn Store> = breaking(write);
    let spawner = Spawner::builder()
        .store(Arc::clone(&store))
        .runtime(runtime(&live))
        .build()
        .expect("a spawner");
    let session = spawner.open(RootSpec::new("root")).await.expect("a root");
    let mut events = session.events();
    let told = tree(&session, &store).await;
    let ended = match told {
        Ok(()) => session.close(Ending::of(Reason::Completed { exit_code: None })).await,
        Err(error) => {
            let closed = session.close(Ending::of(Reason::Interrupted)).await;
            assert!(closed.is_err(), "a broken record stays broken");
            Err(error)
        }
    };
    while let Some(event) = events.next().await {
        let event = event.expect("the record can be read");
        assert!(recorded(&store, &event), "recorded before told: {event:?}");
    }
    assert_eq!(live.load(Ordering::SeqCst), 0, "nothing goes on after the record broke");
    match ended {
        Ok(()) => false,
        Err(SpawnerError::Record(_)) => true,
        Err(other) => panic!("the record broke, and the error says: {other}"),
    }
}

async fn tree(
    session: &offshoot_spawner::Session,
    store: &Arc<dyn Store>,
) -> Result<(), SpawnerError> {
    let ask = |task: &str| SpawnRequest { task: task.into(), ..SpawnRequest::default() };
    for task in ["a", "b", "c"] {
        if let Ok(run) = session.spawn(ask(task)).await {
            assert!(
                store.admitted(session.root(), run).expect("a record").is_some(),
                "recorded before told"
            );
        }
    }
    let answer = session.wait(WaitFor::default()).await?;
    for envelope in &answer.ended {
        let ending = store.ending(session.root(), envelope.run_id).expect("a record");
        assert!(ending.is_some(), "recorded before told");
    }
    if let Ok(run) = session.spawn(ask("hang")).await {
        session.cancel(run, false);
        let any = WaitFor { mode: WaitMode::Any, runs: vec![run], timeout: None };
        session.wait(any).await?;
    }
    Ok(())
}

fn recorded(store: &Arc<dyn Store>, event: &Event) -> bool {
    store
        .events(event.root, event.seq - 1)
        .next()
        .is_some_and(|found| found.expect("a record") == *event)
}

#[tokio::test(start_paused = true)]
async fn recorded_before_told() {
    let mut survived = 0;
    for write in 0.. {
        if !breaks_at(write).await {
            break;
        }
        survived += 1;
    }
    assert!(survived > 5, "the tree writes more often than that: {survived}");
}

#[tokio::test(start_paused = true)]
async fn a_tree_whose_record_broke_can_be_closed_while_something_still_ends() {
    /// Needs a moment to end whatever it is asked.
    struct Slow;

    impl Runtime for Slow {
        fn name(&self) -> &str {
            "slow"
        }

        fn abilities(&self) -> Abilities {
            Abilities::of_a_command()
        }

        fn start(&self, _launch: Launch, mut cx: RunContext) -> BoxFuture<'static, Finished> {
            Box::pin(async move {
                while cx.stop.heard().await != Stop::Firm {}
                #[expect(clippy::disallowed_methods, reason = "the clock is paused: this is work")]
                tokio::time::sleep(Duration::from_secs(1)).await;
                Finished::of(Reason::Signal { signal: 9 })
            })
        }
    }

    let store = breaking(3);
    let spawner = Spawner::builder().store(store).runtime(Slow).build().expect("a spawner");
    let session = spawner.open(RootSpec::new("root")).await.expect("a root");
    let ask = |task: &str| SpawnRequest { task: task.into(), ..SpawnRequest::default() };
    session.spawn(ask("a")).await.expect("a child");
    while session.spawn(ask("more")).await.is_ok() {}
    assert!(session.wait(WaitFor::default()).await.is_err(), "nothing is told any more");
    let mut events = session.events();
    let closed = session.close(Ending::of(Reason::Interrupted)).await;
    assert!(matches!(closed, Err(SpawnerError::Record(_))), "{closed:?}");
    while events.next().await.is_some() {}
    assert_eq!(spawner.active_count(), 0, "the supervisor went on until all was gone");
}

/// A disk that has no space for some writes, from the n-th one on.
fn full(write: i64, writes: i64) -> Arc<impl Store> {
    let done = AtomicI64::new(0);
    let append = move |inner: &MemoryStore, events: &[Arc<Event>]| {
        if (write..write + writes).contains(&done.fetch_add(1, Ordering::SeqCst)) {
            return Commit::ready(Err(StoreError::Io {
                doing: "write",
                path: "record".into(),
                source: Arc::new(io::ErrorKind::StorageFull.into()),
            }));
        }
        inner.record(events, Urgency::Now)
    };
    Arc::new(Intercept::new(Arc::new(MemoryStore::new()), append))
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_is_full_for_a_while_costs_nothing() {
    for write in 0..20 {
        let live = Arc::new(AtomicUsize::new(0));
        let store: Arc<dyn Store> = full(write, 3);
        let spawner = Spawner::builder()
            .store(Arc::clone(&store))
            .clock(Arc::new(TestClock::new()))
            .runtime(runtime(&live))
            .build()
            .expect("a spawner");
        let session = spawner.open(RootSpec::new("root")).await.expect("a root");
        let (mut events, mut trouble) = (session.events(), session.trouble());
        tree(&session, &store).await.expect("all of it is told in the end");
        let done = session.close(Ending::of(Reason::Completed { exit_code: None })).await;
        done.expect("the record is whole");
        let mut seq = 0;
        while let Some(event) = events.next().await {
            let event = event.expect("the record can be read");
            assert!(recorded(&store, &event), "recorded before told: {event:?}");
            seq = event.seq;
        }
        assert!(seq > 10, "{seq} events are no tree");
        assert!(trouble.next().await.is_none(), "the tree is over");
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_stays_full_stops_the_tree_softly() {
    let saved = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&saved);
    let runtime = FnRuntime::new("saves", move |_launch, mut cx| {
        let count = Arc::clone(&count);
        async move {
            if matches!(cx.stop.heard().await, Stop::Soft { .. }) {
                count.fetch_add(1, Ordering::SeqCst);
            }
            Finished::text("saved")
        }
    });
    let clock = Arc::new(TestClock::new());
    let spawner = Spawner::builder()
        .store(full(4, i64::MAX / 2))
        .clock(Arc::<TestClock>::clone(&clock))
        .runtime(runtime)
        .build()
        .expect("a spawner");
    let session = spawner.open(RootSpec::new("root")).await.expect("a root");
    let mut trouble = session.trouble();
    let begun = clock.now();
    let ask = |task: &str| SpawnRequest { task: task.into(), ..SpawnRequest::default() };
    let mut asked = 0;
    while session.spawn(ask("work")).await.is_ok() {
        asked += 1;
    }
    assert!(asked >= 1, "some were admitted before the disk was full");
    assert!(matches!(trouble.next().await, Some(Some(_)) | None), "it is told");
    let closed = session.close(Ending::of(Reason::Interrupted)).await;
    assert!(matches!(closed, Err(SpawnerError::Record(_))), "{closed:?}");
    assert_eq!(saved.load(Ordering::SeqCst), asked, "each was asked before it was ended");
    let seconds = clock.now().since(begun).as_secs();
    assert!((5..=6).contains(&seconds), "graceSeconds are 5, and it took {seconds} s");
    assert_eq!(spawner.active_count(), 0, "nothing is left");
}
