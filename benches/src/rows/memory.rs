//! The memory of a run. Each number comes from a process that has done nothing else.

use super::Row;
use crate::Result;
use crate::alone::Order;
use crate::comparison::{Side, compare};
use crate::log::write_log;
use crate::outcome::{Outcome, Unit};
use crate::setting::Setting;

pub(crate) const ROW: Row = Row { name: "memory", what: "memory of the supervisor", measure };

const LARGE: &str = "whole process, 1000 pieces of 1 GiB through `cat`";

fn measure(setting: &Setting) -> Result<Outcome> {
    let runs = setting.pick(100_000, 2_000);
    let folder = setting.scratch()?;
    let mebibytes = setting.pick(1024, 16);
    let log = write_log(folder.path(), mebibytes)?;
    let side = |name, order| Side::new(name, move || ours(setting, &order));
    let samples = compare(
        setting,
        setting.pick(3, 1),
        vec![
            side("queued run", Order::Queued { runs }),
            side("finished run in a live tree", Order::Finished { runs }),
            side(LARGE, Order::Large { log, pieces: 1000 }),
        ],
    )?;
    Ok(Outcome::new(Unit::Bytes("run, or for the process"), samples)
        .at_most("queued run", 1024.0)
        .at_most("finished run in a live tree", 2048.0)
        .at_most(LARGE, 100.0 * 1048576.0)
        .note(format!(
            "{runs} runs; growth of VmRSS with the record in SQLite; for the process VmHWM"
        )))
}

fn ours(setting: &Setting, order: &Order) -> Result<f64> {
    let folder = setting.scratch()?;
    order.run_elsewhere(folder.path())
}
