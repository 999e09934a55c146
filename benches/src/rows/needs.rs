//! Tasks that need each other beside tasks that do not.

use std::time::Instant;

use offshoot_merge::Strategy;
use offshoot_model::{ContextEntry, ValueKind};
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
/// Each is given an answer that no other one is given.
const NEEDS_OWN: &str = "each prints its id, and needs that of one before it";
const PLAIN_OWN: &str = "a plain fanout of those";
/// The floor of it: each has a folder with a file and a list of its own.
const GIVEN_OWN: &str = "a plain fanout of those, each with a value of its own";
/// A run that needs an answer reads it as a value of its context.
const GIVEN: &str = "a plain fanout, each with one value of its context";
/// The runs of one wave.
const WAVE: u32 = 100;

fn measure(setting: &Setting) -> Result<Outcome> {
    let count = setting.pick(10_000, 300);
    let program = true_program()?;
    let does_nothing = &[program.to_str().ok_or("a program of ordinary name")?];
    let prints_its_id = &["printenv", "OFFSHOOT_RUN_ID"];
    let side = |name, kind| Side::new(name, move || run(setting, does_nothing, count, kind));
    let own = |name, kind| Side::new(name, move || run(setting, prints_its_id, count, kind));
    let sides = vec![
        side(NEEDS, Kind::Chained),
        side(PLAIN, Kind::Plain),
        side(GIVEN, Kind::Given),
        own(NEEDS_OWN, Kind::Chained),
        own(PLAIN_OWN, Kind::Plain),
        own(GIVEN_OWN, Kind::GivenOwn),
    ];
    let samples = compare(setting, setting.few_rounds(), sides)?;
    Ok(Outcome::new(Unit::Seconds("process"), samples)
        .times(NEEDS, 1.1, PLAIN)
        .times(NEEDS, 1.1, GIVEN)
        .times(NEEDS_OWN, 1.1, PLAIN_OWN)
        .times(NEEDS_OWN, 1.1, GIVEN_OWN)
        .note(format!("{count} runs in waves of {WAVE}; the record is in SQLite")))
}

/// The tasks of a fanout.
#[derive(Clone, Copy)]
enum Kind {
    Plain,
    Given,
    GivenOwn,
    Chained,
}

fn run(setting: &Setting, command: &[&str], count: u64, kind: Kind) -> Result<f64> {
    let folder = setting.scratch()?;
    setting.runtime()?.block_on(async {
        let engine = Engine::new(Record::Sqlite, folder.path(), config(8)?, exec()?)?;
        let run_spec = RunSpec::command("/", command.iter().copied());
        let pieces = match kind {
            Kind::Plain => pieces(count),
            Kind::Chained => in_waves(count),
            Kind::Given => with_values(&engine, count, |_| String::new())?,
            // As long as the id of a run.
            Kind::GivenOwn => with_values(&engine, count, |at| format!("{at:036}\n"))?,
        };
        let start = Instant::now();
        engine.run(pieces, run_spec, Strategy::Concatenate).await?;
        Ok(start.elapsed().as_secs_f64() / count as f64)
    })
}

/// So many pieces, each with a value of its context, such as the empty answer of `true`. The values are copies, as answers on record are.
fn with_values(engine: &Engine, count: u64, value: impl Fn(usize) -> String) -> Result<Vec<Piece>> {
    let mut pieces = pieces(count);
    for (at, piece) in pieces.iter_mut().enumerate() {
        let value = engine.store.put_copy(ValueKind::Text, &value(at).into_bytes().into())?;
        piece.request.context = vec![ContextEntry { name: "before".into(), value }];
    }
    Ok(pieces)
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
