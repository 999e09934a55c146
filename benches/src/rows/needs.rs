//! Tasks that need each other beside tasks that do not.

use std::path::Path;
use std::time::Instant;

use offshoot_merge::Strategy;
use offshoot_spawner::{Piece, PieceNeed, RunSpec};

use super::Row;
use super::first_start::until_first_start;
use crate::Result;
use crate::comparison::{Side, compare};
use crate::engine::{Engine, Record, config, exec, pieces};
use crate::outcome::{Outcome, Unit};
use crate::programs::true_program;
use crate::setting::Setting;

pub(crate) const ROW: Row = Row {
    name: "needs",
    what: "one run of `true` of 10,000, where each needs one before it, beside a plain fanout",
    measure,
};

pub(crate) const START: Row = Row {
    name: "needs-start",
    what: "from asking for 10,000 tasks that need each other to the first start",
    measure: measure_start,
};

const NEEDS: &str = "each needs one before it";
const PLAIN: &str = "a plain fanout";
/// The runs of one wave.
const WAVE: u32 = 100;

fn measure(setting: &Setting) -> Result<Outcome> {
    let count = setting.pick(10_000, 300);
    let program = &true_program()?;
    let side = |name, chained| Side::new(name, move || run(setting, program, count, chained));
    let sides = vec![side(NEEDS, true), side(PLAIN, false)];
    let samples = compare(setting, setting.few_rounds(), sides)?;
    Ok(Outcome::new(Unit::Seconds("process"), samples)
        .times(NEEDS, 1.1, PLAIN)
        .note(format!("{count} runs in waves of {WAVE}; the record is in SQLite")))
}

fn run(setting: &Setting, program: &Path, count: u64, chained: bool) -> Result<f64> {
    let folder = setting.scratch()?;
    let command = program.to_str().ok_or("a program of ordinary name")?;
    setting.runtime()?.block_on(async {
        let engine = Engine::new(Record::Sqlite, folder.path(), config(8)?, exec()?)?;
        let run_spec = RunSpec::command("/", [command]);
        let pieces = if chained { in_waves(count) } else { pieces(count) };
        let start = Instant::now();
        engine.run(pieces, run_spec, Strategy::Concatenate).await?;
        Ok(start.elapsed().as_secs_f64() / count as f64)
    })
}

fn measure_start(setting: &Setting) -> Result<Outcome> {
    let count = setting.pick(10_000, 300);
    let sides = vec![Side::new(NEEDS, move || until_first_start(setting, in_waves(count)))];
    let samples = compare(setting, setting.few_rounds(), sides)?;
    Ok(Outcome::new(Unit::Seconds("fanout"), samples)
        .at_most(NEEDS, 0.1)
        .note(format!("{count} tasks in waves of {WAVE}; the record is in SQLite")))
}

/// So many pieces, each of which needs the one that stands a wave before it.
fn in_waves(count: u64) -> Vec<Piece> {
    let needs = |at: u32| {
        let need = |place| PieceNeed { name: "before".into(), place };
        at.checked_sub(WAVE).map(need).into_iter().collect()
    };
    let pieces = (0..).zip(pieces(count));
    pieces.map(|(at, piece)| Piece { needs: needs(at), ..piece }).collect()
}
