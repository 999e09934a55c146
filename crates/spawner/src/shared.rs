//! What everybody in one tree needs and nobody changes.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use offshoot_config::{Config, CostKind};
use offshoot_model::{
    Envelope, InputRange, Origin, Payload, Refusal, RootId, RunId, SpawnRequest, ValueKind,
};
use offshoot_policy::RuntimeFacts;
use offshoot_runtime::{Abilities, CostKnowledge, Runtime};
use offshoot_store::{DataFolder, NewValue, Store, StoreError};

use crate::agent::chain;
use crate::clock::Clock;
use crate::machine::{RunIndex, WaitId};
use crate::supervisor::{Ask, FanId};
use crate::work::Work;

/// Tasks up to this size stand in the record as they are. Pieces of a map repeat theirs, so longer ones are kept once
/// and named.
const INLINE_TASK_BYTES: usize = 256;

/// One tree's surroundings.
pub(crate) struct Shared {
    pub(crate) root: RootId,
    pub(crate) config: Config,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) folder: Arc<DataFolder>,
    pub(crate) spool_folder: Arc<PathBuf>,
    pub(crate) clock: Arc<dyn Clock>,
    /// How runs are run that their request and their agent leave open.
    pub(crate) work: Arc<Work>,
    pub(crate) runtimes: Arc<Runtimes>,
    pub(crate) minted: AtomicU64,
    pub(crate) active: Arc<Gauge>,
}

/// How many runs hold a slot, over all trees of a spawner. Each supervisor adds what has changed in its own.
#[derive(Debug, Default)]
pub(crate) struct Gauge(AtomicUsize);

impl Gauge {
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn change(&self, before: u32, after: u32) {
        // Wraps on the way down, which is what subtraction is in this arithmetic.
        let change = (after as usize).wrapping_sub(before as usize);
        self.0.fetch_add(change, Ordering::Relaxed);
    }
}

/// The runtimes of a spawner, by name, with what policy must know of each.
#[derive(Default)]
pub(crate) struct Runtimes {
    by_name: HashMap<Arc<str>, (Arc<dyn Runtime>, Arc<RuntimeFacts>)>,
    default: Option<Arc<str>>,
}

impl Runtimes {
    /// The first one is the default.
    pub(crate) fn insert(&mut self, runtime: Arc<dyn Runtime>) {
        let name: Arc<str> = runtime.name().into();
        let facts = Arc::new(facts(&name, &*runtime));
        self.default.get_or_insert_with(|| Arc::clone(&name));
        self.by_name.insert(name, (runtime, facts));
    }

    fn get(&self, name: Option<&str>) -> Option<&(Arc<dyn Runtime>, Arc<RuntimeFacts>)> {
        self.by_name.get(name.or(self.default.as_deref())?)
    }

    fn names(&self) -> String {
        let mut names: Vec<&str> = self.by_name.keys().map(|name| &**name).collect();
        names.sort_unstable();
        names.join(", ")
    }
}

impl Shared {
    pub(crate) fn mint_wait(&self) -> WaitId {
        WaitId(self.minted.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn mint_fan(&self) -> FanId {
        FanId(self.minted.fetch_add(1, Ordering::Relaxed))
    }

    /// Finds out what a request leaves open: the runtime, the command, and how the record keeps the task.
    pub(crate) async fn resolve(
        &self,
        caller: RunIndex,
        mut request: SpawnRequest,
        input: Option<InputRange>,
        origin: Origin,
        work: Arc<Work>,
        place: u32,
    ) -> Result<Ask, Refusal> {
        let (runtime, facts) = self.runtime(&mut request, &work)?;
        let task = self.task_for_record(&request.task).await.map_err(|error| {
            Refusal::invalid("task", format!("the task cannot be recorded: {}", chain(&error)))
        })?;
        Ok(Ask { caller, request, task, input, origin, work, runtime, facts, place })
    }

    /// The runtime of a request: the command of its agent or caller decides for `exec`, then the work, then the agent,
    /// then the default.
    pub(crate) fn runtime(
        &self,
        request: &mut SpawnRequest,
        work: &Work,
    ) -> Result<(Arc<dyn Runtime>, Arc<RuntimeFacts>), Refusal> {
        let definition = request.agent.as_ref().and_then(|agent| self.config.agent(agent));
        let chosen = if request.command.is_some() {
            Some("exec")
        } else {
            work.runtime
                .as_deref()
                .or_else(|| definition?.runtime.as_ref().map(|runtime| runtime.value.as_str()))
        };
        match self.runtimes.get(chosen) {
            Some((runtime, facts)) => Ok((Arc::clone(runtime), Arc::clone(facts))),
            None => {
                let wanted = chosen.unwrap_or("a default");
                let message = format!("there is no runtime `{wanted}` here");
                let hint = format!("runtimes here: {}", self.runtimes.names());
                Err(Refusal::invalid("runtime", message).with_hint(hint))
            }
        }
    }

    /// The task as the record keeps it: itself while it is short, else stored once and named.
    pub(crate) async fn task_for_record(&self, task: &Arc<str>) -> Result<Payload, StoreError> {
        if task.len() <= INLINE_TASK_BYTES {
            return Ok(Payload::Text(Arc::clone(task)));
        }
        let bytes: Arc<[u8]> = Arc::from(Arc::clone(task));
        self.store.put(NewValue::bytes(ValueKind::Text, bytes)).await.map(Payload::Stored)
    }

    /// The envelopes of runs that are over, in this order, from the record.
    pub(crate) async fn envelopes(self: &Arc<Self>, runs: Vec<RunId>) -> Vec<Envelope> {
        let shared = Arc::clone(self);
        let envelope = move |run: RunId| {
            let about = shared.store.admitted(run).ok()??;
            let ending = shared.store.ending(run).ok()??;
            Some(Envelope::of(&ending, about.key, run, about.agent, about.depth))
        };
        let load = move || runs.into_iter().filter_map(envelope).collect();
        tokio::task::spawn_blocking(load).await.expect("reading the record does not panic")
    }
}

/// A runtime as far as limits are concerned.
fn facts(name: &Arc<str>, runtime: &dyn Runtime) -> RuntimeFacts {
    let Abilities { cost, turns: _, resumes: _, enforces } = runtime.abilities();
    let cost = match cost {
        CostKnowledge::None => CostKind::None,
        CostKnowledge::Reported => CostKind::Reported,
        CostKnowledge::Bounded => CostKind::Bounded,
        CostKnowledge::Unknown => CostKind::Unknown,
    };
    RuntimeFacts { name: Arc::clone(name), cost, enforces }
}
