//! Agents that are closures beside tokio tasks under a semaphore, and beside the bare inserts of what they leave behind.

use std::cell::RefCell;
use std::sync::Arc;

use offshoot_merge::Strategy;
use offshoot_model::{Ending, Event, EventKind, Reason, RunId, Timestamp};
use offshoot_spawner::RunSpec;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::Row;
use crate::Result;
use crate::comparison::{Side, compare, timed};
use crate::engine::{Engine, Record, closure, config, pieces};
use crate::inserts::{Made, bare};
use crate::outcome::{Outcome, Unit};
use crate::setting::Setting;

pub(crate) const ROW: Row = Row {
    name: "in-process",
    what: "one in-process agent (a closure), admitted, run, recorded and merged; 8 at once",
    measure,
};

const AT_ONCE: u32 = 8;
/// The floor of any engine that has one owner of what is recorded.
const OWNED: &str = "tokio tasks, one owner, the same events kept";
const INSERTS: &str = "bare inserts of the same rows";
const MADE: &str = "the same inserts, JSON and hashes made too";

/// The files that the last tree on disk left behind.
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
            Side::new(INSERTS, || inserts(setting, &left.borrow(), Made::Before)),
            Side::new(MADE, || inserts(setting, &left.borrow(), Made::Meanwhile)),
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
        .times("offshoot, SQLite", 1.5, INSERTS)
        .beside("offshoot, SQLite", MADE)
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

/// Inserts the rows of a tree with `runs` pieces without an engine.
fn inserts(setting: &Setting, left: &Left, made: Made) -> Result<f64> {
    let folder = setting.scratch()?;
    let runs = left.events.iter().filter(|event| matches!(event.kind, EventKind::Ended(_))).count();
    Ok(bare(folder.path(), &left.events, left.transactions, made)? / (runs - 1) as f64)
}

/// The least that an owner of the tasks does: it starts one when another has told it of its end, and keeps the events that the
/// engine keeps of each, with their ids.
fn owned_tasks(setting: &Setting, runs: u64) -> Result<f64> {
    let runtime = setting.runtime()?;
    let folder = setting.scratch()?;
    let engine = Engine::new(Record::Memory, folder.path(), config(AT_ONCE)?, closure())?;
    runtime.block_on(engine.run(pieces(1), RunSpec::in_folder("/"), Strategy::Sum))?;
    let events: Vec<Event> = engine.store.all_events().collect::<std::result::Result<_, _>>()?;
    // Events of the piece: all but those of the root.
    let root = events[0].root;
    let of_piece = events.into_iter().filter(|event| event.run != root.run());
    let (ends, begins): (Vec<_>, Vec<_>) =
        of_piece.map(|event| event.kind).partition(|kind| matches!(kind, EventKind::Ended(_)));
    let each = (begins.len() + ends.len()) as u64;
    let (seconds, record) = timed(|| {
        Ok(runtime.block_on(async {
            let (tell, mut told) = mpsc::unbounded_channel();
            let mut record: Vec<Arc<Event>> = Vec::new();
            let mut keep = |run, kinds: &[EventKind]| {
                for kind in kinds {
                    let (seq, kind) = (record.len() as u64 + 1, kind.clone());
                    record.push(Arc::new(Event { root, seq, at: Timestamp::EPOCH, run, kind }));
                }
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
                    keep(run, &begins);
                    started += 1;
                }
                let (run, _) = told.recv().await.expect("a sender is held here");
                keep(run, &ends);
                ended += 1;
            }
            record
        }))
    })?;
    assert_eq!(record.len() as u64, each * runs, "each task has left its events");
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
