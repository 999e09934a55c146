//! Starting the command beside starting a program that does nothing.

use std::path::Path;

use super::Row;
use crate::Result;
use crate::comparison::{Side, compare, per};
use crate::outcome::{Outcome, Unit};
use crate::programs::{Ours, ours as our_programs, silent, succeed};
use crate::setting::Setting;

pub(crate) const ROW: Row = Row { name: "start-up", what: "start the command", measure };

fn measure(setting: &Setting) -> Result<Outcome> {
    let times = setting.pick(200, 5);
    let empty = setting.scratch()?;
    let Ours { offshoot, hello } = our_programs()?;
    let side = |program, word: Option<&'static str>| {
        let folder = empty.path();
        move || starts(program, word, folder, times)
    };
    let samples = compare(
        setting,
        setting.rounds(),
        vec![
            Side::new("offshoot --version", side(&offshoot, Some("--version"))),
            Side::new("hello world of the same profile", side(&hello, None)),
            Side::new("offshoot tree, empty folder", side(&offshoot, Some("tree"))),
        ],
    )?;
    Ok(Outcome::new(Unit::Seconds("start"), samples)
        .times("offshoot --version", 1.5, "hello world of the same profile")
        .at_most("offshoot tree, empty folder", 20e-3))
}

fn starts(program: &Path, word: Option<&str>, folder: &Path, times: u64) -> Result<f64> {
    per(times, || {
        (0..times).try_for_each(|_| succeed(silent(program).args(word).current_dir(folder)))
    })
}
