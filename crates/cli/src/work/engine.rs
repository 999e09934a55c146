//! The engine with everything it stands on: data folder, record, runtime.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use offshoot_config::Config;
use offshoot_door::{Client, Server};
use offshoot_model::RootId;
use offshoot_plugin_host::shutdown_all;
use offshoot_process::Processes;
use offshoot_runtime_claude::ClaudeRuntime;
use offshoot_runtime_exec::{ExecOptions, ExecRuntime};
use offshoot_spawner::{RunSpec, Session, Spawner, SpawnerError, TicketIssuer};
use offshoot_store::{DataFolder, SqliteStore, Store};

use super::children::{Children, TreeSlot};
use super::claude::{self, CLAUDE};
use super::heads::Heads;
use super::leftovers;
use super::openai::{self, OPENAI};
use super::preflight::{EXEC, Prepared};
use crate::door::{Door, refused};
use crate::environment::Environment;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::plugins::Found;
use crate::record::{failed, telling};

/// How long plugins may take to end what is left of their work. Their runs are over by then.
const PLUGIN_GRACE: Duration = Duration::from_secs(2);

/// All that a tree needs.
pub(crate) struct Engine {
    /// Opens trees.
    pub(crate) spawner: Spawner,
    /// Keeps what happens.
    pub(crate) store: Arc<dyn Store>,
    /// The same store, for questions that only a database can answer.
    record: Arc<SqliteStore>,
    /// The target of the last link of each tree.
    heads: Heads,
    /// Where agents knock, until a tree answers.
    door: Mutex<Option<Door>>,
    /// The plugins that agents may name.
    found: Arc<Found>,
    /// The tree that is told what is noticed beside the runs.
    tree: TreeSlot,
}

impl Engine {
    /// Puts it together, for this work.
    pub(crate) async fn start(
        config: Config,
        folder: DataFolder,
        prepared: &Prepared,
        cx: &Invocation,
    ) -> Result<Self, Failure> {
        let record = Arc::new(SqliteStore::open(&folder).map_err(|error| failed(&error))?);
        let store: Arc<dyn Store> = Arc::<SqliteStore>::clone(&record);
        if folder.is_exposed() {
            cx.output.warning(format_args!(
                "other users can read what is recorded in {}, and its mode cannot be changed: keep it elsewhere with --data-dir",
                folder.path().display()
            ));
        }
        leftovers::see_to(&folder, &*store, cx)?;
        let run_spec = &prepared.run_spec;
        let Children { processes, tree } = prepared.plugins.children(cx)?.clone();
        let claude = claude(&config, &processes, run_spec, cx).await?;
        let door = Door::bind(&folder, &cx.environment)?;
        let heads = Heads::new(&config, processes.clone(), cx);
        let mut builder = Spawner::builder().runtime(exec(&config, processes, cx));
        if let Some(claude) = claude {
            builder = builder.runtime(claude);
        }
        if run_spec.runtime.as_deref() == Some(OPENAI) || openai::is_wanted(&config) {
            builder = builder.runtime(openai::runtime(&config, cx)?);
        }
        for runtime in prepared.plugins.runtimes() {
            builder = builder.runtime(runtime.clone());
        }
        let spawner = builder
            .config(config)
            .store(Arc::clone(&store))
            .folder(Arc::new(folder))
            .ticket_issuer(Arc::new(door.porter.clone()))
            .build()
            .map_err(|error| broken(&error))?;
        let found = Arc::new(Found::look(prepared.plugins.clone(), cx.clone())?);
        Ok(Self { spawner, store, record, heads, door: Mutex::new(Some(door)), found, tree })
    }

    /// Keeps the last link of a tree that is over where the user wants it.
    pub(crate) async fn keep_head(&self, root: RootId, cx: &Invocation) {
        self.heads.keep(&self.record, root, cx).await;
    }

    /// Lets the agents of this tree ask for children, for as long as the answer is kept.
    pub(crate) fn listen(&self, session: &Session) -> Result<Server, Failure> {
        self.tree.put(session.notebook());
        let door = self.door.lock().unwrap_or_else(PoisonError::into_inner).take();
        door.expect("a command opens one tree").open(session.agents(), Arc::clone(&self.found))
    }

    /// The same for a root that is no program but lives in this process; with the client by which it asks.
    pub(crate) async fn listen_inside(
        &self,
        session: &Session,
    ) -> Result<(Server, Client), Failure> {
        let door = self.door.lock().unwrap_or_else(PoisonError::into_inner).take();
        let door = door.expect("a command opens one tree");
        self.tree.put(session.notebook());
        let (root, porter) = (session.root(), door.porter.clone());
        porter.issue(root, root.run());
        porter.started(root.run(), None);
        let server = door.open(session.agents(), Arc::clone(&self.found))?;
        let client = server.inside(root.run()).await.map_err(|error| refused(&error))?;
        Ok((server, client))
    }
}

/// Opens the data folder, or makes it.
pub(crate) fn data_folder(cx: &Invocation) -> Result<DataFolder, Failure> {
    let folder = DataFolder::open(cx.data_folder()).map_err(|error| failed(&error))?;
    Ok(telling(folder, cx))
}

/// The runtime for programs.
fn exec(config: &Config, processes: Processes, cx: &Invocation) -> ExecRuntime {
    let Environment { executable, variables, .. } = &cx.environment;
    let settings = config.runtime(EXEC);
    let more = settings.and_then(|settings| settings.env.as_ref());
    let wrap = settings.and_then(|settings| settings.wrap.as_ref());
    let options = ExecOptions {
        environment: variables.clone(),
        more: more.map(|more| more.value.clone()).unwrap_or_default(),
        wrap: wrap.map(|wrap| wrap.value.to_vec()).unwrap_or_default(),
        offshoot: Some(executable.clone()),
    };
    ExecRuntime::new(processes, options)
}

/// The runtime for Claude Code, where that is there: an agent of a tree of programs may ask for it too.
async fn claude(
    config: &Config,
    processes: &Processes,
    run_spec: &RunSpec,
    cx: &Invocation,
) -> Result<Option<ClaudeRuntime>, Failure> {
    let options = claude::options(config, cx)?;
    if claude::find(&options, &run_spec.working_folder, cx).is_err() {
        return Ok(None);
    }
    let runtime = ClaudeRuntime::new(processes.clone(), options.clone());
    if run_spec.runtime.as_deref() == Some(CLAUDE) {
        claude::check(&runtime, &options, &run_spec.working_folder).await?;
    }
    Ok(Some(runtime))
}

/// Runs the one future of this process to its end, and ends its plugins.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let threads = threads()?;
    let result = threads.block_on(async {
        let result = work.await;
        // Without this, what plugins have started would stay behind. One that does not end in time is left to the keeper.
        shutdown_all(PLUGIN_GRACE).await;
        result
    });
    // A merge of a plugin that does not come back from a result has one of our threads for ever, which nobody waits for.
    threads.shutdown_timeout(PLUGIN_GRACE);
    result
}

/// Runs something to its end beside whatever this thread is in the middle of: a trial is made while a command is prepared,
/// and some commands are prepared within the one future of the process.
pub(crate) fn aside<T: Send>(work: impl Future<Output = T> + Send) -> Result<T, Failure> {
    let run = || threads().map(|threads| threads.block_on(work));
    let joined = std::thread::scope(|scope| scope.spawn(run).join());
    joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Threads for asynchronous work.
pub(crate) fn threads() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(|error| {
        Failure::new(Exit::NoRuntime, "the system has no threads left for us")
            .caused_by(Some(&error))
    })
}

/// A tree that could not be held.
pub(crate) fn broken(error: &SpawnerError) -> Failure {
    let failure = match error {
        SpawnerError::Refused(refusal) => {
            let failure =
                Failure::new(Exit::Refused, &refusal.message).maybe_hint(refusal.hint.as_ref());
            Failure { json: serde_json::to_value(refusal).ok(), ..failure }
        }
        // A record that cannot be read is what the command was given.
        SpawnerError::Store(cause) if cause.is_damaged() => Failure::of(Exit::BadInput, error),
        SpawnerError::Record(_) | SpawnerError::Store(_) | SpawnerError::Answer(_) => {
            Failure::of(Exit::AgentFailed, error)
        }
        _ => Failure::of(Exit::BadInput, error),
    };
    failure.maybe_hint(error.hint())
}

/// The failure of a tree that was open. Where its record ends before the tree does, with how to go on.
pub(crate) fn halted(error: &SpawnerError, root: RootId) -> Failure {
    let failure = broken(error);
    match error {
        SpawnerError::Record(cause) if cause.is_damaged() => failure,
        SpawnerError::Store(cause) if cause.is_damaged() => failure,
        SpawnerError::Record(_) | SpawnerError::Store(_) | SpawnerError::Answer(_) => {
            let first = error.hint().map(|hint| format!("{hint}; then ")).unwrap_or_default();
            failure.hint(format_args!("{first}`offshoot resume {root}` goes on with this tree"))
        }
        _ => failure,
    }
}
