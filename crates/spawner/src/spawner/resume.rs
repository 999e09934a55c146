//! A tree whose supervisor has gone, held by a new one.

use std::collections::HashMap;
use std::sync::Arc;

use offshoot_model::{
    Admitted, AgentId, InputRange, Origin, Payload, PiecesAgain, RootId, SpawnRequest,
};
use offshoot_policy::budget::{Balance, Unit};
use offshoot_policy::{Fallback, RuntimeFacts};
use offshoot_store::{RootLock, Store, StoreError};

use crate::announce;
use crate::blocking::blocking;
use crate::clock::Onward;
use crate::error::SpawnerError;
use crate::handle::{HELD_BYTES, Piece, Session};
use crate::machine::{
    EndedPiece, Library, NewLimits, Recall, Recalled, RunIndex, Unanswered, Waiting,
};
use crate::request::{Prepared, Unresolved};
use crate::run_spec::RunSpec;
use crate::spawner::{Begin, RootSpec, Spawner, share};
use crate::supervisor::{Entering, Recorded, RecordedPieces};
use crate::tree_context::{Chosen, Surroundings, TreeContext};
use crate::workspaces::LeftChanges;

/// A tree whose supervisor has gone: held, and read back. Nothing of it goes on and nothing is written to its record until it is
/// [resumed](Self::resume); where this is dropped, it is as it was.
#[derive(derive_more::Debug)]
#[debug("AbandonedTree({root})")]
pub struct AbandonedTree {
    spawner: Spawner,
    root: RootId,
    lock: RootLock,
    recall: Recall,
}

impl Spawner {
    /// Holds a tree whose supervisor has gone and reads its record back, once. Must be called inside a tokio runtime.
    ///
    /// # Errors
    ///
    /// Fails if the tree is held already, if nothing of it is alive any more ([`SpawnerError::Over`]), if the runtime of
    /// a run that would go on is not here ([`SpawnerError::RuntimeMissing`]), or if its record cannot be read.
    pub async fn abandoned(&self, root: RootId) -> Result<AbandonedTree, SpawnerError> {
        self.abandoned_to_cancel(root).await?.with_runtimes()
    }

    /// Holds such a tree to [cancel](AbandonedTree::cancel) it: the runtimes of its runs need not be here. Must be called inside a tokio
    /// runtime.
    ///
    /// # Errors
    ///
    /// As [`abandoned`](Self::abandoned), but for missing runtimes.
    pub async fn abandoned_to_cancel(&self, root: RootId) -> Result<AbandonedTree, SpawnerError> {
        let tree = self.read_back(root, HELD_BYTES).await?;
        match tree.recall.is_over() {
            true => Err(SpawnerError::Over),
            false => Ok(tree),
        }
    }

    /// Holds a tree whose root is over and holds pieces, to go on with it: its root is reopened, and pieces without an answer run
    /// again, each as a new run that names the one in whose place it is. What has ended stays as it is, and what was used stays
    /// used. Nothing is written before the tree is [resumed](AbandonedTree::resume). Must be called inside a tokio runtime.
    ///
    /// # Errors
    ///
    /// As [`abandoned`](Self::abandoned), and [`SpawnerError::NotReopened`] where the tree cannot go on in this way.
    pub async fn ended(
        &self,
        root: RootId,
        again: PiecesAgain,
    ) -> Result<AbandonedTree, SpawnerError> {
        let mut tree = self.read_back(root, HELD_BYTES).await?;
        tree.recall.go_on(again).map_err(SpawnerError::NotReopened)?;
        tree.with_runtimes()
    }

    /// Takes over a tree whose supervisor has gone: reads its record back, and goes on with what was alive. What had
    /// ended is not run again. Must be called inside a tokio runtime.
    ///
    /// `spec` says again what the tree was opened with; its task, label and context stand in the record. A root that
    /// holds pieces goes on with them once its owner asks for the same pieces in the same order
    /// ([`Session::fan_out`]): those that have ended answer at once.
    ///
    /// # Errors
    ///
    /// As [`abandoned`](Self::abandoned), and as [`AbandonedTree::resume`].
    pub async fn resume(&self, root: RootId, spec: RootSpec) -> Result<Session, SpawnerError> {
        self.abandoned(root).await?.resume(spec).await
    }

    /// Reads a tree back, and holds so many bytes of what came of its pieces.
    async fn read_back(&self, root: RootId, room: u64) -> Result<AbandonedTree, SpawnerError> {
        let around = &self.surroundings;
        let lock = around.folder.hold(root)?;
        let library = Arc::clone(around);
        let recall = blocking(move || read(root, room, &library)).await?;
        Ok(AbandonedTree { spawner: self.clone(), root, lock, recall })
    }
}

impl AbandonedTree {
    /// Makes sure that the runtime of each run that would go on is here.
    fn with_runtimes(self) -> Result<Self, SpawnerError> {
        let Some((run, runtime)) = self.recall.missing_runtime() else { return Ok(self) };
        let here = self.spawner.surroundings.runtimes.names();
        Err(SpawnerError::RuntimeMissing { run, runtime, here })
    }

    /// The tree.
    pub fn root(&self) -> RootId {
        self.root
    }

    /// Counts the pieces without an answer, of so many in all.
    pub fn unanswered(&self, total: usize) -> Unanswered {
        let over = self.recall.unanswered();
        let never_started = total.saturating_sub(self.recall.pieces());
        Unanswered { again: over.again + never_started, ..over }
    }

    /// Returns the places of the pieces that would not run, counted from 0 in the order of the request, and true of those with an answer.
    pub fn staying(&self) -> Vec<(u32, bool)> {
        self.recall.staying()
    }

    /// Returns the label of the only pieces that may start of those that never did, where they were chosen by one.
    pub fn only(&self) -> Option<&Arc<str>> {
        self.recall.only()
    }

    /// Returns true if the root goes on; false of one that was cut off and cannot be repeated.
    pub fn root_goes_on(&self) -> bool {
        self.recall.root_goes_on()
    }

    /// Returns the balance of the whole tree in each unit that a budget bounds, as its record has it, with what it was [given](Self::give) more.
    pub fn budget(&self) -> Vec<(Unit, Balance)> {
        self.recall.budget()
    }

    /// Gives a tree that is over these limits.
    ///
    /// # Errors
    ///
    /// [`SpawnerError::NotReopened`] where it would have no time left or nothing to spend.
    pub fn give(&mut self, limits: NewLimits) -> Result<(), SpawnerError> {
        self.recall.give(limits).map_err(SpawnerError::NotReopened)
    }

    /// Makes sure that these pieces read what the pieces on record have read or would have read.
    ///
    /// # Errors
    ///
    /// [`SpawnerError::InputChanged`] with the first part of a file that is not what it was.
    pub fn check_inputs(&self, pieces: &[Piece]) -> Result<(), SpawnerError> {
        // The hash says more than the path, which earlier versions have recorded as it was asked for.
        let bytes = |range: &InputRange| (range.offset, range.length, range.header, range.hash);
        let is = |place: u32| pieces.get(place as usize)?.input.as_ref().map(bytes);
        let changed =
            self.recall.inputs().iter().find(|(place, was)| is(*place) != Some(bytes(was)));
        changed.map_or(Ok(()), |(_, was)| Err(SpawnerError::InputChanged(was.clone())))
    }

    /// Goes on with what was alive, see [`Spawner::resume`]. Must be called inside a tokio runtime.
    ///
    /// # Errors
    ///
    /// Fails if what an earlier attempt has left cannot be removed, or if what the record names cannot be read.
    pub async fn resume(self, spec: RootSpec) -> Result<Session, SpawnerError> {
        let Self { spawner, root, lock, mut recall } = self;
        let around = &spawner.surroundings;
        let RootSpec { agent, run_spec, .. } = spec;
        let clock = Onward::from(&around.clock, recall.last_at());
        let tree = spawner.tree_context(root, &agent, &Arc::new(run_spec), clock);
        recall.left(left_changes(&tree).await?);
        let host = share(recall.machine_mut(), &tree)?;
        let Recalled { machine, effects, waiting, over, again, only, ending, kept_values } =
            recall.reopen(tree.clock.now());
        *tree.kept_values.lock() = kept_values;
        // The output of runs that were interrupted before they answered is removed. They begin a new file.
        around.folder.remove_output_of(|run| machine.find(run).is_some())?;
        let mut recorded = RecordedPieces::default().with_again(again, only);
        for (place, run, past) in over {
            recorded.insert(place, Recorded::Over { run, past });
        }
        for EndedPiece { place, run, unneeded } in ending {
            recorded.insert(place, Recorded::Ending { run, unneeded });
        }
        let (mut entering, mut chosen) = (Vec::new(), HashMap::new());
        for Waiting { run, admitted, continues, letters } in waiting {
            let letters = read_letters(letters, &tree).await?;
            let choice = Chosen::of(&admitted).expect("a run without a runtime was admitted");
            match (admitted.origin, admitted.place) {
                (Origin::Piece, Some(place)) => {
                    recorded.insert(place, Recorded::Lives { run, letters, continues });
                    chosen.insert(place, choice);
                }
                (Origin::Piece, None) => {}
                (Origin::Root | Origin::Agent, _) => {
                    let launch = prepare(admitted, continues, &choice, &tree).await?;
                    entering.push(Entering { run, launch, letters });
                }
            }
        }
        let before = tree.chosen.set(chosen);
        before.expect("a tree is read back once");
        let runs = entering.iter().any(|entering| entering.run == RunIndex::ROOT);
        Ok(Begin { machine, effects, runs, lock, host }.begin(tree, entering, recorded))
    }

    /// Ends it: nothing of it is started, and each run that was alive ends as cancelled by the operator. It is over once
    /// [`Session::ended`] answers. Must be called inside a tokio runtime.
    ///
    /// # Errors
    ///
    /// Fails if what an earlier attempt has left cannot be brought back or removed.
    pub async fn cancel(self) -> Result<Session, SpawnerError> {
        let Self { spawner, root, lock, mut recall } = self;
        let folder = &spawner.surroundings.folder;
        let clock = Onward::from(&spawner.surroundings.clock, recall.last_at());
        // Nothing starts in this folder.
        let run_spec = Arc::new(RunSpec::in_folder("/"));
        let tree = spawner.tree_context(root, recall.agent(), &run_spec, clock);
        recall.left(left_changes(&tree).await?);
        let Recalled { machine, effects, .. } = recall.cancel(tree.clock.now());
        // Output of runs that were interrupted before they answered.
        folder.remove_output_of(|run| machine.find(run).is_some())?;
        let begin = Begin { machine, effects, runs: false, lock, host: None };
        Ok(begin.begin(tree, Vec::new(), RecordedPieces::default()))
    }
}

/// Brings back what interrupted runs have changed in folders of their own.
async fn left_changes(tree: &TreeContext) -> Result<LeftChanges, SpawnerError> {
    let Some(workspaces) = &tree.workspaces else { return Ok(LeftChanges::default()) };
    let left = workspaces.left(tree.root).await;
    let mut left = left.map_err(|message| SpawnerError::Changes { message })?;
    let mut recorded = Vec::new();
    for &run in left.keys() {
        match tree.store.ending(tree.root, run)? {
            Some(_) => recorded.push(run),
            None => tree.workplaces.left(run),
        }
    }
    for run in recorded {
        left.remove(&run);
        workspaces.discard(run).await;
    }
    Ok(left)
}

/// Letters that are handed over again, as they read then.
async fn read_letters(
    letters: Vec<Payload>,
    tree: &TreeContext,
) -> Result<Vec<Arc<str>>, SpawnerError> {
    if letters.is_empty() {
        return Ok(Vec::new());
    }
    let store = Arc::clone(&tree.store);
    let read = move || {
        let again = |letter| Ok(announce::letter_again(&text_of(&*store, letter)?));
        letters.iter().map(again).collect::<Result<_, StoreError>>()
    };
    Ok(blocking(read).await?)
}

fn read(root: RootId, room: u64, around: &Surroundings) -> Result<Recall, SpawnerError> {
    let admitted = around.store.admitted(root, root.run())?.ok_or(SpawnerError::Over)?;
    let mut recall = Recall::new(around.config.clone(), root, &admitted, room);
    for event in around.store.events(root, 0) {
        recall.apply(event?, around).map_err(SpawnerError::Unknown)?;
    }
    Ok(recall)
}

/// Prepares the next start of a run from the record of its admission.
async fn prepare(
    admitted: Box<Admitted>,
    continues: bool,
    chosen: &Chosen,
    tree: &Arc<TreeContext>,
) -> Result<Box<Prepared>, SpawnerError> {
    let Admitted { agent, origin, label, task, particulars, input, .. } = *admitted;
    let particulars = particulars.unwrap_or_default();
    let (text, store) = (task.clone(), Arc::clone(&tree.store));
    let text = blocking(move || text_of(&*store, &text)).await;
    let request = SpawnRequest {
        task: text?,
        agent: Some(agent.clone()),
        label,
        context: particulars.context,
        command: particulars.command,
        ok_exit: particulars.ok_exit,
        output: particulars.output,
        schema: particulars.schema,
        isolation: particulars.isolation,
        ..SpawnRequest::default()
    };
    let run_spec = tree.run_spec.moved_to(particulars.folder);
    let asked = Unresolved::of_root(&agent, origin, request, run_spec);
    let ask = asked.resolve_as(Some(chosen), task, tree)?;
    Ok(Box::new(Prepared { input: input.map(Box::new), continues, ..*ask.prepared() }))
}

fn text_of(store: &dyn Store, task: &Payload) -> Result<Arc<str>, StoreError> {
    Ok(match task {
        Payload::Text(text) => Arc::clone(text),
        Payload::Json(json) => json.as_str().into(),
        Payload::Stored(value) => String::from_utf8_lossy(&store.read(value)?).into(),
    })
}

impl Library for Surroundings {
    fn facts(&self, runtime: &str) -> Option<Arc<RuntimeFacts>> {
        self.runtimes.get(Some(runtime)).map(|known| Arc::clone(&known.facts))
    }

    fn fallbacks(&self, agent: &AgentId, on: &str) -> Option<Arc<[Fallback]>> {
        self.runtimes.fallbacks(agent, on)
    }

    fn task(&self, task: &Payload) -> Arc<str> {
        // The text only serves to recognise the same task higher up in the chain.
        text_of(&*self.store, task).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
