//! The parts of a supervisor, put together: data folder, record, runtimes, plugins, doors.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use offshoot_config::Config;
use offshoot_model::{AgentId, BudgetGrant, Cost, PiecesAgain, RootId, Usage};
use offshoot_plugin_host::{Place, PlaceOrigin, Search};
use offshoot_runtime::Runtime;
use offshoot_spawner::{
    AbandonedTree, Clock, FanAnswer, FanOut, HostMemory, RootSpec, RunSpec, Spawner, StoredValues,
    SystemClock,
};
use offshoot_store::{DataFolder, SqliteStore, Store};

use crate::account_board::WallFolder;
use crate::account_key::account_key;
use crate::day_budget::{DayBudget, DayShare};
use crate::door::BoundDoor;
use crate::environment::Environment;
use crate::error::HostError;
use crate::merging::Merging;
use crate::metering::Metering;
use crate::orphans::end_orphans;
use crate::plugins::{PluginSnapshot, Plugins};
use crate::processes::{Children, TreeList};
use crate::reporter::Reporter;
use crate::runtimes::{self, BuiltInRuntime};
use crate::slot_folder::SlotFolder;
use crate::tree::{Abandoned, Tree};
use crate::tree_meter::TreeMeter;
use crate::workspaces::Folders;

/// Opens trees in one data folder. It holds the record, the processes and the plugins that all of them share.
#[derive(Debug)]
pub struct Host {
    spawner: Spawner,
    store: Arc<SqliteStore>,
    folder: Arc<DataFolder>,
    environment: Environment,
    plugins: Arc<PluginSnapshot>,
    trees: TreeList,
    folders: Folders,
    /// None where no runtime is metered.
    metering: Option<Arc<Metering>>,
    /// The limits of a day; none where there are none.
    day: Option<DayBudget>,
}

/// The parts of a [`Host`] to be.
#[derive(Debug)]
pub struct HostBuilder {
    config: Config,
    environment: Environment,
    folder: Option<DataFolder>,
    plugins: Option<Plugins>,
    plugin_folders: Vec<PathBuf>,
    reporter: Reporter,
    run_spec: Option<RunSpec>,
}

impl Host {
    /// Begins with a configuration and the environment of the process.
    pub fn builder(config: Config, environment: Environment) -> HostBuilder {
        HostBuilder {
            config,
            environment,
            folder: None,
            plugins: None,
            plugin_folders: Vec::new(),
            reporter: Reporter::default(),
            run_spec: None,
        }
    }

    /// Opens a tree whose root runs nothing itself and holds pieces.
    ///
    /// # Errors
    ///
    /// Fails if the root is refused, or cannot be recorded, or no socket can be bound for its agents.
    pub async fn open(&self, spec: RootSpec) -> Result<Tree, HostError> {
        let (spawner, bound_door) = self.bound_door().await?;
        let day = self.reserve(&spec.agent)?;
        let opened = spawner.open(spec).await;
        let (session, day) = DayShare::kept_by(day, opened)?;
        bound_door.open(session, day)
    }

    /// Opens a tree whose root is an agent.
    ///
    /// # Errors
    ///
    /// Those of [`Host::open`].
    pub async fn run(&self, spec: RootSpec) -> Result<Tree, HostError> {
        let (spawner, bound_door) = self.bound_door().await?;
        let day = self.reserve(&spec.agent)?;
        let opened = spawner.run(spec).await;
        let (session, day) = DayShare::kept_by(day, opened)?;
        bound_door.open(session, day)
    }

    /// Takes over a tree whose supervisor has died.
    ///
    /// # Errors
    ///
    /// Fails if another supervisor holds it, it is over, or its record cannot be read.
    pub async fn abandoned(&self, root: RootId) -> Result<Abandoned, HostError> {
        let (spawner, bound_door) = self.bound_door().await?;
        Ok(self.held(spawner.abandoned(root).await?, bound_door))
    }

    /// Holds a tree that is over, to go on with its pieces that have no answer.
    ///
    /// # Errors
    ///
    /// Fails if another supervisor holds it, its record cannot be read, or it cannot go on in this way.
    pub async fn ended(&self, root: RootId, again: PiecesAgain) -> Result<Abandoned, HostError> {
        let (spawner, bound_door) = self.bound_door().await?;
        Ok(self.held(spawner.ended(root, again).await?, bound_door))
    }

    /// Takes over a tree whose supervisor has died, and ends it: nothing of it is started, each run that was alive ends as cancelled by
    /// the operator, and what the tree has not spent of the day is free again. Its runtimes need not be here.
    ///
    /// # Errors
    ///
    /// Fails if another supervisor holds it, it is over, its record cannot be read or written, or the day cannot be counted.
    pub async fn cancel_abandoned(&self, root: RootId) -> Result<(), HostError> {
        let tree = self.spawner.abandoned_to_cancel(root).await?;
        // What is reserved stays so until its end is on record.
        let share = |day: &DayBudget| day.left_by(root, SystemClock.now()).transpose();
        let day = self.day.as_ref().and_then(share).transpose()?;
        let mut session = tree.cancel().await?;
        let events = session.events();
        session.ended().await?;
        if let Some(day) = day {
            Arc::new(day).follow(root, events).await;
        }
        Ok(())
    }

    /// Returns an order whose answers become one in this way: a strategy, or `plugin:NAME[=PARAMETERS]`.
    ///
    /// # Errors
    ///
    /// Fails if that is no merge, or the plugin cannot be loaded.
    pub fn merge(&self, order: FanOut, merge: &str) -> Result<FanOut, HostError> {
        let merging: Merging = merge.parse()?;
        let external = merging.load(|name| self.plugins.merge(name))?;
        let external = external.or_else(|| order.external.clone());
        let asking = merging.asking().cloned();
        Ok(FanOut { strategy: merging.strategy(), external, asking, ..order })
    }

    /// Returns what an answer of this host is written with.
    pub fn values(&self, answer: &FanAnswer) -> StoredValues {
        answer.values(self.store.clone())
    }

    /// Returns the engine, which counts over all trees of this host. Trees that it opens itself have no door.
    pub fn spawner(&self) -> &Spawner {
        &self.spawner
    }

    /// Returns what makes folders of their own for runs.
    pub fn folders(&self) -> &Folders {
        &self.folders
    }

    /// Returns the record.
    pub fn store(&self) -> &Arc<SqliteStore> {
        &self.store
    }

    /// Reserves the budget of a tree that is about to be opened, where a day is bounded.
    fn reserve(&self, agent: &AgentId) -> Result<Option<DayShare>, HostError> {
        let Some(day) = &self.day else { return Ok(None) };
        let budget = self.spawner.config().root_settings(agent).budget.grant();
        let nothing = (Usage::default(), Cost::NONE);
        Ok(Some(day.reserve(None, budget, nothing, SystemClock.now())?))
    }

    /// A tree of an earlier supervisor, with the door that is opened when it goes on.
    fn held(&self, tree: AbandonedTree, bound_door: BoundDoor) -> Abandoned {
        let (day, store) = (self.day.clone(), self.store.clone());
        Abandoned { tree, bound_door, day, store, given: BudgetGrant::default() }
    }

    /// An engine that issues tickets for a door of its own, and this door.
    async fn bound_door(&self) -> Result<(Spawner, BoundDoor), HostError> {
        let meter = match &self.metering {
            Some(metering) => Some(TreeMeter::bind(metering).await.map_err(HostError::Meter)?),
            None => None,
        };
        let (plugins, trees) = (Arc::clone(&self.plugins), self.trees.clone());
        let door = BoundDoor::bind(&self.folder, &self.environment, plugins, trees, meter)?;
        let spawner = self.spawner.with_ticket_issuer(Arc::new(door.tickets.clone()));
        Ok((spawner, door))
    }
}

impl HostBuilder {
    /// Keeps record and values here. Without this they are in a temporary folder.
    #[must_use]
    pub fn folder(mut self, folder: DataFolder) -> Self {
        self.folder = Some(folder);
        self
    }

    /// Loads the plugins that agents name from these folders, besides those of [`plugins`](Self::plugins).
    #[must_use]
    pub fn plugin_folders(mut self, folders: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        self.plugin_folders = folders.into_iter().map(Into::into).collect();
        self
    }

    /// Uses these plugins.
    #[must_use]
    pub fn plugins(mut self, plugins: Plugins) -> Self {
        self.plugins = Some(plugins);
        self
    }

    /// Hands messages for the user to this reporter.
    #[must_use]
    pub fn reporter(mut self, reporter: Reporter) -> Self {
        self.reporter = reporter;
        self
    }

    /// Checks before anything is opened that this can be run.
    #[must_use]
    pub fn ready_for(mut self, run_spec: RunSpec) -> Self {
        self.run_spec = Some(run_spec);
        self
    }

    /// Opens the record, ends what an earlier supervisor has left running, and starts the processes that hold others.
    ///
    /// # Errors
    ///
    /// See [`HostError`].
    pub async fn start(self) -> Result<Host, HostError> {
        let Self { config, environment, folder, plugins, plugin_folders, reporter, run_spec } =
            self;
        let folder = match folder {
            Some(folder) => folder,
            None => DataFolder::temporary()?,
        };
        let store = Arc::new(SqliteStore::open(&folder)?);
        end_orphans(&folder, &*store, &reporter)?;
        let plugins = match plugins {
            Some(plugins) => plugins,
            None => named(plugin_folders, &config, &environment, &reporter),
        };
        let Children { processes, trees } = plugins.children()?.clone();
        let folder_of_tree = run_spec.as_ref().map_or(Path::new("/"), |spec| &spec.working_folder);
        let wanted = run_spec.as_ref().and_then(|spec| spec.runtime.as_deref());
        let built_in = runtimes::build(&config, &environment, &processes, folder_of_tree, wanted);
        let key = account_key(environment.state_home.as_deref());
        let mut builder = Spawner::builder().runtimes(built_in.await?).account_key(key);
        if let Some(walls) = WallFolder::of_user(environment.state_home.as_deref()) {
            builder = builder.account_board(Arc::new(walls));
        }
        let host = config.host();
        if host.max_concurrent().is_some() || host.max_concurrent_per_account().is_some() {
            let slots = SlotFolder::of_user(environment.state_home.as_deref());
            builder = builder.host_slots(Arc::new(slots));
        }
        if config.host().memory_keep().millionths() > 0 {
            builder = builder.host_memory(host_memory);
        }
        for runtime in plugins.runtimes() {
            builder = builder.runtime(runtime.clone());
        }
        let metering = Metering::of(&config, &environment, &processes, plugins.runtimes());
        let metering = metering.map(Arc::new);
        if let Some(metering) = &metering {
            builder = builder.metered(metering.built_in());
            builder = builder.metered_if_asked(metering.of_plugins());
        }
        let names = plugins.runtimes().iter().map(|runtime| runtime.name().to_owned());
        let names: Vec<String> = BuiltInRuntime::names().map(str::to_owned).chain(names).collect();
        let free = names.iter().filter(|name| runtimes::is_said_to_be_free(&config, name));
        builder = builder.free(free.cloned().collect::<Vec<_>>());
        builder = builder.default_usd(runtimes::default_dollars(&config, &names));
        let day = DayBudget::of_user(environment.state_home.as_deref(), config.host());
        let folder = Arc::new(folder);
        let shared: Arc<dyn Store> = Arc::<SqliteStore>::clone(&store);
        let folders = Folders::new(&folder, Arc::clone(&shared), &environment, &processes);
        folders.recover(&reporter).await;
        let builder = builder.workspaces(Arc::new(folders.clone()));
        let spawner = builder.config(config).store(shared).folder(Arc::clone(&folder)).build()?;
        let plugins = Arc::new(PluginSnapshot::take(plugins)?);
        Ok(Host { spawner, store, folder, environment, plugins, trees, folders, metering, day })
    }
}

/// Reads the memory of the computer; nothing where the system does not tell.
fn host_memory() -> Option<HostMemory> {
    let read = offshoot_process::HostMemory::read();
    let read = read.inspect_err(|error| tracing::debug!(%error, "memory cannot be read"));
    let offshoot_process::HostMemory { total, available, stalled } = read.ok()?;
    Some(HostMemory { total, available, stalled })
}

/// The plugins of folders that the caller has named, each of which is trusted by that. Those that agents name are loaded.
fn named(
    folders: Vec<PathBuf>,
    config: &Config,
    environment: &Environment,
    reporter: &Reporter,
) -> Plugins {
    let place = |folder| Place { folder, origin: PlaceOrigin::Flag };
    let search = Search::new(folders.into_iter().map(place).collect());
    let trust = Arc::new(|_: &_| Ok(None));
    let mut plugins =
        Plugins::new(search, trust, config.clone(), environment.clone(), reporter.clone());
    plugins.load_for_agents(&[]);
    plugins
}
