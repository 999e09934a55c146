//! Many pieces, one answer: fan-out, and the fold that merges as pieces end.

mod asking;
mod gathered;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use offshoot_merge::{Answer, MergeError, OnFailure, Strategy};
use offshoot_model::{
    AgentId, CancelledBy, Ending, Envelope, InputRange, Origin, Payload, Reason, Refusal,
    RefusalCode, RootId, RunId, SpawnRequest,
};
use offshoot_store::Store;
use tokio::sync::{mpsc, watch};

use crate::error::SpawnerError;
use crate::handle::external_merge::{ExternalMerge, ExternalMergeJob};
use crate::handle::gathering::Gathering;
use crate::handle::tree_state::over;
use crate::machine::RunIndex;
use crate::message::{FanEvent, FanId, Message, TreeState};
use crate::request::{Ask, Unresolved};
use crate::run_spec::RunSpec;
use crate::stored_values::StoredValues;
use crate::tree_context::TreeContext;

use gathered::Gathered;

/// The most bytes of the answers of pieces that are held until they are merged. Those of a hundred thousand would be
/// hundreds of megabytes, and each stands on record.
pub(crate) const HELD_BYTES: u64 = 32 << 20;

/// Pieces to run and how to merge what comes back.
#[derive(Clone, Debug)]
pub struct FanOut {
    /// Runtime, command and folder of pieces whose agent names none; those of the root where absent.
    pub run_spec: Option<RunSpec>,
    /// The pieces, in the order that the answer keeps.
    pub pieces: Vec<Piece>,
    /// The strategy that merges the results.
    pub strategy: Strategy,
    /// A merge that is not one of ours, which then goes before the strategy.
    pub external: Option<ExternalMerge>,
    /// The rule for pieces that did not complete.
    pub on_failure: OnFailure,
    /// Cancel the rest once more than so many pieces did not complete.
    pub max_fail: Option<u32>,
}

/// One piece.
#[derive(Clone, Debug)]
pub struct Piece {
    /// The request. Without a budget of its own the piece gets an equal part of what the root has left, less what the root
    /// keeps.
    pub request: SpawnRequest,
    /// The part of a file that it reads. No symbolic link is accepted on its path: [`offshoot_split::cut`] answers such paths.
    pub input: Option<InputRange>,
    /// The name of its result in the answer; its label where absent, else its number from 1.
    pub key: Option<Arc<str>>,
}

/// Pieces on their way.
pub struct Fan {
    id: FanId,
    root: RootId,
    store: Arc<dyn Store>,
    sender: mpsc::UnboundedSender<Message>,
    state: watch::Receiver<TreeState>,
    events: mpsc::UnboundedReceiver<FanEvent>,
    /// The names of the results, where they have one.
    keys: Vec<Option<Arc<str>>>,
    gathering: Gathering,
    on_failure: OnFailure,
    max_fail: Option<u32>,
}

/// The outcome of all pieces.
#[derive(Debug)]
pub struct FanAnswer {
    /// The name of the merge.
    pub strategy: String,
    /// The merged answer, or what there is of it.
    pub answer: Answer,
    /// Success if this is the answer to the request; else the reason why it is not.
    pub verdict: Result<(), MergeError>,
    /// The number of pieces.
    pub total: u32,
    /// The number of pieces that completed.
    pub completed: u32,
    /// The envelopes of the first of those that did not, in the order of the request, at most
    /// [`LISTED`](offshoot_merge::LISTED). Pieces that were cancelled because the answer stood without them did not fail.
    pub failures: Vec<(Arc<str>, Envelope)>,
    /// The number of pieces that did not complete, listed or not, by the code of their error.
    pub failed: BTreeMap<String, u32>,
    /// The first of those that were not even admitted, in the same way.
    pub refused: Vec<Refused>,
    /// The number of pieces that were not admitted, listed or not, by the code of their refusal.
    pub not_admitted: BTreeMap<RefusalCode, u32>,
    /// The reason for which the rest was cancelled, if it was.
    pub cut_short: Option<CancelledBy>,
    /// The tree of the pieces.
    pub root: RootId,
    /// The run of each piece, in the order of the request; the root itself for those that were not admitted. An answer that
    /// is too large to be held is read by these, see [`FanAnswer::values`].
    pub runs: Arc<[RunId]>,
    /// True if the answer stood before all pieces were over, so that no other piece is needed for it.
    pub early: bool,
    /// The rule for pieces that did not complete.
    pub on_failure: OnFailure,
}

/// A piece that was not admitted.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The name that its result would have had.
    pub key: Arc<str>,
    /// The answer it got.
    pub refusal: Refusal,
}

impl FanOut {
    /// Pieces whose answers are concatenated, and of which each has to complete.
    pub fn new(pieces: impl IntoIterator<Item = Piece>) -> Self {
        Self {
            run_spec: None,
            pieces: pieces.into_iter().collect(),
            strategy: Strategy::Concatenate,
            external: None,
            on_failure: OnFailure::Fail,
            max_fail: None,
        }
    }

    /// With another merge.
    #[must_use]
    pub fn merge(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// With a merge that is not one of ours.
    #[must_use]
    pub fn merge_by(mut self, external: ExternalMerge) -> Self {
        self.external = Some(external);
        self
    }

    /// With something else to become of pieces that did not complete.
    #[must_use]
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.on_failure = on_failure;
        self
    }

    /// With a way of its own to run the pieces.
    #[must_use]
    pub fn run_spec(mut self, run_spec: RunSpec) -> Self {
        self.run_spec = Some(run_spec);
        self
    }
}

impl Piece {
    /// A piece that is a task in words.
    pub fn task(task: impl Into<Arc<str>>) -> Self {
        SpawnRequest { task: task.into(), ..SpawnRequest::default() }.into()
    }

    /// For another agent than the root's.
    #[must_use]
    pub fn agent(mut self, agent: AgentId) -> Self {
        self.request.agent = Some(agent);
        self
    }

    /// With a short name, which is also that of its result where nothing else is.
    #[must_use]
    pub fn label(mut self, label: impl Into<Arc<str>>) -> Self {
        self.request.label = Some(label.into());
        self
    }

    /// With a name for its result.
    #[must_use]
    pub fn key(mut self, key: impl Into<Arc<str>>) -> Self {
        self.key = Some(key.into());
        self
    }
}

impl From<SpawnRequest> for Piece {
    fn from(request: SpawnRequest) -> Self {
        Self { request, input: None, key: None }
    }
}

impl Fan {
    pub(crate) async fn start(
        tree: &Arc<TreeContext>,
        sender: mpsc::UnboundedSender<Message>,
        state: watch::Receiver<TreeState>,
        order: FanOut,
    ) -> Result<Self, SpawnerError> {
        let FanOut { run_spec, pieces, strategy, external, on_failure, max_fail } = order;
        // Before anything runs: parameters that the merge cannot use cost nothing then.
        let job = match &external {
            Some(external) => {
                let begun = ExternalMergeJob::of_root(external, tree, &sender).await;
                Some(begun.map_err(|error| SpawnerError::Merge(Arc::new(error)))?)
            }
            None => None,
        };
        let run_spec = run_spec.map_or_else(|| Arc::clone(&tree.run_spec), Arc::new);
        let id = FanId(tree.mint());
        let first = tree.mint_places(pieces.len());
        let numbers = first..first + u32::try_from(pieces.len()).expect("fewer pieces than 2^32");
        let mut keys = Vec::with_capacity(pieces.len());
        let mut asks = Vec::with_capacity(pieces.len());
        for (place, piece) in (0_u32..).zip(pieces) {
            let Piece { request, input, key } = piece;
            keys.push(key.or_else(|| request.label.clone()));
            // Kept below, once it is known that each piece can be asked for.
            let task = Payload::Text(Arc::clone(&request.task));
            let unresolved = Unresolved {
                caller: RunIndex::ROOT,
                agent: &tree.agent,
                origin: Origin::Piece,
                request,
                input,
                run_spec: Arc::clone(&run_spec),
                place,
            };
            let chosen = tree.chosen.get().and_then(|chosen| chosen.get(&(first + place)));
            let ask = unresolved.resolve_as(chosen, task, tree);
            let ask = ask.map_err(|refusal| SpawnerError::Refused(Box::new(refusal)))?;
            asks.push(Ask { number: Some(first + place), ..ask });
        }
        // Unbounded, because the supervisor must not wait for a merge; each piece is told of once.
        let (follower, events) = mpsc::unbounded_channel();
        let asked = asking::all(asks, tree, |asks, permit| {
            let follower = follower.clone();
            let caller = RunIndex::ROOT;
            let numbers = numbers.clone();
            let message = Message::Fan { id, caller, asks, follower, max_fail, numbers, permit };
            sender.send(message).map_err(|_| over(&state))
        });
        asked.await.inspect_err(|error| {
            // The record ends here, so that a later supervisor can ask for the pieces again.
            if let SpawnerError::Store(error) = error {
                let _ = sender.send(Message::Halt { error: error.clone() });
            }
        })?;
        let values = StoredValues::new(Arc::clone(&tree.store));
        let gathering = match external.zip(job) {
            Some((external, job)) => Gathering::by_job(&external, job, on_failure, values),
            None => Gathering::by_strategy(strategy, on_failure, values).hold_at_most(HELD_BYTES),
        };
        let (root, store) = (tree.root, Arc::clone(&tree.store));
        Ok(Self { id, root, store, sender, state, events, keys, gathering, on_failure, max_fail })
    }

    /// Waits for the pieces and merges them as they end. Dropping the future leaves the pieces running: cancel them,
    /// or close the session.
    ///
    /// # Errors
    ///
    /// Fails if the record breaks, or does not give back what came of a piece in an earlier life of the tree: the tree can be
    /// resumed then.
    pub async fn answer(self) -> Result<FanAnswer, SpawnerError> {
        Gathered::from(self).answer().await
    }
}

impl FanAnswer {
    /// Returns the values that the answer is written with, from the store of its tree.
    pub fn values(&self, store: Arc<dyn Store>) -> StoredValues {
        StoredValues::new(store).with_results_of(self.root, Arc::clone(&self.runs))
    }

    /// True if this is the answer to what was asked. An answer that stood early needs no other piece, so it does not
    /// matter what became of the others, or whether they were admitted. What was cut short for its failures did not do
    /// what it was asked, even if failures may be left out of the answer.
    pub fn is_success(&self) -> bool {
        let nothing_missing = match self.on_failure {
            OnFailure::Fail => self.not_admitted.is_empty(),
            OnFailure::Skip => self.completed > 0 || self.missing() == 0,
            OnFailure::Include => true,
        };
        self.cut_short != Some(CancelledBy::MaxFail)
            && self.verdict.is_ok()
            && (self.early || nothing_missing)
    }

    /// Returns the number of pieces that did not complete, or were not admitted. Those that were cancelled because the
    /// answer stands without them do not count.
    pub fn missing(&self) -> u32 {
        self.failed.values().chain(self.not_admitted.values()).sum()
    }

    /// Returns the ending of the root that held the pieces, without its output:
    /// [`Session::conclude`](crate::Session::conclude) keeps that.
    pub fn ending(&self) -> Ending {
        let reason = if self.cut_short == Some(CancelledBy::MaxFail) {
            Reason::Cancelled { by: CancelledBy::MaxFail }
        } else if self.is_success() {
            Reason::Completed { exit_code: None }
        } else if let Err(error @ MergeError::InputChanged { .. }) = &self.verdict {
            Reason::RuntimeError { message: error.to_string(), retryable: false }
        } else {
            Reason::PiecesFailed { failed: self.missing(), total: self.total }
        };
        Ending::of(reason)
    }
}

impl fmt::Debug for Fan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fan").field("pieces", &self.keys.len()).finish_non_exhaustive()
    }
}
