//! Parts that all modules of one tree share: record, folder, clock, configuration.

mod answers;
mod copies;
mod known_tree;
mod merge_threads;
mod past_tasks;
mod surroundings;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use offshoot_config::Config;
use offshoot_model::{
    Admitted, AgentId, AgentSummary, ContextEntry, Envelope, Need, Payload, RootId, RunId,
    ValueKind, error_chain,
};
use offshoot_store::{NewValue, Outcome, OutputKeeper, SharedContexts, StoreError};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};

use crate::announce::{Announced, Announcement};
use crate::blocking::blocking;
use crate::clock::Clock;
use crate::excerpt::Excerpt;
use crate::kept_values::ValuesBySession;
use crate::run_spec::RunSpec;
use crate::stored_values::recorded_all;
use crate::workspaces::Workplaces;

pub(crate) use answers::Answers;
pub(crate) use copies::Copies;
pub(crate) use known_tree::KnownTree;
pub(crate) use merge_threads::MergeThreads;
pub(crate) use past_tasks::PastTasks;
pub use past_tasks::read_past_tasks;
pub(crate) use surroundings::{HostMemorySource, Surroundings};

/// Of a task that several runs have in common, this much stands in the record of each. A longer one is kept once and
/// named.
const COMMON_TASK_BYTES: usize = 256;

/// Answers up to this size travel and are recorded inline; larger ones are named. A row of the database stays within
/// a page of 4 KiB, and a thousand of them in a merge stay within a few megabytes.
pub(crate) const INLINE_BYTES: usize = Need::COPIED_BYTES as usize;

/// One tree's surroundings, with those of all trees at hand as its own.
#[derive(derive_more::Deref)]
pub(crate) struct TreeContext {
    #[deref]
    pub(crate) around: Arc<Surroundings>,
    pub(crate) root: RootId,
    /// The root's agent.
    pub(crate) agent: AgentId,
    pub(crate) spool_folder: Arc<PathBuf>,
    /// The clock of the tree, which never goes back behind its record.
    pub(crate) clock: Arc<dyn Clock>,
    /// Runtime, command and folder of runs whose request and agent name none.
    pub(crate) run_spec: Arc<RunSpec>,
    pub(crate) minted: AtomicU64,
    /// The number of pieces that the owner has asked for.
    pub(crate) places: AtomicU32,
    /// True while runs wait for memory.
    pub(crate) memory_short: watch::Sender<bool>,
    pub(crate) workplaces: Workplaces,
    /// Context values of running agents, by run, for runs that were given any. An agent may ask for its values again, and hand
    /// them on.
    pub(crate) contexts: Mutex<HashMap<RunId, Arc<[ContextEntry]>>>,
    /// The folders in which its runs see what they are given.
    pub(crate) shared_contexts: SharedContexts,
    /// Answers for runs that need them.
    pub(crate) answers: Answers,
    /// The values that answers were stored as.
    pub(crate) copies: Copies,
    pub(crate) kept_values: Mutex<ValuesBySession>,
    /// Observations, where tasks are handed on by them.
    pub(crate) past_tasks: PastTasks,
    pub(crate) known: KnownTree,
    /// Of a tree that was read back: what pieces were admitted with, by their place.
    pub(crate) chosen: OnceLock<HashMap<u32, Chosen>>,
    /// Places for lines of progress on their way to the supervisor.
    pub(crate) progress: Arc<Semaphore>,
    /// Turns to read what came of runs: a thread for each of a thousand waits that end at once would be in the way of the others.
    pub(crate) reads: Semaphore,
    /// Threads for external merges.
    pub(crate) merging: MergeThreads,
    /// The keeper of what its agents say.
    pub(crate) outputs: OutputKeeper,
}

/// The choices that were made for a run when it was admitted, as its record says.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    pub(crate) runtime: Arc<str>,
    pub(crate) model: Option<String>,
    pub(crate) thinking: Option<String>,
}

impl Chosen {
    /// None for a root that runs nothing itself.
    pub(crate) fn of(admitted: &Admitted) -> Option<Self> {
        let runtime = admitted.runtime.clone()?;
        let particulars = admitted.particulars.as_deref();
        let model = particulars.and_then(|particulars| particulars.model.clone());
        let thinking = particulars.and_then(|particulars| particulars.thinking.clone());
        Some(Self { runtime, model, thinking })
    }
}

/// An agent in a few words, for one that runs `asking`.
pub(crate) fn summary(id: &AgentId, asking: &AgentId, config: &Config) -> AgentSummary {
    let description = config.agent(id).and_then(|agent| agent.description.as_ref());
    let preferred = config.agent(asking).and_then(|agent| agent.preferred_subagents.as_ref());
    let mut reasons = preferred.iter().flat_map(|preferred| preferred.value.reasons());
    AgentSummary {
        id: id.clone(),
        description: description.map(|description| description.value.as_str().into()),
        why: reasons.find(|(agent, _)| *agent == id).map(|(_, why)| why.into()),
    }
}

/// More lines of progress than this on their way to the supervisor at once are nothing that a reader could follow. Each
/// has a permit, which comes back when the line is taken; an agent that prints faster than its lines are taken gets none,
/// and its line is dropped.
pub(crate) const PROGRESS_LINES: usize = 1024;

/// The number of readings of the record for waits at once: as many as a store keeps connections for.
pub(crate) const READS: usize = 4;

/// The number of runs that hold a slot, over all trees of a spawner.
#[derive(Debug, Default)]
pub(crate) struct Gauge(AtomicUsize);

/// The part of a gauge that one tree counts. It goes with its supervisor, however that ends.
#[derive(Debug)]
pub(crate) struct Share {
    gauge: Arc<Gauge>,
    counted: usize,
}

impl Gauge {
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// A share that counts nothing yet.
    pub(crate) fn share(self: &Arc<Self>) -> Share {
        Share { gauge: Arc::clone(self), counted: 0 }
    }
}

impl Share {
    pub(crate) fn set(&mut self, count: usize) {
        match count.checked_sub(self.counted) {
            Some(more) => self.gauge.0.fetch_add(more, Ordering::Relaxed),
            None => self.gauge.0.fetch_sub(self.counted - count, Ordering::Relaxed),
        };
        self.counted = count;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

impl TreeContext {
    /// A number that was never given before in this tree.
    pub(crate) fn mint(&self) -> u64 {
        self.minted.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the settings of a child of a run that asks for this agent, in this folder where one is named; else in the folder that
    /// the definition of the agent names. Nothing below a run with a folder of its own leaves that.
    pub(crate) fn run_spec_for(
        &self,
        caller: RunId,
        agent: &AgentId,
        folder: Option<PathBuf>,
    ) -> Arc<RunSpec> {
        // Children whose request names no folder work where the run works.
        let run_spec = self.run_spec.moved_to(self.workplaces.of(caller));
        // A program that asks in its own folder asks for no other one.
        let folder = folder.filter(|folder| *folder != *run_spec.working_folder);
        let own = || {
            let folder = self.config.agent(agent)?.cwd.as_ref()?;
            let usual = &self.run_spec.working_folder;
            let is_apart = self.workplaces.is_apart(caller);
            (!is_apart).then(|| folder.origin.project().unwrap_or(usual).join(&folder.value))
        };
        run_spec.moved_to(folder.or_else(own).map(Arc::new))
    }

    /// Places for so many more pieces; answers the first. A later start that asks for the same pieces in the same order
    /// gives them the same places.
    pub(crate) fn mint_places(&self, many: usize) -> u32 {
        let many = u32::try_from(many).expect("a request has fewer than 2^32 pieces");
        self.places.fetch_add(many, Ordering::Relaxed)
    }

    /// A task of one run, or a letter, as the record keeps it: itself while it is short, else stored once and named. A
    /// file of its own costs two flushes, and so more than the text in the record.
    pub(crate) async fn task_for_record(&self, task: &Arc<str>) -> Result<Payload, StoreError> {
        self.task_up_to(task, INLINE_BYTES).await
    }

    /// True if a task of one run is too long for the record.
    pub(crate) fn is_kept_as_file(&self, task: &str) -> bool {
        task.len() > INLINE_BYTES
    }

    /// A task that several runs have in common, as the record keeps it.
    pub(crate) async fn common_task(&self, task: &Arc<str>) -> Result<Payload, StoreError> {
        self.task_up_to(task, COMMON_TASK_BYTES).await
    }

    async fn task_up_to(&self, task: &Arc<str>, inline: usize) -> Result<Payload, StoreError> {
        if task.len() <= inline {
            return Ok(Payload::Text(Arc::clone(task)));
        }
        let bytes: Arc<[u8]> = Arc::from(Arc::clone(task));
        self.store.put(NewValue::bytes(ValueKind::Text, bytes)).await.map(Payload::Stored)
    }

    /// The results of runs that are over, for a prompt, each within so many bytes. What cannot be read at the moment is
    /// named, with the reason.
    pub(crate) async fn announced(self: &Arc<Self>, runs: Vec<RunId>, limit: u64) -> Announcement {
        let tree = Arc::clone(self);
        let announce = move |tree: &Self, run: RunId, (about, ending): Outcome| {
            let output = ending.output.as_ref();
            let result = output.map(|output| Excerpt::of(&*tree.store, output, limit)).transpose();
            let result = result.map_err(|error| error_chain(&error));
            let Admitted { key, agent, depth, label, .. } = about;
            let envelope = Envelope::of(&ending, key, run, agent, depth);
            Announced { envelope, label, repeated: false, result }
        };
        let load = move || {
            let mut announcement = Announcement::default();
            let outcomes = tree.store.outcomes(tree.root, &runs);
            for (outcome, run) in outcomes.into_iter().zip(runs) {
                match outcome {
                    Ok(Some(outcome)) => {
                        announcement.announced.push(announce(&tree, run, outcome));
                    }
                    Ok(None) => {
                        announcement.unread.push((run, "it has no end on record".to_owned()))
                    }
                    Err(error) => announcement.unread.push((run, error_chain(&error))),
                }
            }
            announcement
        };
        let _turn = self.reads.acquire().await.expect("it is never closed");
        blocking(load).await
    }

    /// The envelopes of runs that are over, in this order, from the record. A run whose record cannot be read at the
    /// moment is answered as itself: a later request may succeed.
    pub(crate) async fn envelopes(
        self: &Arc<Self>,
        runs: Vec<RunId>,
    ) -> (Vec<Envelope>, Vec<RunId>) {
        let tree = Arc::clone(self);
        let load = move || {
            let (mut envelopes, mut unread) = (Vec::with_capacity(runs.len()), Vec::new());
            for (envelope, run) in recorded_all(&*tree.store, tree.root, &runs).zip(&runs) {
                match envelope {
                    Ok(Some(envelope)) => envelopes.push(envelope),
                    Ok(None) | Err(_) => unread.push(*run),
                }
            }
            (envelopes, unread)
        };
        let _turn = self.reads.acquire().await.expect("it is never closed");
        blocking(load).await
    }
}
