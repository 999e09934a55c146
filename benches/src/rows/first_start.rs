//! From asking for many tasks to the first that runs.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use offshoot_merge::Strategy;
use offshoot_runtime::{Finished, FnRuntime};
use offshoot_spawner::{Piece, RunSpec};

use super::Row;
use crate::Result;
use crate::comparison::{Side, compare};
use crate::engine::{Engine, Record, config};
use crate::outcome::{Outcome, Unit};
use crate::setting::Setting;

pub(crate) const ROW: Row = Row {
    name: "first-start",
    what: "from asking for 10,000 tasks of their own to the first start",
    measure,
};

/// Stands in the record.
const SHORT: &str = "tasks of 1 KiB";
/// Is a file each.
const LONG: &str = "tasks of 8 KiB";

fn measure(setting: &Setting) -> Result<Outcome> {
    let tasks = setting.pick(10_000, 300);
    let side = |name, bytes| {
        let pieces =
            move || (0..tasks).map(|number| Piece::task(format!("{number:>bytes$}"))).collect();
        Side::new(name, move || until_first_start(setting, pieces()))
    };
    let samples =
        compare(setting, setting.few_rounds(), vec![side(SHORT, 1024), side(LONG, 8 * 1024)])?;
    Ok(Outcome::new(Unit::Seconds("fanout"), samples)
        .at_most(SHORT, 0.1)
        .at_most(LONG, 0.1)
        .note(format!("{tasks} tasks, each another text; the record is in SQLite")))
}

/// The seconds from asking for these pieces to the first start of one.
pub(super) fn until_first_start(setting: &Setting, pieces: Vec<Piece>) -> Result<f64> {
    let folder = setting.scratch()?;
    let runtime = setting.runtime()?;
    let first = Arc::new(OnceLock::new());
    let started = Arc::clone(&first);
    let agent = FnRuntime::new("closure", move |_, _| {
        started.get_or_init(Instant::now);
        async { Finished::text("1") }
    });
    let engine = Engine::new(Record::Sqlite, folder.path(), config(8)?, agent)?;
    let begun = Instant::now();
    runtime.block_on(engine.run(pieces, RunSpec::in_folder("/"), Strategy::Sum))?;
    let first = first.get().ok_or("nothing has started")?;
    Ok(first.duration_since(begun).as_secs_f64())
}
