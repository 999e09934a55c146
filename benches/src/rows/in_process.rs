//! Agents that are closures beside tokio tasks under a semaphore, and beside the bare inserts of what they leave behind.

use std::cell::RefCell;
use std::sync::Arc;

use offshoot_merge::Strategy;
use offshoot_model::Event;
use offshoot_spawner::RunSpec;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

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
        .times("offshoot, memory", 5.0, "tokio tasks")
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
