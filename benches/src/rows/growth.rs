//! The cost of a run in a large tree, beside that in a small tree.

use offshoot_merge::Strategy;
use offshoot_spawner::RunSpec;

use super::Row;
use crate::Result;
use crate::comparison::{Side, compare, per};
use crate::engine::{Engine, Record, closure, config, pieces};
use crate::outcome::{Outcome, Unit};
use crate::setting::Setting;

pub(crate) const ROW: Row =
    Row { name: "growth", what: "one in-process agent in trees of three sizes", measure };

fn measure(setting: &Setting) -> Result<Outcome> {
    let [small, medium, large] = setting.pick([1_000, 10_000, 100_000], [100, 300, 1_000]);
    let side = |name, record, runs| Side::new(name, move || ours(setting, record, runs));
    let samples = compare(
        setting,
        setting.few_rounds(),
        vec![
            side("memory, small", Record::Memory, small),
            side("memory, medium", Record::Memory, medium),
            side("memory, large", Record::Memory, large),
            side("SQLite, small", Record::Sqlite, small),
            side("SQLite, medium", Record::Sqlite, medium),
            side("SQLite, large", Record::Sqlite, large),
        ],
    )?;
    Ok(Outcome::new(Unit::Seconds("run"), samples)
        .times("memory, medium", 1.3, "memory, small")
        .times("memory, large", 1.3, "memory, small")
        .times("SQLite, medium", 1.3, "SQLite, small")
        .times("SQLite, large", 1.3, "SQLite, small")
        .note(format!("small is {small} runs, medium {medium}, large {large}")))
}

fn ours(setting: &Setting, record: Record, runs: u64) -> Result<f64> {
    let folder = setting.scratch()?;
    let runtime = setting.runtime()?;
    let engine = Engine::new(record, folder.path(), config(8)?, closure())?;
    let run_spec = RunSpec::in_folder("/");
    per(runs, || runtime.block_on(engine.run(pieces(runs), run_spec, Strategy::Sum)))
}
