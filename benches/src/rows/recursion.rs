//! Agents that spawn agents that spawn agents, beside nested tokio tasks that give up their slot while they wait.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use offshoot_merge::Strategy;
use offshoot_model::{Event, EventKind, RootId, RunId, SpawnRequest, Timestamp};
use offshoot_runtime::{Finished, FnRuntime, Launch, RunContext, WaitFor};
use offshoot_spawner::RunSpec;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::Row;
use crate::Result;
use crate::comparison::{Side, compare, timed};
use crate::engine::{Engine, Record, config, pieces};
use crate::inserts::{Made, bare};
use crate::outcome::{Outcome, Unit};
use crate::setting::Setting;

pub(crate) const ROW: Row = Row {
    name: "recursion",
    what: "one child in a tree of depth 3 of in-process agents; 8 at once, and many",
    measure,
};

const DEPTH: u32 = 3;
const AT_ONCE: u32 = 8;
/// Enough for all parents of the tree to ask at the same time.
const MANY: u32 = 512;
/// The transactions of one event that are timed.
const COMMITS: u64 = 200;

fn measure(setting: &Setting) -> Result<Outcome> {
    // 21 + 21² + 21³ = 9723.
    let width = setting.pick(21, 4);
    let samples = compare(
        setting,
        setting.few_rounds(),
        vec![
            Side::new("offshoot, SQLite", || ours(setting, Record::Sqlite, AT_ONCE, width)),
            Side::new("offshoot, SQLite, 512 at once", || {
                ours(setting, Record::Sqlite, MANY, width)
            }),
            Side::new("offshoot, memory", || ours(setting, Record::Memory, AT_ONCE, width)),
            Side::new("tokio tasks", || peer(setting, width)),
            Side::new("an eighth of a bare commit", || commit(setting)),
        ],
    )?;
    Ok(Outcome::new(Unit::Seconds("child"), samples)
        .at_most("offshoot, SQLite, 512 at once", 60e-6)
        .at_most("offshoot, memory", 50e-6)
        .beside("offshoot, memory", "tokio tasks")
        .beside("offshoot, SQLite", "an eighth of a bare commit")
        .note(format!("{} children, {width} of each parent", size(width)))
        .note("a parent asks for one child after the other, and each answer waits until the child is on record: with eight \
               parents at once a commit is shared by eight children")
        .note("the Python library for recursive language models is not part of this run"))
}

fn size(width: u64) -> u64 {
    (1..=DEPTH).map(|level| width.pow(level)).sum()
}

fn ours(setting: &Setting, record: Record, at_once: u32, width: u64) -> Result<f64> {
    let folder = setting.scratch()?;
    let runtime = setting.runtime()?;
    let agent = FnRuntime::new("parent", move |launch, cx| parent(launch, cx, width));
    let engine = Engine::new(record, folder.path(), config(at_once)?, agent)?;
    let (seconds, ()) = timed(|| {
        let tree = engine.run(pieces(width), RunSpec::in_folder("/"), Strategy::Concatenate);
        runtime.block_on(tree)
    })?;
    let runs = engine.spawner.tree()?.nodes().count() as u64;
    assert_eq!(runs, size(width) + 1, "each agent has spawned, and there is the root");
    Ok(seconds / size(width) as f64)
}

async fn parent(launch: Launch, cx: RunContext, width: u64) -> Finished {
    if launch.depth < DEPTH {
        // The same task below itself would be taken for a loop.
        let task: Arc<str> = format!("measure below depth {}", launch.depth).into();
        for _ in 0..width {
            let request = SpawnRequest { task: Arc::clone(&task), ..SpawnRequest::default() };
            cx.host.spawn(request).await.expect("the spawn was refused");
        }
        cx.host.wait(WaitFor::default()).await.expect("the tree is over");
    }
    Finished::text("1")
}

/// Returns an eighth of the time of a transaction of one event.
fn commit(setting: &Setting) -> Result<f64> {
    let (folder, run) = (setting.scratch()?, RunId::from_bytes([1; 16]));
    let (root, at, kind) = (RootId::new(run), Timestamp::EPOCH, EventKind::Starting);
    let events: Vec<Event> =
        (1..=COMMITS).map(|seq| Event { root, seq, at, run, kind: kind.clone() }).collect();
    Ok(bare(folder.path(), &events, COMMITS, Made::Before)? / COMMITS as f64 / f64::from(AT_ONCE))
}

fn peer(setting: &Setting, width: u64) -> Result<f64> {
    let runtime = setting.runtime()?;
    let (seconds, count) = timed(|| {
        let slots = Arc::new(Semaphore::new(AT_ONCE as usize));
        Ok(runtime.block_on(task(0, width, slots)))
    })?;
    assert_eq!(count, size(width) + 1, "each task has answered");
    Ok(seconds / size(width) as f64)
}

fn task(depth: u32, width: u64, slots: Arc<Semaphore>) -> BoxFuture<'static, u64> {
    async move {
        let slot = slots.acquire().await.expect("the semaphore is never closed");
        if depth == DEPTH {
            return 1;
        }
        let mut children = JoinSet::new();
        for _ in 0..width {
            children.spawn(task(depth + 1, width, Arc::clone(&slots)));
        }
        drop(slot);
        let mut count = 1;
        while let Some(child) = children.join_next().await {
            count += child.expect("nothing panics in there");
        }
        let _slot = slots.acquire().await.expect("the semaphore is never closed");
        count
    }
    .boxed()
}
