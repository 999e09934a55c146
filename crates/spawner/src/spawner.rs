//! The engine, as a library user holds it.

mod resume;
mod told_walls;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock};

use offshoot_config::Config;
use offshoot_model::{
    AgentId, ContextEntry, CostKnowledge, Isolation, JsonText, MicroUsd, Origin, RootId,
    SpawnRequest, Tree,
};
use offshoot_policy::memory::HostMemory;
use offshoot_runtime::Runtime;
use offshoot_store::{
    DataFolder, OutputBounds, OutputKeeper, RootLock, SharedContexts, Store, StoreError,
};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, broadcast, mpsc, watch};
use tracing::Instrument;

use crate::account_board::{AccountBoard, ParkedAccount};
use crate::clock::{Clock, SystemClock};
use crate::error::SpawnerError;
use crate::event_stream::FOLLOW_BUFFER;
use crate::handle::Session;
use crate::host_slots::{HostShare, HostSlots};
use crate::machine::{Effect, Machine, Opening, RunIndex};
use crate::message::TreeState;
use crate::message::link::Link;
use crate::request::Ask;
use crate::request::Unresolved;
use crate::root_kind::RootKind;
use crate::run_spec::RunSpec;
use crate::runtimes::Runtimes;
use crate::supervisor::{Entering, RecordedPieces, Supervisor};
use crate::ticket_issuer::TicketIssuer;
use crate::tree_context::{
    Answers, Copies, HostMemorySource, KnownTree, MergeThreads, PROGRESS_LINES, PastTasks, READS,
    Surroundings, TreeContext,
};
use crate::workspaces::{Workplaces, Workspaces};

pub use resume::AbandonedTree;

/// Runs trees of agents. Cheap to clone; all clones are one spawner. Trees share nothing but the store.
#[derive(Clone, derive_more::Debug)]
#[debug("Spawner")]
pub struct Spawner {
    pub(crate) surroundings: Arc<Surroundings>,
}

/// Builder of a spawner.
#[derive(Default, derive_more::Debug)]
#[debug("SpawnerBuilder")]
pub struct SpawnerBuilder {
    config: Config,
    store: Option<Arc<dyn Store>>,
    folder: Option<Arc<DataFolder>>,
    runtimes: Runtimes,
    clock: Option<Arc<dyn Clock>>,
    ticket_issuer: Option<Arc<dyn TicketIssuer>>,
    workspaces: Option<Arc<dyn Workspaces>>,
    account_board: Option<Arc<dyn AccountBoard>>,
    account_key: Option<[u8; 32]>,
    metered_if_asked: Vec<String>,
    default_usd: Vec<(String, MicroUsd)>,
    free: Vec<String>,
    host_memory: Option<HostMemorySource>,
    host_slots: Option<Arc<dyn HostSlots>>,
}

/// A root to open.
#[derive(Clone, Debug)]
pub struct RootSpec {
    /// The kind of client that opens the root.
    pub kind: RootKind,
    /// The agent of the root.
    pub agent: AgentId,
    /// The task in words; for a root that runs nothing itself, the task of its pieces.
    pub task: Arc<str>,
    /// A short name for people.
    pub label: Option<Arc<str>>,
    /// Values it may read.
    pub context: Vec<ContextEntry>,
    /// The form that the answer of the root must have, as a JSON Schema; that of its agent where absent.
    pub schema: Option<JsonText>,
    /// The folder in which the root works; as its agent has it where absent.
    pub isolation: Option<Isolation>,
    /// Runtime, command and folder of the root and its children, where nothing else names them.
    pub run_spec: RunSpec,
    /// Data with which a later start can do the same again, as JSON; recorded with the root.
    pub plan: Option<JsonText>,
}

impl Spawner {
    /// Returns the same engine, with tickets from this issuer for the trees that it opens.
    #[must_use]
    pub fn with_ticket_issuer(&self, ticket_issuer: Arc<dyn TicketIssuer>) -> Self {
        let around = Surroundings {
            ticket_issuer: Some(ticket_issuer),
            ..Surroundings::clone(&self.surroundings)
        };
        Self { surroundings: Arc::new(around) }
    }

    /// Starts with the built-in configuration, a store in memory and no runtime.
    pub fn builder() -> SpawnerBuilder {
        SpawnerBuilder::default()
    }

    /// Opens a root that runs nothing itself and needs no slot: it holds the pieces that its owner asks for. Must be
    /// called inside a tokio runtime.
    pub async fn open(&self, spec: RootSpec) -> Result<Session, SpawnerError> {
        self.root(spec, false).await
    }

    /// Opens a root that is an agent itself and runs as soon as it has a slot. Must be called inside a tokio runtime.
    pub async fn run(&self, spec: RootSpec) -> Result<Session, SpawnerError> {
        self.root(spec, true).await
    }

    /// Returns the configuration of all trees.
    pub fn config(&self) -> &Config {
        &self.surroundings.config
    }

    /// All trees of the store, from its record.
    pub fn tree(&self) -> Result<Tree, StoreError> {
        let mut tree = Tree::new();
        for event in self.surroundings.store.all_events() {
            tree.apply(&event?);
        }
        Ok(tree)
    }

    /// Returns the number of runs of this spawner that hold a slot.
    pub fn active_count(&self) -> usize {
        self.surroundings.active.get()
    }

    async fn root(&self, spec: RootSpec, runs: bool) -> Result<Session, SpawnerError> {
        let around = &self.surroundings;
        let run = around.clock.mint();
        let root = RootId::new(run);
        let lock = around.folder.hold_new(root)?;
        let RootSpec { kind, agent, task, label, context, schema, isolation, run_spec, plan } =
            spec;
        let run_spec = Arc::new(run_spec);
        let tree = self.tree_context(root, &agent, &run_spec, Arc::clone(&around.clock));
        let mut request =
            SpawnRequest { task, label, context, schema, isolation, ..SpawnRequest::default() };
        let ask = if runs {
            let asked = Unresolved::of_root(&agent, Origin::Root, request.clone(), run_spec);
            let ask = asked.resolve(&tree).await?;
            request = ask.request.clone();
            Some(ask)
        } else {
            None
        };
        let opening = Opening {
            kind,
            run,
            agent: agent.clone(),
            task: tree.task_for_record(&request.task).await?,
            request,
            facts: ask.as_ref().map(|ask| Arc::clone(&ask.facts)),
            fallbacks: ask.as_ref().and_then(|ask| ask.fallbacks.clone()),
            plan,
        };
        let mut machine = Machine::new(around.config.clone(), root, &agent);
        let host = share(&mut machine, &tree)?;
        let effects = machine.open(around.clock.now(), opening)?;

        let begin = Begin { machine, effects, runs, lock, host };
        let root = |ask: Ask| Entering {
            run: RunIndex::ROOT,
            launch: ask.prepared(),
            letters: Vec::new(),
        };
        Ok(begin.begin(tree, ask.map(root).into_iter().collect(), RecordedPieces::default()))
    }

    pub(crate) fn tree_context(
        &self,
        root: RootId,
        agent: &AgentId,
        run_spec: &Arc<RunSpec>,
        clock: Arc<dyn Clock>,
    ) -> Arc<TreeContext> {
        let around = &self.surroundings;
        let logs = around.config.logs();
        let bounds = OutputBounds { run: logs.output_bytes(), tree: logs.output_bytes_per_tree() };
        Arc::new(TreeContext {
            around: Arc::clone(around),
            root,
            agent: agent.clone(),
            spool_folder: Arc::new(around.folder.spool_folder()),
            clock,
            run_spec: Arc::clone(run_spec),
            memory_short: watch::Sender::new(false),
            workplaces: Workplaces::default(),
            contexts: Mutex::default(),
            shared_contexts: SharedContexts::new(&around.folder, root),
            answers: Answers::default(),
            copies: Copies::default(),
            kept_values: Mutex::default(),
            past_tasks: PastTasks::default(),
            known: KnownTree::default(),
            chosen: OnceLock::new(),
            progress: Arc::new(Semaphore::new(PROGRESS_LINES)),
            reads: Semaphore::new(READS),
            merging: MergeThreads::default(),
            outputs: OutputKeeper::new(&around.folder, root, bounds),
            // The root itself is followed under number 0.
            minted: AtomicU64::new(1),
            places: AtomicU32::new(0),
        })
    }
}

/// Tells a machine what its tree shares with others, and begins to count its runs with those of the other trees, where the
/// configuration bounds them.
fn share(machine: &mut Machine, tree: &TreeContext) -> Result<Option<HostShare>, SpawnerError> {
    let host = HostShare::open(tree.host_slots.as_ref(), tree.root, tree.config.host());
    let host = host.map_err(|error| SpawnerError::HostSlots(Arc::new(error)))?;
    if tree.host_memory.is_some() {
        machine.watch_memory();
    }
    if host.is_some() {
        machine.share_host_slots();
    }
    if let Some(board) = &tree.account_board {
        machine.share_probes();
        for ParkedAccount { account, window, until } in board.known() {
            machine.hear_of_wall(account, window, until);
        }
    }
    Ok(host)
}

/// A tree whose task is about to begin.
pub(crate) struct Begin {
    pub(crate) machine: Machine,
    /// Effects of opening or reopening the tree, which are performed first.
    pub(crate) effects: Vec<Effect>,
    /// True if the root runs an agent itself.
    pub(crate) runs: bool,
    pub(crate) lock: RootLock,
    /// The tree's share in the slots of the host; none where the tree counts alone.
    pub(crate) host: Option<HostShare>,
}

impl Begin {
    /// Begins, with what it takes to start the runs that stand in line, and with the pieces that stand in the record.
    pub(crate) fn begin(
        self,
        tree: Arc<TreeContext>,
        entering: Vec<Entering>,
        recorded: RecordedPieces,
    ) -> Session {
        let Self { machine, effects, runs, lock, host } = self;
        // Unbounded, because a sender must never wait for the supervisor: a run that is to be stopped would not
        // hear it. What can stand in it is bounded by what lives: a spawn, a wait or an ending for each run.
        let (sender, messages) = mpsc::unbounded_channel();
        let link = Link { tree, sender };
        let events = broadcast::Sender::new(FOLLOW_BUFFER);
        let follow = events.downgrade();
        let (state, watch) = watch::channel(TreeState::Live);
        let (answer, answered) = mpsc::unbounded_channel();
        let mut supervisor =
            Supervisor::new(link.clone(), machine, messages, events, state, recorded, host);
        for entering in entering {
            let is_root = entering.run == RunIndex::ROOT;
            supervisor.enter(entering, is_root.then(|| answer.clone()));
        }
        let span = tracing::error_span!("tree", root = %link.tree.root);
        told_walls::follow(&link, watch.clone());
        let task = async move {
            tracing::info!("tree opened");
            supervisor.run(effects, lock).await;
            tracing::info!("tree ended");
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "the tree's one task; it ends when nothing of the tree is alive"
        )]
        tokio::spawn(task.instrument(span));
        Session::new(link, follow, watch, answered, runs)
    }
}

impl SpawnerBuilder {
    /// The configuration, frozen for all trees of this spawner.
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Sets the store of the record; memory where this is not called.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    /// Sets the folder that holds the folders of runs; a temporary one where this is not called.
    #[must_use]
    pub fn folder(mut self, folder: Arc<DataFolder>) -> Self {
        self.folder = Some(folder);
        self
    }

    /// One more runtime. The first one is the default.
    #[must_use]
    pub fn runtime(mut self, runtime: impl Runtime) -> Self {
        self.runtimes.insert(Arc::new(runtime));
        self
    }

    /// Adds these runtimes, in this order.
    #[must_use]
    pub fn runtimes(mut self, runtimes: impl IntoIterator<Item = Arc<dyn Runtime>>) -> Self {
        runtimes.into_iter().for_each(|runtime| self.runtimes.insert(runtime));
        self
    }

    /// Sets the source of time and ids; the machine's own clock where this is not called.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Sets what gives running agents a way to ask; they have none where this is not called.
    #[must_use]
    pub fn ticket_issuer(mut self, ticket_issuer: Arc<dyn TicketIssuer>) -> Self {
        self.ticket_issuer = Some(ticket_issuer);
        self
    }

    /// Sets what makes folders of their own for runs; a run that is to have one is refused where this is not called.
    #[must_use]
    pub fn workspaces(mut self, workspaces: Arc<dyn Workspaces>) -> Self {
        self.workspaces = Some(workspaces);
        self
    }

    /// Sets the place where trees of the user tell each other of quotas that are used up. Where this is not called, each tree knows
    /// the walls that it has met itself.
    #[must_use]
    pub fn account_board(mut self, board: Arc<dyn AccountBoard>) -> Self {
        self.account_board = Some(board);
        self
    }

    /// Sets the key for the fingerprints by which accounts of one runtime are told apart. Where this is not called, all runs of a
    /// runtime are taken for one account.
    #[must_use]
    pub fn account_key(mut self, key: Option<[u8; 32]>) -> Self {
        self.account_key = key;
        self
    }

    /// Sets what tells how much memory the computer has, in some ten microseconds: runs wait while less would stay available than
    /// `host.memoryKeep` says. Where this is not called, they wait for none.
    #[must_use]
    pub fn host_memory(
        mut self,
        read: impl Fn() -> Option<HostMemory> + Send + Sync + 'static,
    ) -> Self {
        self.host_memory = Some(Arc::new(read));
        self
    }

    /// Sets what shares out slots among all trees of the user, as `host.maxConcurrent` says. Where this is not called, each tree counts
    /// its own runs alone.
    #[must_use]
    pub fn host_slots(mut self, host: Arc<dyn HostSlots>) -> Self {
        self.host_slots = Some(host);
        self
    }

    /// The meter counts what the runs of these runtimes use: each request to a model is asked for with
    /// [`Agents::request_asked`](crate::Agents::request_asked) before it leaves, and told as over.
    #[must_use]
    pub fn metered(mut self, runtimes: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        for name in runtimes {
            if let Some(facts) = self.runtimes.facts_mut(name.as_ref()) {
                facts.cost = CostKnowledge::Metered;
            }
        }
        self
    }

    /// The meter counts what the runs of these runtimes ask through it, and they may also ask their models elsewhere. Of a run that has asked
    /// nothing through the meter it is not known what it cost, unless `runtimes.NAME.cost` is `none`.
    #[must_use]
    pub fn metered_if_asked(
        mut self,
        runtimes: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.metered_if_asked.extend(runtimes.into_iter().map(Into::into));
        self
    }

    /// Sets the dollars that the runs below a root may cost together which no budget bounds, where a run of one of these runtimes is to
    /// start and costs something, or an agent asks for dollars for it. Of a runtime that is not named here nothing bounds them.
    #[must_use]
    pub fn default_usd(
        mut self,
        runtimes: impl IntoIterator<Item = (impl Into<String>, MicroUsd)>,
    ) -> Self {
        self.default_usd.extend(runtimes.into_iter().map(|(name, usd)| (name.into(), usd)));
        self
    }

    /// Names the runtimes of which the operator says that they cost nothing, whatever their runs report: a run of one has no part of the
    /// [dollars by default](Self::default_usd), unless an agent asks for dollars for it.
    #[must_use]
    pub fn free(mut self, runtimes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.free.extend(runtimes.into_iter().map(Into::into));
        self
    }

    /// The spawner. Fails where a temporary folder is needed and cannot be made.
    pub fn build(self) -> Result<Spawner, SpawnerError> {
        let Self { config, store, folder, mut runtimes, clock, .. } = self;
        let Self { ticket_issuer, workspaces, account_board, account_key, .. } = self;
        let Self { host_memory, host_slots, metered_if_asked, default_usd, free, .. } = self;
        metered_if_asked.iter().for_each(|name| runtimes.meter_if_asked(name, &config));
        for (name, usd) in default_usd {
            if let Some(facts) = runtimes.facts_mut(&name) {
                facts.default_usd = Some(usd);
            }
        }
        for name in free {
            if let Some(facts) = runtimes.facts_mut(&name) {
                facts.is_free = true;
            }
        }
        if let Some(key) = account_key {
            runtimes.tell_accounts(&key);
        }
        runtimes.tell_others();
        runtimes.know_fallbacks(&config);
        let folder = match folder {
            Some(folder) => folder,
            None => Arc::new(DataFolder::temporary()?),
        };
        let store = store.unwrap_or_else(|| Arc::new(offshoot_store::MemoryStore::new()));
        let clock = clock.unwrap_or_else(|| Arc::new(SystemClock));
        let surroundings = Surroundings {
            config,
            store,
            folder,
            runtimes: Arc::new(runtimes),
            clock,
            active: Arc::default(),
            ticket_issuer,
            workspaces,
            account_board,
            host_memory,
            host_slots,
        };
        Ok(Spawner { surroundings: Arc::new(surroundings) })
    }
}

impl RootSpec {
    /// The default agent, with this task, in the current folder of the process.
    pub fn new(task: impl Into<Arc<str>>) -> Self {
        Self {
            kind: RootKind::Run,
            agent: AgentId::main(),
            task: task.into(),
            label: None,
            context: Vec::new(),
            schema: None,
            isolation: None,
            // A process whose folder was removed under it has no better one than the root.
            run_spec: RunSpec::in_folder(
                std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
            ),
            plan: None,
        }
    }
}
