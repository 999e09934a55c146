//! A run of a plugin that is a program beside a bare program that answers lines, many at once and without an engine.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use offshoot_plugin_host::{Checked, Plugin, Surroundings};
use offshoot_process::{Options, Processes};

use super::Row;
use super::plugin_run::{IN_FLIGHT, each};
use crate::Result;
use crate::comparison::{Side, compare, timed};
use crate::outcome::{Outcome, Unit};
use crate::plugins::settings;
use crate::programs::{LineProgram, line_programs};
use crate::setting::Setting;

pub(crate) const ROW: Row = Row {
    name: "plugin-process",
    what: "one run of a plugin that is a program beside a bare round trip of lines; 64 in flight",
    measure,
};

fn measure(setting: &Setting) -> Result<Outcome> {
    let runs = setting.pick(64_000, 640);
    let LineProgram { echo, bare } = line_programs()?;
    let place = setting.scratch()?;
    let folder = place.path().join("echo");
    std::fs::create_dir(&folder)?;
    std::fs::copy(echo, folder.join("echo-lines"))?;
    let package = folder.join("plugin.toml");
    std::fs::write(&package, PACKAGE)?;
    let surroundings = Surroundings {
        processes: Some(Processes::start(Options::default())?),
        environment: std::env::vars_os().collect(),
        ..Surroundings::default()
    };
    let plugin = Plugin::load(&Checked::file(&package)?, surroundings, &settings()?)?;
    let runtime = plugin.runtime("echo", &settings()?)?;
    let samples = compare(
        setting,
        setting.few_rounds(),
        vec![
            Side::new("plugin", || each(setting, &runtime, runs)),
            Side::new("lines", || each_line(&bare, runs)),
        ],
    )?;
    setting.runtime()?.block_on(plugin.shutdown(std::time::Duration::from_secs(5)))?;
    Ok(Outcome::new(Unit::Seconds("run"), samples).times("plugin", 1.3, "lines"))
}

const PACKAGE: &str = "\
name = \"echo\"
version = \"0.1.0\"
abi = \"1.0\"
runtimes = [\"echo\"]
[process]
command = [\"./echo-lines\"]
per = \"plugin\"
";

/// Lines of the same length there and back, each written and read alone.
fn each_line(program: &std::path::Path, runs: u64) -> Result<f64> {
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut to = child.stdin.take().ok_or("it has a pipe")?;
    let mut from = BufReader::new(child.stdout.take().ok_or("it has a pipe")?);
    let (seconds, ()) = timed(|| {
        let mut answer = String::new();
        for batch in 0..runs / IN_FLIGHT {
            for id in batch * IN_FLIGHT..(batch + 1) * IN_FLIGHT {
                to.write_all(
                    format!("{{\"id\":{id},\"op\":\"start\",\"of\":3,\"launch\":{LAUNCH}}}\n")
                        .as_bytes(),
                )?;
            }
            for _ in 0..IN_FLIGHT {
                answer.clear();
                from.read_line(&mut answer)?;
                let answer: serde_json::Value = serde_json::from_str(&answer)?;
                assert_eq!(answer["body"], "hello");
            }
        }
        Ok(())
    })?;
    drop(to);
    child.wait()?;
    Ok(seconds / runs as f64)
}

/// The document of a bare launch.
const LAUNCH: &str = r#"{"v":1,"run":"00000000-0000-0000-0000-000000000000","root":"00000000-0000-0000-0000-000000000000","key":"agent:main:subagent:test","agent":"main","depth":1,"task":"hello","input":"prompt","output":"text","workingFolder":"/","runFolder":"/nonexistent","spoolFolder":"/nonexistent","grant":{"maxDepth":1,"maySpawn":true,"graceSeconds":5}}"#;
