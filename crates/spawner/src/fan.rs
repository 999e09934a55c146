//! Many pieces, one answer: fan-out, and the fold that merges as pieces end.

mod asking;

use std::fmt;
use std::sync::Arc;

use offshoot_merge::{Answer, Fold, MergeError, OnFailure, Step, Strategy};
use offshoot_model::{
    AgentId, CancelledBy, ContextEntry, Ending, Envelope, InputRange, Origin, Payload, Reason,
    Refusal, RootId, RunId, RunStatus, SpawnRequest, VariableRef,
};
use offshoot_store::Store;
use tokio::sync::{mpsc, watch};

use crate::custom::{CustomJob, CustomMerge};
use crate::error::SpawnerError;
use crate::machine::RunIndex;
use crate::resolve::Unresolved;
use crate::session::{broken, over};
use crate::shared::Shared;
use crate::supervisor::{Ask, FanEvent, FanId, Message, TreeState};
use crate::values::StoredValues;
use crate::work::Work;

/// The most bytes of the answers of pieces that are held until they are merged. Those of a hundred thousand would be
/// hundreds of megabytes, and each stands on record.
const HELD_BYTES: u64 = 32 << 20;

/// Pieces to run and how to merge what comes back.
#[derive(Clone, Debug)]
pub struct FanOut {
    /// How the pieces are run, where their agent does not say; as the root says where absent.
    pub work: Option<Work>,
    /// The pieces, in the order that the answer keeps.
    pub pieces: Vec<Piece>,
    /// How results become one.
    pub strategy: Strategy,
    /// A merge that is not one of ours, which then goes before the strategy.
    pub custom: Option<CustomMerge>,
    /// What becomes of pieces that did not complete.
    pub on_failure: OnFailure,
    /// Cancel the rest once more than so many pieces did not complete.
    pub max_fail: Option<u32>,
}

/// One piece.
#[derive(Clone, Debug)]
pub struct Piece {
    /// What is asked for. Where it names no budget, it gets an equal part of what the root has left, less what the root
    /// keeps.
    pub request: SpawnRequest,
    /// The part of a file that it reads.
    pub input: Option<InputRange>,
    /// The name of its result in the answer; its label where absent, else its number from 1.
    pub key: Option<Arc<str>>,
}

/// Pieces on their way.
pub struct Fan {
    id: FanId,
    root: RootId,
    sender: mpsc::UnboundedSender<Message>,
    state: watch::Receiver<TreeState>,
    events: mpsc::UnboundedReceiver<FanEvent>,
    /// The names of the results, where they have one.
    keys: Vec<Option<Arc<str>>>,
    strategy: String,
    fold: Fold,
    values: StoredValues,
    /// The merge that makes the answer, where the fold only counts.
    job: Option<CustomJob>,
    on_failure: OnFailure,
    max_fail: Option<u32>,
}

/// What came of all pieces.
#[derive(Debug)]
pub struct FanAnswer {
    /// How it was merged, by name.
    pub strategy: String,
    /// The merged answer, or what there is of it.
    pub answer: Answer,
    /// Whether that is the answer to what was asked, and if not, why.
    pub verdict: Result<(), MergeError>,
    /// How many pieces there were.
    pub total: u32,
    /// How many of them completed.
    pub completed: u32,
    /// The envelopes of those that did not, in the order of the request, but for those that were cancelled because
    /// the answer stood without them.
    pub failures: Vec<(Arc<str>, Envelope)>,
    /// Those that were not even admitted.
    pub refused: Vec<Refused>,
    /// Why the rest was cancelled, if it was.
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
            work: None,
            pieces: pieces.into_iter().collect(),
            strategy: Strategy::Concatenate,
            custom: None,
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
    pub fn merge_by(mut self, custom: CustomMerge) -> Self {
        self.custom = Some(custom);
        self
    }

    /// With something else to become of pieces that did not complete.
    #[must_use]
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.on_failure = on_failure;
        self
    }

    /// Cancels the rest once more than so many pieces did not complete.
    #[must_use]
    pub fn max_fail(mut self, most: u32) -> Self {
        self.max_fail = Some(most);
        self
    }

    /// With a way of its own to run the pieces.
    #[must_use]
    pub fn work(mut self, work: Work) -> Self {
        self.work = Some(work);
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

    /// With one more value that it may read, under this name.
    #[must_use]
    pub fn context(mut self, name: impl Into<Arc<str>>, value: VariableRef) -> Self {
        self.request.context.push(ContextEntry { name: name.into(), value });
        self
    }

    /// With a part of a file to read.
    #[must_use]
    pub fn input(mut self, input: InputRange) -> Self {
        self.input = Some(input);
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
        shared: &Arc<Shared>,
        sender: mpsc::UnboundedSender<Message>,
        state: watch::Receiver<TreeState>,
        order: FanOut,
    ) -> Result<Self, SpawnerError> {
        let FanOut { work, pieces, strategy, custom, on_failure, max_fail } = order;
        // Before anything runs: parameters that the merge cannot use cost nothing then.
        let job = match &custom {
            Some(custom) => {
                let begun = CustomJob::of_root(custom, shared, &sender).await;
                Some(begun.map_err(|error| SpawnerError::Merge(Arc::new(error)))?)
            }
            None => None,
        };
        let work = work.map_or_else(|| Arc::clone(&shared.work), Arc::new);
        let id = shared.mint_fan();
        let first = shared.mint_places(pieces.len());
        let mut keys = Vec::with_capacity(pieces.len());
        let mut asks = Vec::with_capacity(pieces.len());
        for (place, piece) in (0_u32..).zip(pieces) {
            let Piece { request, input, key } = piece;
            keys.push(key.or_else(|| request.label.clone()));
            // Kept below, once it is known that each piece can be asked for.
            let task = Payload::Text(Arc::clone(&request.task));
            let unresolved = Unresolved {
                caller: RunIndex::ROOT,
                agent: &shared.agent,
                origin: Origin::Piece,
                request,
                input,
                work: Arc::clone(&work),
                place,
            };
            let chosen = shared.chosen.get().and_then(|chosen| chosen.get(&(first + place)));
            let ask = unresolved.resolve_as(chosen, task, shared);
            let ask = ask.map_err(|refusal| SpawnerError::Refused(Box::new(refusal)))?;
            asks.push(Ask { number: Some(first + place), ..ask });
        }
        // Unbounded, because the supervisor must not wait for a merge; each piece is told of once.
        let (follower, events) = mpsc::unbounded_channel();
        let asked = asking::all(asks, shared, |asks| {
            let follower = follower.clone();
            let caller = RunIndex::ROOT;
            let message = Message::Fan { id, caller, asks, follower, max_fail };
            sender.send(message).map_err(|_| SpawnerError::Over)
        });
        if let Err(error) = asked.await {
            // Nothing follows those that were asked for already.
            let _ = sender.send(Message::CancelPieces { fan: id, by: CancelledBy::Operator });
            return Err(error);
        }
        let (strategy, fold) = match &custom {
            Some(custom) => (custom.to_string(), Fold::elsewhere(on_failure)),
            None => {
                let fold = Fold::new(strategy, on_failure).hold_at_most(HELD_BYTES);
                (strategy.to_string(), fold)
            }
        };
        let values = StoredValues::new(Arc::clone(&shared.store));
        let root = shared.root;
        Ok(Self {
            id,
            root,
            sender,
            state,
            events,
            keys,
            strategy,
            fold,
            values,
            job,
            on_failure,
            max_fail,
        })
    }

    /// Waits for the pieces and merges them as they end. Dropping the future leaves the pieces running: cancel them,
    /// or close the session.
    pub async fn answer(mut self) -> Result<FanAnswer, SpawnerError> {
        let total = u32::try_from(self.keys.len()).expect("a request has fewer than 2^32 pieces");
        let mut runs = vec![self.root.run(); self.keys.len()];
        let mut failures: Vec<(u32, Box<Envelope>)> = Vec::new();
        let mut refused: Vec<(u32, Box<Refusal>)> = Vec::new();
        let mut completed = 0;
        let mut cut_short = None;
        for _ in 0..total {
            let event = tokio::select! {
                biased;
                error = broken(&mut self.state) => return Err(error),
                event = self.events.recv() => event.ok_or_else(|| over(&self.state))?,
            };
            if let FanEvent::Ended { place, envelope } = &event {
                runs[*place as usize] = envelope.run_id;
            }
            match event {
                FanEvent::Ended { place, mut envelope } if envelope.status.is_success() => {
                    completed += 1;
                    // A run that completed without a word has the empty answer.
                    let answer = envelope.data.take();
                    let answer = answer.unwrap_or_else(|| Payload::text(""));
                    let key = self.key(place);
                    if let Some(job) = &mut self.job {
                        job.push(place, Arc::clone(&key), Ok(answer.clone()), &mut self.fold).await;
                    }
                    self.values.learn(&mut self.fold, &answer).await;
                    let step = self.fold.push(place, key, Ok(answer));
                    let fails = self.job.as_ref().is_some_and(CustomJob::has_failed);
                    if (step == Step::Early || fails) && cut_short.is_none() {
                        cut_short = Some(self.cut_short(CancelledBy::EarlyAnswer));
                    }
                }
                // A piece that was cancelled because the answer stands without it did not fail.
                FanEvent::Ended { envelope, .. }
                    if cut_short == Some(CancelledBy::EarlyAnswer)
                        && envelope.status == RunStatus::Cancelled => {}
                FanEvent::Ended { place, envelope } => failures.push((place, envelope)),
                FanEvent::Refused { place, refusal } => refused.push((place, refusal)),
            }
            let failed = failures.len() + refused.len();
            let too_many = self.max_fail.is_some_and(|most| failed > most as usize);
            if too_many && cut_short.is_none() {
                cut_short = Some(self.cut_short(CancelledBy::MaxFail));
            }
        }
        failures.sort_unstable_by_key(|&(place, _)| place);
        refused.sort_unstable_by_key(|&(place, _)| place);
        for (place, envelope) in &failures {
            let key = self.key(*place);
            if let Some(job) = self.job.as_mut().filter(|_| self.fold.includes_failures()) {
                job.push(*place, Arc::clone(&key), Err(envelope.clone()), &mut self.fold).await;
            }
            self.fold.push(*place, key, Err(envelope.clone()));
        }
        let refused: Vec<Refused> = refused
            .into_iter()
            .map(|(place, refusal)| Refused { key: self.key(place), refusal: *refusal })
            .collect();
        let failures =
            failures.into_iter().map(|(place, envelope)| (self.key(place), *envelope)).collect();
        let admitted = total - u32::try_from(refused.len()).expect("no more than there are pieces");
        let made = match self.job.take() {
            Some(job) => job.finish(&mut self.fold).await,
            None => Ok(()),
        };
        let early = self.fold.stands();
        Ok(FanAnswer {
            strategy: self.strategy,
            verdict: made.and_then(|()| self.fold.check(admitted)),
            answer: self.fold.into_partial(),
            total,
            completed,
            failures,
            refused,
            cut_short,
            root: self.root,
            runs: runs.into(),
            early,
            on_failure: self.on_failure,
        })
    }

    /// The name of a result; its number from 1 where it has none.
    fn key(&self, place: u32) -> Arc<str> {
        let key = self.keys[place as usize].clone();
        key.unwrap_or_else(|| (place + 1).to_string().into())
    }

    fn cut_short(&self, by: CancelledBy) -> CancelledBy {
        // A tree that is over has nothing to cancel.
        let _ = self.sender.send(Message::CancelPieces { fan: self.id, by });
        by
    }
}

impl FanAnswer {
    /// Returns the values that the answer is written with, from the store of its tree.
    pub fn values(&self, store: Arc<dyn Store>) -> StoredValues {
        StoredValues::new(store).with_results_of(self.root, Arc::clone(&self.runs))
    }

    /// True if this is the answer to what was asked. An answer that stood early needs no other piece, so it does not
    /// matter what became of the others, or whether they were admitted. What was cut short for its failures did not do
    /// what it was asked, whatever may be left out of the answer.
    pub fn is_success(&self) -> bool {
        let nothing_missing = match self.on_failure {
            OnFailure::Fail => self.refused.is_empty(),
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
        let missing = self.failures.len() + self.refused.len();
        u32::try_from(missing).expect("no more than there are pieces")
    }

    /// How the root that held the pieces ends, but for its output: [`Session::conclude`](crate::Session::conclude) keeps
    /// that.
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
