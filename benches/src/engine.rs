//! offshoot's engine, as the rows use it.

use std::path::Path;
use std::sync::Arc;

use offshoot_config::{Config, Loader};
use offshoot_merge::Strategy;
use offshoot_process::{KeeperCommand, Options, Processes};
use offshoot_runtime::{Finished, FnRuntime, Runtime};
use offshoot_runtime_exec::{ExecOptions, ExecRuntime};
use offshoot_spawner::{Fan, FanOut, Piece, RootSpec, RunSpec, Session, Spawner, SpawnerBuilder};
use offshoot_store::{DataFolder, MemoryStore, SqliteStore, Store};

use crate::Result;

/// The argument with which this program is a keeper.
pub(crate) const KEEPER: &str = "keeper";

/// The place to which events go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    Memory,
    Sqlite,
}

/// A spawner and its store.
pub(crate) struct Engine {
    pub(crate) spawner: Spawner,
    pub(crate) store: Arc<dyn Store>,
    /// The same store, where it is a database.
    pub(crate) sqlite: Option<Arc<SqliteStore>>,
}

impl Engine {
    pub(crate) fn new(
        record: Record,
        folder: &Path,
        config: Config,
        runtime: impl Runtime,
    ) -> Result<Self> {
        Self::with(record, folder, config, runtime, |builder| builder)
    }

    /// The same, with what else the spawner is told.
    pub(crate) fn with(
        record: Record,
        folder: &Path,
        config: Config,
        runtime: impl Runtime,
        tell: impl FnOnce(SpawnerBuilder) -> SpawnerBuilder,
    ) -> Result<Self> {
        let folder = Arc::new(DataFolder::open(folder)?);
        let sqlite = match record {
            Record::Memory => None,
            Record::Sqlite => Some(Arc::new(SqliteStore::open(&folder)?)),
        };
        let store: Arc<dyn Store> = match &sqlite {
            Some(sqlite) => Arc::clone(sqlite) as Arc<dyn Store>,
            None => Arc::new(MemoryStore::new()),
        };
        let builder = Spawner::builder().config(config).store(Arc::clone(&store)).folder(folder);
        Ok(Self { spawner: tell(builder.runtime(runtime)).build()?, store, sqlite })
    }

    /// Runs the pieces of one tree to their merged end.
    pub(crate) async fn run(
        &self,
        pieces: Vec<Piece>,
        run_spec: RunSpec,
        merge: Strategy,
    ) -> Result<()> {
        let (session, fan) = self.start(pieces, run_spec, merge).await?;
        let outcome = fan.answer().await?;
        outcome.verdict.as_ref().map_err(ToString::to_string)?;
        session.conclude(&outcome).await?;
        Ok(())
    }

    /// Asks for the pieces of one tree.
    pub(crate) async fn start(
        &self,
        pieces: Vec<Piece>,
        run_spec: RunSpec,
        merge: Strategy,
    ) -> Result<(Session, Fan)> {
        let session = self.spawner.open(RootSpec { run_spec, ..RootSpec::new("measure") }).await?;
        let fan = session.fan_out(FanOut::new(pieces).merge(merge)).await?;
        Ok((session, fan))
    }
}

/// So many at once, and room for trees as deep and as wide as the rows grow them.
pub(crate) fn config(at_once: u32) -> Result<Config> {
    Ok(loader(at_once).load()?)
}

/// The same, before it is read: a row can set more.
pub(crate) fn loader(at_once: u32) -> Loader {
    let key = |name: &str| format!("agents.defaults.subagents.{name}");
    Loader::new()
        .set(key("maxConcurrent"), at_once)
        .set(key("allowRecursiveSpawn"), true)
        .set(key("maxSpawns"), 1_000_000)
}

/// An agent that answers at once.
pub(crate) fn closure() -> FnRuntime {
    FnRuntime::new("closure", |_, _| async { Finished::text("1") })
}

/// Programs as agents. Must be called inside a tokio runtime.
pub(crate) fn exec() -> Result<ExecRuntime> {
    let options = ExecOptions::inheriting(std::env::vars_os().collect());
    Ok(ExecRuntime::new(processes()?, options))
}

/// Processes with a keeper, as the command has them. Must be called inside a tokio runtime.
pub(crate) fn processes() -> Result<Processes> {
    let keeper =
        KeeperCommand { program: std::env::current_exe()?, args: vec![KEEPER.into()], log: None };
    // No subreaper: peers start processes in this one, too.
    Ok(Processes::start(Options { keeper: Some(keeper), ..Options::default() })?)
}

/// So many pieces that say the same.
pub(crate) fn pieces(count: u64) -> Vec<Piece> {
    let task: Arc<str> = "measure".into();
    (0..count).map(|_| Piece::task(Arc::clone(&task))).collect()
}
