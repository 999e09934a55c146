//! Many pieces, one answer: fan-out, and the fold that merges as pieces end.

mod asker;
mod asking;
mod chains;
mod gathered;

use std::collections::BTreeMap;
use std::sync::Arc;

use offshoot_merge::{Answer, Asking, MergeError, OnFailure, Strategy};
use offshoot_model::{
    CancelledBy, Chosen, Ending, Envelope, InputRange, OnNeedFailed, Origin, Payload, Reason,
    Refusal, RefusalCode, RootId, RunId, SpawnRequest,
};
use offshoot_policy::needs;
use offshoot_store::Store;
use tokio::sync::{mpsc, watch};

use crate::error::SpawnerError;
use crate::handle::asked_merge::{AskedMerge, HELD_BYTES};
use crate::handle::external_merge::{ExternalMerge, ExternalMergeJob};
use crate::handle::gathering::Gathering;
use crate::handle::tree_state::over;
use crate::machine::{NeededPiece, RunIndex};
use crate::message::link::Link;
use crate::message::{FanEvent, FanId, Message, TreeState};
use crate::request::{Ask, Unresolved};
use crate::run_spec::RunSpec;
use crate::stored_values::StoredValues;

use chains::Chains;
use gathered::Gathered;

/// Pieces to run and how to merge what comes back.
#[derive(Clone, Debug)]
pub struct FanOut {
    /// Runtime, command and folder of pieces whose agent names none; those of the root where absent.
    pub run_spec: Option<RunSpec>,
    /// The pieces, in the order that the answer keeps.
    pub pieces: Vec<Piece>,
    /// Results that are there before anything runs, with their names. They are merged before those of the pieces.
    pub results: Vec<(Arc<str>, Payload)>,
    /// The strategy that merges the results.
    pub strategy: Strategy,
    /// A merge that is not one of ours, which then goes before the strategy.
    pub external: Option<ExternalMerge>,
    /// A merge that asks an agent or a program once all pieces are over, which then goes before the strategy.
    pub asking: Option<Asking>,
    /// The rule for pieces that did not complete.
    pub on_failure: OnFailure,
    /// Cancel the rest once more than so many pieces did not complete.
    pub max_fail: Option<u32>,
}

/// One piece.
#[derive(Clone, Debug)]
pub struct Piece {
    /// The request. Without a budget of its own the piece draws from what the root has left, or gets a part of that, less
    /// what the root keeps: an equal one, or by its weight where a piece has one.
    pub request: SpawnRequest,
    /// The part of a file that it reads. No symbolic link is accepted on its path: [`offshoot_split::cut`] answers such paths.
    pub input: Option<InputRange>,
    /// The name of its result in the answer; its label where absent, else its number from 1.
    pub key: Option<Arc<str>>,
    /// The piece's own runtime, command and folder, where they are not those of all. They say more than the definition of its agent.
    pub run_spec: Option<Arc<RunSpec>>,
    /// The pieces whose answers it needs. It starts when they are over, and reads the answer of one that it knows as `a` in its
    /// context, as `need_a`.
    pub needs: Vec<PieceNeed>,
    /// The fate of the piece when one of them does not complete.
    pub on_need_failed: OnNeedFailed,
    /// True if the answer of the only piece that it needs is its input, in place of a value of its context. The two are one piece of the
    /// answer then, with the key of the first: what the last piece of such a chain answers, or the first failure in it.
    pub reads_need: bool,
}

/// A piece whose answer another piece needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PieceNeed {
    /// The name by which that one knows it.
    pub name: Arc<str>,
    /// The place in the request, from 0.
    pub place: u32,
}

/// Pieces on their way.
#[derive(derive_more::Debug)]
#[debug("Fan({} pieces)", keys.len())]
pub struct Fan {
    id: FanId,
    link: Link,
    state: watch::Receiver<TreeState>,
    events: mpsc::UnboundedReceiver<FanEvent>,
    /// The names of the results, where they have one.
    keys: Vec<Option<Arc<str>>>,
    /// The chains of the pieces, where any reads the answer of another.
    chains: Option<Chains>,
    gathering: Gathering,
    /// The number of results that were there before; the places of the pieces come behind them.
    given: u32,
    on_failure: OnFailure,
    max_fail: Option<u32>,
    gathered: Gathered,
}

/// The outcome of one piece.
#[derive(Clone, Debug)]
pub struct PieceOutcome {
    /// The place in the request, from 0.
    pub place: u32,
    /// The name of the result. Where a piece of a chain did not complete, with the stage in which that was.
    pub key: Arc<str>,
    /// True if the piece was over before this supervisor began.
    pub earlier: bool,
    /// The envelope of its run, or the reason why there is no run.
    pub result: Result<Envelope, Refusal>,
}

/// The outcome of all pieces.
#[derive(Debug)]
pub struct FanAnswer {
    /// The name of the merge.
    pub strategy: String,
    /// The merged answer, or what there is of it.
    pub answer: Answer,
    /// Name of the result that a judge chose, and the reason; none where no judge was asked.
    pub chosen: Option<Chosen>,
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
            results: Vec::new(),
            strategy: Strategy::Concatenate,
            external: None,
            asking: None,
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

    /// With something else to become of pieces that did not complete.
    #[must_use]
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.on_failure = on_failure;
        self
    }
}

impl Piece {
    /// A piece that is a task in words.
    pub fn task(task: impl Into<Arc<str>>) -> Self {
        SpawnRequest { task: task.into(), ..SpawnRequest::default() }.into()
    }

    /// With a short name, which is also that of its result where nothing else is.
    #[must_use]
    pub fn label(mut self, label: impl Into<Arc<str>>) -> Self {
        self.request.label = Some(label.into());
        self
    }
}

impl From<SpawnRequest> for Piece {
    fn from(request: SpawnRequest) -> Self {
        Self {
            request,
            input: None,
            key: None,
            run_spec: None,
            needs: Vec::new(),
            on_need_failed: OnNeedFailed::Skip,
            reads_need: false,
        }
    }
}

impl Fan {
    /// Starts with pieces in these places among all that the owner asks for, in the order of the pieces; in the next ones where
    /// absent.
    pub(super) async fn start(
        link: Link,
        state: watch::Receiver<TreeState>,
        fan_out: FanOut,
        places: Option<Vec<u32>>,
    ) -> Result<Self, SpawnerError> {
        let tree = &link.tree;
        let FanOut { run_spec, pieces, results, strategy, external, .. } = fan_out;
        let (asking, on_failure, max_fail) = (fan_out.asking, fan_out.on_failure, fan_out.max_fail);
        // Before anything runs: parameters that the merge cannot use cost nothing then.
        let job = match &external {
            Some(external) => {
                let begun = ExternalMergeJob::of_root(external, &link).await;
                Some(begun.map_err(|error| SpawnerError::Merge(Arc::new(error)))?)
            }
            None => None,
        };
        if let Some(asking) = &asking {
            let checked = asker::check(asking, tree);
            checked.map_err(|error| SpawnerError::Merge(Arc::new(error)))?;
        }
        let order = order(&pieces)?;
        let chains = Chains::of(&pieces)?;
        // The supervisor counts pieces, and not chains of them.
        let most = max_fail.filter(|_| chains.is_none());
        let run_spec = run_spec.map_or_else(|| Arc::clone(&tree.run_spec), Arc::new);
        let id = FanId(tree.mint());
        let first = if places.is_none() { tree.mint_places(pieces.len()) } else { 0 };
        let number_of =
            |place: u32| places.as_ref().map_or(first + place, |places| places[place as usize]);
        let numbers = first..first + u32::try_from(pieces.len()).expect("fewer pieces than 2^32");
        let mut keys = Vec::with_capacity(pieces.len());
        let mut asks = Vec::with_capacity(pieces.len());
        for (place, piece) in (0_u32..).zip(pieces) {
            let Piece { request, input, key, run_spec: own, needs, .. } = piece;
            let Piece { on_need_failed, reads_need, .. } = piece;
            if !reads_need {
                keys.push(key.or_else(|| request.label.clone()));
            }
            // Kept below, once it is known that each piece can be asked for.
            let task = Payload::Text(Arc::clone(&request.task));
            let decides = own.is_some();
            let run_spec = own.unwrap_or_else(|| Arc::clone(&run_spec));
            let asked = Unresolved::of_root(&tree.agent, Origin::Piece, request, run_spec);
            let unresolved = Unresolved { decides, ..asked };
            let chosen = tree.chosen.get().and_then(|chosen| chosen.get(&number_of(place)));
            let ask = unresolved.resolve_as(chosen, task, tree)?;
            let needed =
                |need: PieceNeed| NeededPiece { name: need.name, place: number_of(need.place) };
            let needs = needs.into_iter().map(needed).collect();
            asks.push(Ask {
                input,
                reads_need,
                place,
                number: Some(number_of(place)),
                needs,
                on_need_failed,
                ..ask
            });
        }
        let left = asks.len();
        let asks = in_order(asks, order);
        // Unbounded, because the supervisor must not wait for a merge; each piece is told of once.
        let (follower, events) = mpsc::unbounded_channel();
        let asked = asking::all(asks, tree, |asks, permit| {
            let follower = follower.clone();
            let caller = RunIndex::ROOT;
            let numbers = numbers.clone();
            let max_fail = most;
            let message = Message::Fan { id, caller, asks, follower, max_fail, numbers, permit };
            link.tell(message).map_err(|_| over(&state))
        });
        asked.await.inspect_err(|error| {
            // The record ends here, so that a later supervisor can ask for the pieces again.
            if let SpawnerError::Store(error) = error {
                let _ = link.tell(Message::Halt { error: error.clone() });
            }
        })?;
        let values = StoredValues::new(Arc::clone(&tree.store));
        let mut gathering = match (external.zip(job), asking) {
            (Some((external, job)), _) => Gathering::by_job(&external, job, on_failure, values),
            (None, Some(asking)) => {
                let asker = Box::new(asker::Owner::new(&link, &state));
                Gathering::by_asked(AskedMerge::new(asking, asker, tree), on_failure, values)
            }
            (None, None) => {
                Gathering::by_strategy(strategy, on_failure, values).hold_at_most(HELD_BYTES)
            }
        };
        let mut given = 0;
        for (key, result) in results {
            gathering.push(given, key, Ok(result)).await;
            given += 1;
        }
        let runs = vec![tree.root.run(); keys.len()];
        let gathered = Gathered::new(left, runs);
        Ok(Self {
            id,
            link,
            state,
            events,
            keys,
            chains,
            gathering,
            given,
            on_failure,
            max_fail,
            gathered,
        })
    }

    /// Waits for the next piece that is over, in whatever order they end; none once all are. What it tells has a part in the
    /// [`answer`](Self::answer) too.
    ///
    /// A future that is dropped before it is ready may have taken a piece, which is missing in the answer then: wait for it to
    /// its end.
    ///
    /// # Errors
    ///
    /// As those of [`answer`](Self::answer).
    pub async fn next(&mut self) -> Result<Option<PieceOutcome>, SpawnerError> {
        let Some(event) = self.told().await? else { return Ok(None) };
        let outcome = self.outcome(&event).await?;
        self.take(event).await;
        Ok(Some(outcome))
    }

    /// Waits for the pieces and merges them as they end. Dropping the future leaves the pieces running: cancel them,
    /// or close the session.
    ///
    /// # Errors
    ///
    /// Fails if the record breaks, or does not give back what came of a piece in an earlier life of the tree: the tree can be
    /// resumed then.
    pub async fn answer(mut self) -> Result<FanAnswer, SpawnerError> {
        while let Some(event) = self.told().await? {
            self.take(event).await;
        }
        Ok(self.concluded().await)
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
        } else if let Err(error) = &self.verdict
            && !matches!(error, MergeError::PiecesFailed { .. } | MergeError::Missing { .. })
        {
            let message = error.to_string();
            match error.is_of_results() {
                true => Reason::MergeFailed { message },
                false => Reason::RuntimeError { message, retryable: false },
            }
        } else {
            Reason::PiecesFailed { failed: self.missing(), total: self.total }
        };
        Ending::of(reason)
    }
}

/// Returns the places of the pieces so that each comes behind those that it needs; none where they stand so already.
///
/// # Errors
///
/// Pieces that need each other in a cycle, and a place that is none.
fn order(pieces: &[Piece]) -> Result<Option<Vec<usize>>, SpawnerError> {
    if pieces.iter().all(|piece| piece.needs.is_empty()) {
        return Ok(None);
    }
    let is_none = |need: &PieceNeed| need.place as usize >= pieces.len();
    if let Some(none) = pieces.iter().flat_map(|piece| &piece.needs).find(|need| is_none(need)) {
        let message = format!("a piece needs `{}` at {}, and there is none", none.name, none.place);
        return Err(Refusal::invalid("needs", message).into());
    }
    let places = |piece: &Piece| piece.needs.iter().map(|need| need.place as usize).collect();
    let needs: Vec<Vec<usize>> = pieces.iter().map(places).collect();
    needs::order(&needs).map(Some).map_err(|cycle| {
        let name = |place: usize| {
            let label = pieces[place].request.label.clone();
            label.unwrap_or_else(|| (place + 1).to_string().into())
        };
        let cycle = cycle.into_iter().map(name).collect::<Vec<_>>().join(" → ");
        let message = format!("pieces need each other in a cycle: {cycle}");
        Refusal::invalid("needs", message).into()
    })
}

/// Puts requests into an order.
fn in_order(asks: Vec<Ask>, order: Option<Vec<usize>>) -> Vec<Ask> {
    let Some(order) = order else { return asks };
    let mut asks: Vec<Option<Ask>> = asks.into_iter().map(Some).collect();
    order.into_iter().map(|at| asks[at].take().expect("each place comes once")).collect()
}
