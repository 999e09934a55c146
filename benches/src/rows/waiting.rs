//! The cost of a run in a nested tree where more parents wait at the same time, and below a parent that has waited for
//! more children one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use offshoot_merge::Strategy;
use offshoot_model::SpawnRequest;
use offshoot_runtime::{Finished, FnRuntime, Launch, RunContext, WaitFor};
use offshoot_spawner::RunSpec;
use tokio::sync::watch;

use super::Row;
use crate::Result;
use crate::comparison::{Side, compare, per};
use crate::engine::{Engine, Record, config, pieces};
use crate::outcome::{Outcome, Unit};
use crate::setting::Setting;

pub(crate) const ROW: Row = Row {
    name: "waiting",
    what: "one in-process agent in nested trees of three sizes whose parents all wait at once, and below a parent that waits for one after the other",
    measure,
};

/// Children of each parent.
const WIDTH: u64 = 9;

fn measure(setting: &Setting) -> Result<Outcome> {
    let [small, medium, large] = setting.pick([100, 316, 1_000], [5, 10, 20]);
    let side = |name, record, parents| Side::new(name, move || ours(setting, record, parents));
    let samples = compare(
        setting,
        setting.few_rounds(),
        vec![
            side("memory, small", Record::Memory, small),
            side("memory, medium", Record::Memory, medium),
            side("memory, large", Record::Memory, large),
            side("SQLite, small", Record::Sqlite, small),
            side("SQLite, large", Record::Sqlite, large),
            Side::new("one by one, small", move || one_by_one(setting, small * WIDTH)),
            Side::new("one by one, large", move || one_by_one(setting, large * WIDTH)),
        ],
    )?;
    let runs = [small, medium, large].map(|parents| parents * (WIDTH + 1));
    Ok(Outcome::new(Unit::Seconds("run"), samples)
        .times("memory, medium", 1.3, "memory, small")
        .times("memory, large", 1.3, "memory, small")
        .times("SQLite, large", 1.3, "SQLite, small")
        .times("one by one, large", 1.3, "one by one, small")
        .note(format!("small is {} runs, medium {}, large {}", runs[0], runs[1], runs[2]))
        .note("no child ends before every child has started, so that every parent waits by then"))
}

fn ours(setting: &Setting, record: Record, parents: u64) -> Result<f64> {
    let folder = setting.scratch()?;
    let runtime = setting.runtime()?;
    let gate = Arc::new(Gate::for_all(parents * WIDTH));
    let agent = FnRuntime::new("nested", move |launch, cx| {
        let gate = Arc::clone(&gate);
        async move { nested(launch, cx, &gate).await }
    });
    let runs = parents * (WIDTH + 1);
    // A slot for each, so that nothing but the number of runs differs.
    let at_once = u32::try_from(runs)?;
    let engine = Engine::new(record, folder.path(), config(at_once)?, agent)?;
    let tree = engine.run(pieces(parents), RunSpec::in_folder("/"), Strategy::Sum);
    per(runs, || runtime.block_on(tree))
}

/// One parent that asks for so many children, each after the end of the last.
fn one_by_one(setting: &Setting, children: u64) -> Result<f64> {
    let folder = setting.scratch()?;
    let runtime = setting.runtime()?;
    let agent = FnRuntime::new("one by one", move |launch, cx| async move {
        if launch.depth > 1 {
            return Finished::text("1");
        }
        for _ in 0..children {
            let request = SpawnRequest { task: "measure below".into(), ..SpawnRequest::default() };
            cx.host.spawn(request).await.expect("the spawn was refused");
            cx.host.wait(WaitFor::default()).await.expect("its session lives");
        }
        Finished::text("1")
    });
    let engine = Engine::new(Record::Memory, folder.path(), config(8)?, agent)?;
    let tree = engine.run(pieces(1), RunSpec::in_folder("/"), Strategy::Sum);
    per(children + 1, || runtime.block_on(tree))
}

async fn nested(launch: Launch, cx: RunContext, gate: &Gate) -> Finished {
    if launch.depth > 1 {
        gate.pass().await;
        return Finished::text("1");
    }
    for _ in 0..WIDTH {
        let request = SpawnRequest { task: "measure below".into(), ..SpawnRequest::default() };
        cx.host.spawn(request).await.expect("the spawn was refused");
    }
    let waited = cx.host.wait(WaitFor::default()).await.expect("its session lives");
    Finished::text(waited.ended.len().to_string())
}

/// Opens when the last of those has come that it waits for.
struct Gate {
    missing: AtomicU64,
    open: watch::Sender<bool>,
}

impl Gate {
    fn for_all(many: u64) -> Self {
        Self { missing: AtomicU64::new(many), open: watch::Sender::new(false) }
    }

    async fn pass(&self) {
        let mut open = self.open.subscribe();
        if self.missing.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.open.send_replace(true);
        }
        open.wait_for(|open| *open).await.expect("the gate outlives its agents");
    }
}
