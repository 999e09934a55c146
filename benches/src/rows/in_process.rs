//! Agents that are closures beside tokio tasks under a semaphore, and beside the bare inserts of what they leave behind.

use std::cell::RefCell;
use std::sync::Arc;

use offshoot_merge::Strategy;
use offshoot_model::{Ending, Event, EventKind, Reason, RootId, RunId, Timestamp};
use offshoot_spawner::RunSpec;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::Row;
use crate::Result;
use crate::comparison::{Side, compare, timed};
use crate::engine::{Engine, Record, closure, config, pieces};
use crate::inserts::bare;
use crate::outcome::{Outcome, Unit};
use crate::setting::Setting;

pub(crate) const ROW: Row = Row {
    name: "in-process",
    what: "one in-process agent (a closure), admitted, run, recorded and merged; 8 at once",
    measure,
};

const AT_ONCE: u32 = 8;
/// The floor of any engine that has one owner of what is recorded.
const OWNED: &str = "tokio tasks, one owner, three events each";

/// What the last tree on disk left behind.
#[derive(Default)]
struct Left {
    events: Vec<Event>,
    transactions: u64,
}

fn measure(setting: &Setting) -> Result<Outcome> {
    let runs = setting.pick(100_000, 1_000);
    let left = RefCell::new(Left::default());
    let samples = compare(
        setting,
        setting.few_rounds(),
        vec![
            Side::new("offshoot, SQLite", || {
                let (seconds, latest) = ours(setting, Record::Sqlite, runs)?;
                left.replace(latest);
                Ok(seconds)
            }),
            Side::new("offshoot, memory", || Ok(ours(setting, Record::Memory, runs)?.0)),
            Side::new("tokio tasks", || tokio_tasks(setting, runs)),
            Side::new(OWNED, || owned_tasks(setting, runs)),
            Side::new("bare inserts of the same rows", || {
                let folder = setting.scratch()?;
                let Left { events, transactions } = &*left.borrow();
                Ok(bare(folder.path(), events, *transactions)? / runs as f64)
            }),
        ],
    )?;
    let Left { events, transactions } = left.into_inner();
    let note = format!(
        "{runs} runs; {} events in {transactions} transactions the last time",
        events.len()
    );
    Ok(Outcome::new(Unit::Seconds("run"), samples)
        .times("offshoot, memory", 8.0, "tokio tasks")
        .beside("offshoot, memory", OWNED)
        .times("offshoot, SQLite", 1.5, "bare inserts of the same rows")
        .note(note))
}

fn ours(setting: &Setting, record: Record, runs: u64) -> Result<(f64, Left)> {
    let folder = setting.scratch()?;
    let runtime = setting.runtime()?;
    let engine = Engine::new(record, folder.path(), config(AT_ONCE)?, closure())?;
    let (seconds, ()) = timed(|| {
        let run_spec = RunSpec::in_folder("/");
        runtime.block_on(engine.run(pieces(runs), run_spec, Strategy::Sum))
    })?;
    let mut left = Left::default();
    if let Some(sqlite) = &engine.sqlite {
        left.transactions = sqlite.commits();
        left.events = engine.store.all_events().collect::<std::result::Result<_, _>>()?;
    }
    Ok((seconds / runs as f64, left))
}

/// The least that an owner of the tasks does: it starts one when another has told it of its end, and keeps three events of
/// each, with ids.
fn owned_tasks(setting: &Setting, runs: u64) -> Result<f64> {
    let runtime = setting.runtime()?;
    let root = RootId::new(RunId::from_bytes([1; 16]));
    let (seconds, record) = timed(|| {
        Ok(runtime.block_on(async {
            let (tell, mut told) = mpsc::unbounded_channel();
            let mut record: Vec<Arc<Event>> = Vec::new();
            let mut keep = |run, kind| {
                let seq = record.len() as u64 + 1;
                record.push(Arc::new(Event { root, seq, at: Timestamp::EPOCH, run, kind }));
            };
            let start = |number| {
                let (tell, run) =
                    (tell.clone(), RunId::from_uuid(Uuid::from_u64_pair(7 << 12, number)));
                let answer = async { Ending::of(Reason::Completed { exit_code: None }) };
                // The receiver outlives all tasks.
                tokio::spawn(async move { drop(tell.send((run, Box::new(answer.await)))) });
                run
            };
            let (mut started, mut ended) = (0, 0);
            while ended < runs {
                while started < runs && started - ended < u64::from(AT_ONCE) {
                    let run = start(started);
                    keep(run, EventKind::StallLent);
                    keep(run, EventKind::Starting);
                    started += 1;
                }
                let (run, ending) = told.recv().await.expect("a sender is held here");
                keep(run, EventKind::Ended(ending));
                ended += 1;
            }
            record
        }))
    })?;
    assert_eq!(record.len() as u64, 3 * runs, "each task has left its events");
    Ok(seconds / runs as f64)
}

fn tokio_tasks(setting: &Setting, runs: u64) -> Result<f64> {
    let runtime = setting.runtime()?;
    let (seconds, sum) = timed(|| {
        Ok(runtime.block_on(async {
            let slots = Arc::new(Semaphore::new(AT_ONCE as usize));
            let mut tasks = JoinSet::new();
            for _ in 0..runs {
                let slots = Arc::clone(&slots);
                tasks.spawn(async move {
                    let _slot = slots.acquire().await.expect("it is never closed");
                    1
                });
            }
            let mut sum = 0;
            while let Some(answer) = tasks.join_next().await {
                sum += answer.expect("nothing panics in there");
            }
            sum
        }))
    })?;
    assert_eq!(sum, runs, "each task has answered");
    Ok(seconds / runs as f64)
}
