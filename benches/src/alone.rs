//! Measurements that need a process of their own: memory that was used once is not given back.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use offshoot_merge::Strategy;
use offshoot_model::SpawnRequest;
use offshoot_spawner::{FanOut, Piece, RootSpec, RunSpec};
use offshoot_split as split;

use crate::Result;
use crate::engine::{Engine, Record, closure, config, exec, pieces};
use crate::programs::installed;

/// The argument with which this program does one of them and prints a number of bytes.
pub(crate) const ALONE: &str = "--alone";

/// The subject to measure.
pub(crate) enum Order {
    /// The growth for each run in line.
    Queued { runs: u64 },
    /// The growth for each run that is over, in a tree that lives.
    Finished { runs: u64 },
    /// The growth for each piece of a tree that was taken over.
    Resumed { runs: u64 },
    /// The most that a map of a large file takes, everything in it.
    Large { log: PathBuf, pieces: u64 },
}

/// Does what another process was asked for.
pub(crate) fn run(order: &[String]) -> Result<()> {
    let [word, number, folder, rest @ ..] = order else {
        return Err(format!("{ALONE} is for this program itself").into());
    };
    let (number, folder) = (number.parse()?, Path::new(folder));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let bytes = runtime.block_on(async {
        match (word.as_str(), rest) {
            ("queued", []) => queued(number, folder).await,
            ("finished", []) => finished(number, folder).await,
            ("resumed", []) => resumed(number, folder).await,
            ("large", [log]) => large(Path::new(log), number, folder).await,
            _ => Err(format!("no such measurement: {word}").into()),
        }
    })?;
    println!("{bytes}");
    Ok(())
}

impl Order {
    /// Has another process of this program do it.
    pub(crate) fn run_elsewhere(&self, folder: &Path) -> Result<f64> {
        let (word, number, log) = match self {
            Self::Queued { runs } => ("queued", runs, None),
            Self::Finished { runs } => ("finished", runs, None),
            Self::Resumed { runs } => ("resumed", runs, None),
            Self::Large { log, pieces } => ("large", pieces, Some(log)),
        };
        let mut command = Command::new(std::env::current_exe()?);
        command.args([ALONE, word, &number.to_string()]).arg(folder).args(log);
        let output = command.stderr(std::process::Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err(format!("{command:?}: {}", output.status).into());
        }
        Ok(String::from_utf8(output.stdout)?.trim().parse()?)
    }
}

async fn queued(runs: u64, folder: &Path) -> Result<f64> {
    let engine = Engine::new(Record::Sqlite, folder, config(8)?, closure())?;
    engine.run(pieces(10), RunSpec::in_folder("/"), Strategy::Sum).await?;
    let session = engine.spawner.open(RootSpec::new("measure")).await?;
    session.pause(true);
    let before = resident("VmRSS")?;
    let fan = session.fan_out(FanOut::new(pieces(runs)).merge(Strategy::Sum)).await?;
    let standing = session.counts().await.queued as u64;
    if standing != runs {
        return Err(format!("{standing} of {runs} stand in line").into());
    }
    // What still waits for the disk is not what is measured. A second question is answered after the events of the
    // first round were given to the store, and the store takes one call after the other.
    session.counts().await;
    engine.store.append(&[]).await?;
    let growth = resident("VmRSS")? - before;
    session.pause(false);
    let outcome = fan.answer().await?;
    session.conclude(&outcome).await?;
    Ok(growth / runs as f64)
}

async fn finished(runs: u64, folder: &Path) -> Result<f64> {
    let engine = Engine::new(Record::Sqlite, folder, config(8)?, closure())?;
    engine.run(pieces(10), RunSpec::in_folder("/"), Strategy::Sum).await?;
    let before = resident("VmRSS")?;
    let (session, fan) = engine.start(pieces(runs), RunSpec::in_folder("/"), Strategy::Sum).await?;
    let outcome = fan.answer().await?;
    let growth = resident("VmRSS")? - before;
    session.conclude(&outcome).await?;
    Ok(growth / runs as f64)
}

async fn resumed(runs: u64, folder: &Path) -> Result<f64> {
    let engine = Engine::new(Record::Sqlite, folder, config(8)?, closure())?;
    let root = engine.store.roots()?.pop().ok_or("there is no tree to take over")?.root;
    let before = resident("VmRSS")?;
    let spec = RootSpec { run_spec: RunSpec::in_folder("/"), ..RootSpec::new("measure") };
    let session = engine.spawner.resume(root, spec).await?;
    session.pause(true);
    let fan = session.fan_out(FanOut::new(pieces(runs)).merge(Strategy::Sum)).await?;
    session.counts().await;
    let growth = resident("VmRSS")? - before;
    session.pause(false);
    let outcome = fan.answer().await?;
    session.conclude(&outcome).await?;
    Ok(growth / runs as f64)
}

async fn large(log: &Path, count: u64, folder: &Path) -> Result<f64> {
    let engine = Engine::new(Record::Sqlite, folder, config(4)?, exec()?)?;
    let cat = installed("cat").ok_or("there is no program `cat`")?;
    let split: split::Split = format!("chunks:{count}").parse()?;
    let piece = |cut: split::Piece| Piece {
        request: SpawnRequest { task: "measure".into(), ..SpawnRequest::default() },
        input: Some(cut.range),
        key: Some(cut.label),
        ..SpawnRequest::default().into()
    };
    let pieces: Vec<Piece> = split::cut(&[log.to_owned()], split)?
        .map(|cut| cut.map(piece))
        .collect::<std::result::Result<_, _>>()?;
    let run_spec = RunSpec::command("/", [cat.to_string_lossy()]);
    engine.run(pieces, run_spec, Strategy::Concatenate).await?;
    resident("VmHWM")
}

/// Bytes of this process, by a line of `/proc/self/status`.
fn resident(name: &str) -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kibibytes: f64 = kibibytes.ok_or_else(|| format!("no {name}"))?.trim().parse()?;
    Ok(kibibytes * 1024.0)
}
