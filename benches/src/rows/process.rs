//! Process agents beside everything else that starts processes a few at a time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use offshoot_merge::Strategy;
use offshoot_process::{Exit, Keep, NeverStop, Program};
use offshoot_spawner::RunSpec;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::Row;
use crate::Result;
use crate::comparison::{Side, compare, per};
use crate::engine::{Engine, Record, config, exec, pieces};
use crate::outcome::{Outcome, Unit};
use crate::programs::{
    installed, ours as our_programs, silent, silent_with, succeed, true_program,
};
use crate::setting::Setting;

pub(crate) const ROW: Row = Row {
    name: "process",
    what: "one process agent, everything on (durable record, events, merge): `true`, 4 at once",
    measure,
};

const AT_ONCE: usize = 4;

const ENGINE: &str = "offshoot, the engine";
/// The floor of the engine: a group of its own for each process, and a keeper that ends it if this process is killed.
const PROCESSES: &str = "offshoot, its processes alone";
const COMMAND: &str = "offshoot, the command";
const TOKIO: &str = "tokio Command with captured output";
const XARGS: &str = "xargs -P4";
const PARALLEL: &str = "parallel -j4";

fn measure(setting: &Setting) -> Result<Outcome> {
    let count = setting.pick(2000, 40);
    let folder = setting.scratch()?;
    let program = &true_program()?;
    let lines = &lines(folder.path(), count)?;
    let offshoot = &our_programs()?.offshoot;
    let mut sides = vec![
        Side::new(ENGINE, || engine(setting, program, count)),
        Side::new(PROCESSES, || processes(setting, program, count)),
        Side::new(COMMAND, || command(setting, offshoot, program, lines, count)),
        Side::new(TOKIO, || tokio_command(setting, program, count)),
    ];
    let mut notes = Vec::new();
    match installed("xargs") {
        Some(xargs) => sides.push(Side::new(XARGS, move || {
            let mut xargs = silent_with(&xargs, lines)?;
            per(count, || succeed(xargs.args(["-P4", "-n1"]).arg(program)))
        })),
        None => notes.push("xargs is not installed".to_owned()),
    }
    match installed("parallel") {
        Some(parallel) => sides.push(Side::new(PARALLEL, move || {
            let mut parallel = silent_with(&parallel, lines)?;
            per(count, || succeed(parallel.arg("-j4").arg(program)))
        })),
        None => notes.push("GNU parallel is not installed".to_owned()),
    }
    let samples = compare(setting, setting.rounds(), sides)?;
    Ok(Outcome::new(Unit::Seconds("process"), samples)
        .times(ENGINE, 1.15, TOKIO)
        .times(COMMAND, 0.8, XARGS)
        .beside(PROCESSES, XARGS)
        .beside(TOKIO, XARGS)
        .times(COMMAND, 0.2, PARALLEL)
        .notes(notes)
        .note("xargs and parallel capture nothing of their own accord, and keep no record"))
}

/// The engine with its record on the disk and a keeper, as the command has it.
fn engine(setting: &Setting, program: &Path, count: u64) -> Result<f64> {
    let folder = setting.scratch()?;
    let runtime = setting.runtime()?;
    let command = program.to_str().ok_or("a program of ordinary name")?;
    runtime.block_on(async {
        let engine = Engine::new(Record::Sqlite, folder.path(), config(AT_ONCE as u32)?, exec()?)?;
        let run_spec = RunSpec::command("/", [command]);
        let start = std::time::Instant::now();
        engine.run(pieces(count), run_spec, Strategy::Concatenate).await?;
        Ok(start.elapsed().as_secs_f64() / count as f64)
    })
}

/// The same as a person types it, with the start of the command and the cutting of its input.
fn command(
    setting: &Setting,
    offshoot: &Path,
    program: &Path,
    lines: &Path,
    count: u64,
) -> Result<f64> {
    let folder = setting.scratch()?;
    let mut map = silent(offshoot);
    map.arg("--data-dir").arg(folder.path().join("data"));
    map.args(["map", "--split", "lines:1", "--max-concurrent", "4"]);
    map.arg(lines).arg("--").arg(program).current_dir(folder.path());
    per(count, || succeed(&mut map))
}

/// The part that starts processes for the engine, under a semaphore instead of it.
fn processes(setting: &Setting, program: &Path, count: u64) -> Result<f64> {
    setting.runtime()?.block_on(async {
        let processes = crate::engine::processes()?;
        under_semaphore(count, || {
            let (processes, program) = (processes.clone(), captured(program));
            async move {
                let child = processes.spawn(program).expect("the program can be started");
                let finished = child.wait(NeverStop).await;
                assert_eq!(finished.exit, Exit::Code(0));
            }
        })
        .await
    })
}

fn captured(program: &Path) -> Program {
    Program {
        env: std::env::vars_os().collect(),
        stdout: Keep::First(64 << 10).into(),
        stderr: Keep::Last(8 << 10).into(),
        ..Program::new(program, "/")
    }
}

fn tokio_command(setting: &Setting, program: &Path, count: u64) -> Result<f64> {
    setting.runtime()?.block_on(under_semaphore(count, || {
        let mut command = tokio::process::Command::new(program);
        command.stdin(Stdio::null());
        async move {
            let output = command.output().await.expect("the program can be started");
            assert!(output.status.success(), "{}", output.status);
        }
    }))
}

async fn under_semaphore<F>(count: u64, run: impl Fn() -> F) -> Result<f64>
where
    F: Future<Output = ()> + Send + 'static,
{
    let start = std::time::Instant::now();
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    let mut tasks = JoinSet::new();
    for _ in 0..count {
        let (slots, run) = (Arc::clone(&slots), run());
        tasks.spawn(async move {
            let _slot = slots.acquire().await.expect("it is never closed");
            run.await;
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended?;
    }
    Ok(start.elapsed().as_secs_f64() / count as f64)
}

/// A file of as many lines, for those that read their work from one.
fn lines(folder: &Path, count: u64) -> Result<PathBuf> {
    let path = folder.join("lines");
    let lines: String = (1..=count).map(|number| format!("{number}\n")).collect();
    fs::write(&path, lines)?;
    Ok(path)
}
