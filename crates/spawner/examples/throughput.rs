//! Measures the engine beside what it stands on: tokio tasks under a semaphore, and bare inserts of the same rows.
//!
//! `cargo run --release -p offshoot-spawner --example throughput [closures | record | children | memory]`. Numbers of
//! one machine at one moment: what counts is the ratio, and that both sides ran in turn. Memory is the first thing
//! measured where it is named alone, for what was freed before would be used again.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use offshoot_config::{Config, Loader};
use offshoot_model::{Event, EventKind, SpawnRequest};
use offshoot_runtime::{Finished, FnRuntime, Launch, RunContext, WaitFor};
use offshoot_spawner::{FanOut, Piece, RootSpec, Session, Spawner};
use offshoot_store::{DataFolder, SqliteStore, Store};
use rusqlite::{Connection, params};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const RUNS: usize = 100_000;
const SLOTS: usize = 8;
const ROUNDS: usize = 3;
/// 21 + 21² + 21³ children in three levels.
const BRANCHES: usize = 21;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let which = std::env::args().nth(1).unwrap_or_default();
    let wants = |part: &str| which.is_empty() || which == part;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        if wants("memory") {
            memory().await?;
        }
        for _ in 0..ROUNDS {
            if wants("closures") {
                closures().await?;
            }
            if wants("record") {
                record().await?;
            }
            if wants("children") {
                children().await?;
            }
        }
        Ok(())
    })
}

/// Closures with the record in memory, and the same closures as bare tasks.
async fn closures() -> Result<()> {
    let (bare, ()) = timed(bare_tasks()).await?;
    let spawner = Spawner::builder().config(config()?).runtime(closure()).build()?;
    let (ours, session) = timed(fan_out(&spawner)).await?;
    say(format_args!(
        "{RUNS} closures, record in memory: {:.2} µs each; bare tasks {:.2} µs; ratio {:.2}",
        micros(ours, RUNS),
        micros(bare, RUNS),
        ours.as_secs_f64() / bare.as_secs_f64(),
    ));
    session.close(done()).await?;
    Ok(())
}

async fn bare_tasks() -> Result<()> {
    let slots = Arc::new(Semaphore::new(SLOTS));
    let mut tasks = JoinSet::new();
    for _ in 0..RUNS {
        let slots = Arc::clone(&slots);
        tasks.spawn(async move {
            let _slot = slots.acquire().await.expect("the semaphore is never closed");
            "1".to_owned()
        });
    }
    let mut answers = Vec::with_capacity(RUNS);
    while let Some(answer) = tasks.join_next().await {
        answers.push(answer?);
    }
    Ok(())
}

/// Closures with the record on disk, and bare inserts of the rows that they leave.
async fn record() -> Result<()> {
    let home = tempfile::tempdir_in(".")?;
    let (spawner, store) = durable(home.path(), closure())?;
    let (ours, session) = timed(fan_out(&spawner)).await?;
    let root = session.root();
    session.close(done()).await?;
    let commits = store.commits();
    let events = store.events(root, 0).collect::<std::result::Result<Vec<_>, _>>()?;
    let bare = bare_inserts(home.path(), &events, commits)?;
    say(format_args!(
        "{RUNS} closures, record on disk: {:.2} µs each; {} rows bare in {commits} transactions {:.2} µs; ratio {:.2}",
        micros(ours, RUNS),
        events.len(),
        micros(bare, RUNS),
        ours.as_secs_f64() / bare.as_secs_f64(),
    ));
    Ok(())
}

/// The same rows in the same tables in as many transactions, ready to be bound.
fn bare_inserts(home: &Path, events: &[Event], transactions: u64) -> Result<Duration> {
    let folder = DataFolder::open(home.join("bare"))?;
    drop(SqliteStore::open(&folder)?);
    let mut connection = Connection::open(folder.path().join("offshoot.db"))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", 4096)?;
    let bind = |event: &Event| {
        let key = match &event.kind {
            EventKind::Admitted(admitted) => Some(admitted.key.as_str().to_owned()),
            _ => None,
        };
        Ok((
            event.seq,
            event.run,
            event.at,
            event.kind.name(),
            key,
            serde_json::to_string(&event.kind)?,
        ))
    };
    let rows = events.iter().map(bind).collect::<Result<Vec<_>>>()?;
    let begun = now();
    for group in rows.chunks(rows.len().div_ceil(transactions as usize)) {
        let transaction = connection.transaction()?;
        let mut insert = transaction.prepare_cached(
            "INSERT INTO events (root, seq, run, at, kind, key, body, chain)
             VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, zeroblob(32))",
        )?;
        for (seq, run, at, name, key, body) in group {
            let at = at.as_micros() as i64;
            insert.execute(params![*seq as i64, run.as_bytes(), at, name, key, body])?;
        }
        drop(insert);
        transaction.commit()?;
    }
    Ok(begun.elapsed())
}

/// Children that ask for children, three levels deep, and wait for all of them.
async fn children() -> Result<()> {
    let total = BRANCHES + BRANCHES.pow(2) + BRANCHES.pow(3);
    let spawner = Spawner::builder().config(config()?).runtime(nesting()).build()?;
    let (memory, ()) = timed(nest(&spawner)).await?;
    let home = tempfile::tempdir_in(".")?;
    let (spawner, _store) = durable(home.path(), nesting())?;
    let (disk, ()) = timed(nest(&spawner)).await?;
    say(format_args!(
        "{total} children in three levels: {:.2} µs each with the record in memory, {:.2} µs on disk",
        micros(memory, total),
        micros(disk, total),
    ));
    Ok(())
}

async fn nest(spawner: &Spawner) -> Result<()> {
    let mut session = spawner.run(RootSpec::new("go down")).await?;
    let envelope = session.answer().await?;
    assert!(envelope.status.is_success(), "{envelope:?}");
    session.ended().await?;
    Ok(())
}

fn nesting() -> FnRuntime {
    FnRuntime::new("nesting", |launch: Launch, cx: RunContext| async move {
        if launch.depth == 3 {
            return Finished::text("1");
        }
        for child in 0..BRANCHES {
            let request =
                SpawnRequest { task: child.to_string().into(), ..SpawnRequest::default() };
            cx.host.spawn(request).await.expect("the limits are far away");
        }
        let answer = cx.host.wait(WaitFor::default()).await.expect("the tree is over");
        Finished::text(answer.ended.len().to_string())
    })
}

/// Prints the memory of a queued and of a finished run while their tree lives. The record is on disk.
async fn memory() -> Result<()> {
    let home = tempfile::tempdir_in(".")?;
    let hang = FnRuntime::new("hang", |_launch, _cx| std::future::pending::<Finished>());
    let (spawner, _store) = durable(home.path(), hang)?;
    let session = spawner.open(RootSpec::new("wait")).await?;
    session.counts().await;
    let before = resident()?;
    let fan = session.fan_out(pieces()).await?;
    let queued = session.counts().await.queued;
    let mut events = session.events();
    while events.next().await.transpose()?.is_some_and(|event| event.seq <= RUNS as u64) {}
    drop(events);
    let after = resident()?;
    say(format_args!("{queued} queued: {} bytes each", (after - before) / queued as u64));
    session.stopper().stop_all(true);
    drop((fan, session));

    let home = tempfile::tempdir_in(".")?;
    let (spawner, _store) = durable(home.path(), closure())?;
    let session = spawner.open(RootSpec::new("work")).await?;
    session.counts().await;
    let before = resident()?;
    let fan = session.fan_out(pieces()).await?;
    drop(fan.answer().await?);
    let live = resident()?;
    say(format_args!(
        "{RUNS} finished: {} bytes each above a process that had {} MiB",
        live.saturating_sub(before) / RUNS as u64,
        before >> 20,
    ));
    session.close(done()).await?;
    Ok(())
}

fn resident() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes: u64 =
        line.and_then(|line| line.split_whitespace().next()).unwrap_or("0").parse()?;
    Ok(kibibytes << 10)
}

/// Asks for all pieces and waits for the merged answer.
async fn fan_out(spawner: &Spawner) -> Result<Session> {
    let session = spawner.open(RootSpec::new("work")).await?;
    let answer = session.fan_out(pieces()).await?.answer().await?;
    assert_eq!(answer.completed as usize, RUNS);
    Ok(session)
}

fn pieces() -> FanOut {
    let task: Arc<str> = "count the errors".into();
    FanOut::new((0..RUNS).map(|_| Piece::task(Arc::clone(&task))))
}

fn closure() -> FnRuntime {
    FnRuntime::new("closure", |_launch, _cx| async { Finished::text("1") })
}

fn durable(home: &Path, runtime: FnRuntime) -> Result<(Spawner, Arc<SqliteStore>)> {
    let folder = Arc::new(DataFolder::open(home.join("data"))?);
    let store = Arc::new(SqliteStore::open(&folder)?);
    let spawner = Spawner::builder()
        .config(config()?)
        .store(Arc::<SqliteStore>::clone(&store))
        .folder(folder)
        .runtime(runtime)
        .build()?;
    Ok((spawner, store))
}

fn config() -> Result<Config> {
    let slots = SLOTS.to_string();
    let settings = [
        ("maxConcurrent", slots.as_str()),
        ("maxSpawns", "1000000"),
        ("allowRecursiveSpawn", "true"),
        ("maxDepth", "3"),
    ];
    let flag = |loader: Loader, (key, value): (&str, &str)| {
        loader.flag(format!("agents.defaults.subagents.{key}"), value, "throughput")
    };
    Ok(settings.into_iter().fold(Loader::new(), flag).load()?)
}

fn done() -> offshoot_model::Ending {
    offshoot_model::Ending::of(offshoot_model::Reason::Completed { exit_code: None })
}

async fn timed<T>(work: impl Future<Output = Result<T>>) -> Result<(Duration, T)> {
    let begun = now();
    let result = work.await?;
    Ok((begun.elapsed(), result))
}

#[expect(clippy::disallowed_methods, reason = "measuring is what this is for")]
fn now() -> Instant {
    Instant::now()
}

fn micros(took: Duration, count: usize) -> f64 {
    took.as_secs_f64() * 1e6 / count as f64
}

#[expect(clippy::print_stdout, reason = "what it measured is what it is run for")]
fn say(line: std::fmt::Arguments<'_>) {
    println!("{line}");
}
