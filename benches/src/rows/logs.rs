//! The cost of keeping the output of agents, and of following it.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use super::Row;
use crate::Result;
use crate::comparison::{Side, compare, per};
use crate::outcome::{Outcome, Unit};
use crate::programs::{ours, silent, succeed, talk};
use crate::setting::Setting;

pub(crate) const ROW: Row = Row {
    name: "logs",
    what: "100 programs at once that say 1,000 lines a second each, followed by `logs -f`",
    measure: followed,
};

pub(crate) const KEPT: Row = Row {
    name: "output",
    what: "one process agent that says 20 lines, 4 at once, whose output is kept",
    measure: kept,
};

const ALONE: &str = "the map alone";
const FOLLOWED: &str = "the map, followed";
const RUNS: u64 = 100;
const RATE: u64 = 1000;

fn followed(setting: &Setting) -> Result<Outcome> {
    let (offshoot, talk) = (&ours()?.offshoot, &talk()?);
    let lines = setting.pick(5000, 500);
    let sides = vec![
        Side::new(ALONE, || map(setting, offshoot, talk, lines, false)),
        Side::new(FOLLOWED, || map(setting, offshoot, talk, lines, true)),
    ];
    let samples = compare(setting, setting.few_rounds(), sides)?;
    Ok(Outcome::new(Unit::Seconds("map"), samples)
        .times(FOLLOWED, 1.1, ALONE)
        .note(format!("{} lines each time, of which the follower lost none", RUNS * lines)))
}

/// Runs the map; a follower must have printed each line of it.
fn map(setting: &Setting, offshoot: &Path, talk: &Path, lines: u64, follow: bool) -> Result<f64> {
    let folder = setting.scratch()?;
    let names: String = (0..RUNS).map(|number| format!("{number}\n")).collect();
    fs::write(folder.path().join("in"), names)?;
    let told = folder.path().join("told");
    per(1, || {
        let mut map = Command::new(offshoot);
        map.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
        map.args(["-v", "map", "--split", "lines:1", "--max-concurrent", "100", "in", "--"]);
        map.arg(talk).args([lines.to_string(), RATE.to_string()]).stderr(Stdio::piped());
        let mut map = map.spawn()?;
        let mut stderr = BufReader::new(map.stderr.take().ok_or("it has no standard error")?);
        // Once it says something, there is a tree to follow.
        stderr.read_line(&mut String::new())?;
        let mut follower = silent(offshoot);
        follower.current_dir(folder.path()).args(["logs", "last", "--follow", "--stderr"]);
        follower.stdout(fs::File::create(&told)?);
        let follower = follow.then(|| follower.spawn()).transpose()?;
        std::io::copy(&mut stderr, &mut std::io::sink())?;
        let ended = map.wait()?;
        let followed = follower.map(|mut follower| follower.wait()).transpose()?;
        let well = ended.success() && followed.is_none_or(|ended| ended.success());
        if well { Ok(()) } else { Err(format!("{ended}, {followed:?}").into()) }
    })
    .and_then(|seconds| {
        let told =
            BufReader::new(fs::File::open(&told)?).bytes().filter(|byte| matches!(byte, Ok(b'\n')));
        let told = told.count() as u64;
        if !follow || told == RUNS * lines {
            Ok(seconds)
        } else {
            Err(format!("{told} lines").into())
        }
    })
}

const KEEPS: &str = "offshoot, its output kept";
const KEEPS_NOT: &str = "offshoot, nothing kept";

fn kept(setting: &Setting) -> Result<Outcome> {
    let (offshoot, talk) = (&ours()?.offshoot, &talk()?);
    let count = setting.pick(2000, 40);
    let sides = vec![
        Side::new(KEEPS, || said(setting, offshoot, talk, count, 16 << 20)),
        Side::new(KEEPS_NOT, || said(setting, offshoot, talk, count, 0)),
    ];
    let samples = compare(setting, setting.rounds(), sides)?;
    Ok(Outcome::new(Unit::Seconds("process"), samples).times(KEEPS, 1.05, KEEPS_NOT))
}

fn said(setting: &Setting, offshoot: &Path, talk: &Path, count: u64, bytes: u64) -> Result<f64> {
    let folder = setting.scratch()?;
    let names: String = (0..count).map(|number| format!("{number}\n")).collect();
    fs::write(folder.path().join("in"), names)?;
    fs::write(folder.path().join("c.toml"), format!("[logs]\nkeepOutputBytes = {bytes}\n"))?;
    let mut map = silent(offshoot);
    map.args(["map", "--config", "c.toml", "--split", "lines:1", "--max-concurrent", "4", "in"]);
    map.arg("--").arg(talk).args(["20", "0"]).current_dir(folder.path());
    per(count, || succeed(&mut map))
}
