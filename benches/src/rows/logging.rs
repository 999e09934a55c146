//! The log beside no log: what it costs while it is written, and what its places cost while it is off.

use std::fs;
use std::hint::black_box;
use std::path::Path;

use super::Row;
use crate::Result;
use crate::comparison::{Side, compare, per};
use crate::outcome::{Outcome, Unit};
use crate::programs::{ours as our_programs, silent, succeed, true_program};
use crate::setting::Setting;

pub(crate) const ROW: Row = Row {
    name: "logging",
    what: "one process agent of the command, with a log and without",
    measure,
};

pub(crate) const OFF: Row = Row {
    name: "logging-off",
    what: "a place of the log while nothing is logged",
    measure: measure_off,
};

const NONE: &str = "without a log";
const INFO: &str = "info, to a file";
const DEBUG: &str = "debug, to a file";
const EVENT: &str = "an event and a span that are off";
const NOTHING: &str = "the same loop without them";

fn measure(setting: &Setting) -> Result<Outcome> {
    let count = setting.pick(2000, 40);
    let program = &true_program()?;
    let offshoot = &our_programs()?.offshoot;
    let side = |name, level| Side::new(name, move || map(setting, offshoot, program, level, count));
    let sides = vec![side(NONE, None), side(INFO, Some("info")), side(DEBUG, Some("debug"))];
    let samples = compare(setting, setting.rounds(), sides)?;
    Ok(Outcome::new(Unit::Seconds("process"), samples)
        .times(INFO, 1.1, NONE)
        .times(DEBUG, 1.25, NONE))
}

fn map(
    setting: &Setting,
    offshoot: &Path,
    program: &Path,
    level: Option<&str>,
    count: u64,
) -> Result<f64> {
    let folder = setting.scratch()?;
    let lines = folder.path().join("lines");
    fs::write(&lines, "x\n".repeat(count as usize))?;
    let mut map = silent(offshoot);
    map.arg("--data-dir").arg(folder.path().join("data")).env_remove("OFFSHOOT_LOG");
    if let Some(level) = level {
        map.env("OFFSHOOT_LOG", level).arg("--log-file").arg(folder.path().join("log"));
    }
    map.args(["map", "--split", "lines:1", "--max-concurrent", "4"]);
    map.arg(lines).arg("--").arg(program).current_dir(folder.path());
    per(count, || succeed(&mut map))
}

fn measure_off(setting: &Setting) -> Result<Outcome> {
    let count = setting.pick(50_000_000, 100_000);
    let with = || {
        per(count, || {
            for number in 0..count {
                let _span = tracing::error_span!("attempt", number).entered();
                tracing::debug!(number = black_box(number), "event");
            }
            Ok(())
        })
    };
    let without = || {
        per(count, || {
            for number in 0..count {
                black_box(number);
            }
            Ok(())
        })
    };
    let sides = vec![Side::new(EVENT, with), Side::new(NOTHING, without)];
    let samples = compare(setting, setting.rounds(), sides)?;
    Ok(Outcome::new(Unit::Seconds("place"), samples).at_most(EVENT, 10e-9))
}
