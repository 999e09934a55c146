//! Taking over a large tree whose supervisor is gone.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use offshoot_merge::Strategy;
use offshoot_model::RootId;
use offshoot_runtime::{Finished, FnRuntime};
use offshoot_spawner::{FanOut, RootSpec, RunSpec};
use tokio::sync::Semaphore;

use super::Row;
use crate::Result;
use crate::alone::Order;
use crate::comparison::{Side, compare, timed};
use crate::engine::{Engine, Record, closure, config, pieces};
use crate::outcome::{Outcome, Unit};
use crate::setting::Setting;

pub(crate) const ROW: Row =
    Row { name: "resume", what: "take over a tree of 100,000 pieces, half of them over", measure };

/// The memory of the same stands in its own row, because it is counted in bytes.
pub(crate) const MEMORY: Row = Row {
    name: "resume-memory",
    what: "memory of a supervisor that has taken over 100,000 pieces, half of them over",
    measure: measure_memory,
};

fn runs(setting: &Setting) -> u64 {
    setting.pick(100_000, 1_000)
}

fn measure(setting: &Setting) -> Result<Outcome> {
    let runs = runs(setting);
    let side = Side::new("until every piece is known", || ours(setting, runs));
    let samples = compare(setting, setting.few_rounds(), vec![side])?;
    Ok(Outcome::new(Unit::Seconds("time"), samples)
        .at_most("until every piece is known", 5.0)
        .note(format!("{runs} pieces below one root, in SQLite; with the pieces asked for again")))
}

fn measure_memory(setting: &Setting) -> Result<Outcome> {
    let runs = runs(setting);
    let side = Side::new("piece", || {
        let folder = setting.scratch()?;
        interrupted(setting, folder.path(), runs)?;
        Order::Resumed { runs }.run_elsewhere(folder.path())
    });
    let samples = compare(setting, setting.pick(3, 1), vec![side])?;
    Ok(Outcome::new(Unit::Bytes("piece"), samples)
        .at_most("piece", 2048.0)
        .note(format!("{runs} pieces; growth of VmRSS with the record in SQLite")))
}

fn ours(setting: &Setting, runs: u64) -> Result<f64> {
    let folder = setting.scratch()?;
    let root = interrupted(setting, folder.path(), runs)?;
    let engine = Engine::new(Record::Sqlite, folder.path(), config(8)?, closure())?;
    let runtime = setting.runtime()?;
    let spec = RootSpec { run_spec: RunSpec::in_folder("/"), ..RootSpec::new("measure") };
    let (seconds, (session, fan)) = timed(|| {
        runtime.block_on(async {
            let session = engine.spawner.resume(root, spec).await?;
            let fan = session.fan_out(FanOut::new(pieces(runs)).merge(Strategy::Sum)).await?;
            // Answered when the supervisor has got through all pieces.
            session.counts().await;
            Ok((session, fan))
        })
    })?;
    let outcome = runtime.block_on(async {
        let outcome = fan.answer().await?;
        session.conclude(&outcome).await?;
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(outcome)
    })?;
    let failures = &outcome.failures;
    assert_eq!(u64::from(outcome.completed), runs, "nothing is lost: {failures:?}");
    Ok(seconds)
}

/// A tree of which half is over, and whose supervisor is gone.
fn interrupted(setting: &Setting, folder: &Path, runs: u64) -> Result<RootId> {
    let (started, half) = (Arc::new(AtomicU64::new(0)), Arc::new(Semaphore::new(0)));
    let reached = Arc::clone(&half);
    let agent = FnRuntime::new("closure", move |_, _| {
        let number = started.fetch_add(1, Ordering::Relaxed);
        let reached = Arc::clone(&reached);
        async move {
            if number >= runs / 2 {
                reached.add_permits(1);
                std::future::pending::<()>().await;
            }
            Finished::text("1")
        }
    });
    let engine = Engine::new(Record::Sqlite, folder, config(8)?, agent)?;
    let runtime = setting.runtime()?;
    let (session, fan) = runtime.block_on(async {
        let started = engine.start(pieces(runs), RunSpec::in_folder("/"), Strategy::Sum).await?;
        let _ = half.acquire().await?;
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(started)
    })?;
    let root = session.root();
    // With the runtime goes the supervisor, as if it were killed; with the handles the last write of the store.
    drop(runtime);
    drop((session, fan, engine));
    Ok(root)
}
