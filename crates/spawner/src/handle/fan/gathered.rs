//! Gathering what comes of the pieces of one request.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use offshoot_merge::{Listed, OnFailure, Step};
use offshoot_model::{CancelledBy, Envelope, Payload, Refusal, RefusalCode, RunId, RunStatus};
use offshoot_store::StoreError;

use super::{Fan, FanAnswer, PieceOutcome, Refused};
use crate::blocking::blocking;
use crate::error::SpawnerError;
use crate::handle::tree_state::{broken, over};
use crate::machine::Past;
use crate::message::{FanEvent, Message};
use crate::stored_values::{recorded, recorded_all};

/// The most events that are taken at once. What some of them left on record only is read together.
const TOGETHER: usize = 256;

/// The outcome of the pieces that are over.
#[derive(Default)]
pub(super) struct Gathered {
    /// Events that were told, and are not counted yet.
    told: VecDeque<FanEvent>,
    /// The number of runs of which nothing was told.
    left: usize,
    /// The run of each piece that was admitted; the root itself for the others.
    runs: Vec<RunId>,
    completed: u32,
    failures: Listed<(Arc<str>, Box<Envelope>)>,
    failed: BTreeMap<String, u32>,
    refused: Listed<Refused>,
    not_admitted: BTreeMap<RefusalCode, u32>,
    cut_short: Option<CancelledBy>,
}

impl Gathered {
    /// Nothing of an answer, where so many runs are told of and the pieces have no runs but these yet.
    pub(super) fn new(left: usize, runs: Vec<RunId>) -> Self {
        Self { left, runs, ..Self::default() }
    }
}

impl Fan {
    /// Returns what is told next of a piece of the answer; none once that was everything.
    pub(super) async fn told(&mut self) -> Result<Option<FanEvent>, SpawnerError> {
        loop {
            let Some(event) = self.told_of_run().await? else { return Ok(None) };
            let Some(chains) = &mut self.chains else { return Ok(Some(event)) };
            if let Some(outcome) = chains.outcome(event) {
                return Ok(Some(outcome));
            }
        }
    }

    async fn told_of_run(&mut self) -> Result<Option<FanEvent>, SpawnerError> {
        if self.gathered.told.is_empty() && self.gathered.left > 0 {
            let Self { state, events: told, .. } = self;
            let mut events = Vec::new();
            tokio::select! {
                biased;
                error = broken(state) => return Err(error),
                received = told.recv_many(&mut events, TOGETHER) => {
                    if received == 0 {
                        return Err(over(state));
                    }
                }
            }
            self.gathered.left -= events.len();
            self.read_again(&mut events).await?;
            self.gathered.told = events.into();
        }
        Ok(self.gathered.told.pop_front())
    }

    /// Returns what this event tells of a piece, for the owner of the tree.
    pub(super) async fn outcome(&mut self, event: &FanEvent) -> Result<PieceOutcome, SpawnerError> {
        let (place, earlier, result) = match event {
            FanEvent::Refused { place, refusal } => (*place, false, Err((**refusal).clone())),
            FanEvent::Ended { place, envelope } => (*place, false, Ok((**envelope).clone())),
            FanEvent::Over { place, run, .. } => {
                let (tree, run) = (Arc::clone(&self.link.tree), *run);
                let read = blocking(move || recorded(&*tree.store, tree.root, run)).await;
                let envelope = read.map_err(|error| self.unreadable(error))?;
                (*place, true, Ok(envelope.expect("this supervisor has read that the run ended")))
            }
        };
        Ok(PieceOutcome { place, key: self.outcome_key(place), earlier, result })
    }

    /// Everything was told.
    pub(super) async fn concluded(self) -> FanAnswer {
        let total = u32::try_from(self.keys.len()).expect("a request has fewer than 2^32 pieces");
        let Self { mut gathering, given, gathered, on_failure, .. } = self;
        let Gathered { runs, completed, failures, failed, .. } = gathered;
        let Gathered { refused, not_admitted, cut_short, .. } = gathered;
        if on_failure == OnFailure::Fail && refused.count() > 0 {
            gathering.ask_nothing();
        }
        let verdict = gathering.conclude(given + total - refused.count()).await;
        let failure = |(_, (key, envelope)): (_, (_, Box<Envelope>))| (key, *envelope);
        FanAnswer {
            strategy: gathering.strategy().to_owned(),
            verdict,
            early: gathering.stands(),
            chosen: gathering.chosen().cloned(),
            answer: gathering.into_answer(),
            total,
            completed,
            failures: failures.into_places().map(failure).collect(),
            failed,
            refused: refused.into_places().map(|(_, refused)| refused).collect(),
            not_admitted,
            cut_short,
            root: self.link.tree.root,
            runs: runs.into(),
            on_failure,
        }
    }

    /// Reads from the record what came of pieces in an earlier life of the tree, where that was more than is held.
    async fn read_again(&mut self, events: &mut [FanEvent]) -> Result<(), SpawnerError> {
        let on_record = |event: &FanEvent| match *event {
            FanEvent::Over { run, past: Past::OnRecord { seq, .. }, .. } => Some((run, seq)),
            _ => None,
        };
        let runs: Vec<(RunId, u64)> = events.iter().filter_map(on_record).collect();
        if runs.is_empty() {
            return Ok(());
        }
        let tree = Arc::clone(&self.link.tree);
        let read = move || {
            let (runs, places): (Vec<RunId>, Vec<u64>) = runs.into_iter().unzip();
            let root = tree.root;
            recorded_all(&*tree.store, root, &runs)
                .zip(places)
                .map(|(envelope, seq)| envelope?.ok_or(StoreError::Tampered { root, seq }))
                .collect::<Result<Vec<Envelope>, StoreError>>()
        };
        let read = blocking(read).await;
        let envelopes = read.map_err(|error| self.unreadable(error))?;
        let unread = events.iter_mut().filter(|event| on_record(event).is_some());
        for (event, envelope) in unread.zip(envelopes) {
            if let FanEvent::Over { past, .. } = event {
                *past = Past::of(envelope);
            }
        }
        Ok(())
    }

    /// Ends the record where it could not be read, so that a later supervisor can read it.
    fn unreadable(&self, error: StoreError) -> SpawnerError {
        let _ = self.link.tell(Message::Halt { error: error.clone() });
        SpawnerError::Store(error)
    }

    pub(super) async fn take(&mut self, event: FanEvent) {
        let outcome = match event {
            FanEvent::Ended { place, envelope } => {
                self.gathered.runs[place as usize] = envelope.run_id;
                // A piece that was cancelled because the answer stands without it did not fail.
                let unneeded = self.gathered.cut_short == Some(CancelledBy::EarlyAnswer)
                    && envelope.status == RunStatus::Cancelled;
                (!unneeded).then(|| (place, Past::of(*envelope)))
            }
            FanEvent::Over { place, run, past } => {
                self.gathered.runs[place as usize] = run;
                Some((place, past))
            }
            FanEvent::Refused { place, refusal } => {
                self.refused(place, *refusal);
                None
            }
        };
        let outcome = outcome.and_then(|(place, past)| Some((place, self.result(place, past)?)));
        if let Some((place, result)) = outcome {
            let step = self.gathering.push(self.given + place, self.key(place), result).await;
            // One more result is in: the other pieces may not be needed any more.
            if step == Step::Early || self.gathering.has_failed() {
                self.cut_short(CancelledBy::EarlyAnswer);
            }
        }
        let failed = self.gathered.failures.count() + self.gathered.refused.count();
        if self.max_fail.is_some_and(|most| failed > most) {
            self.cut_short(CancelledBy::MaxFail);
        }
    }

    /// Counts a piece that is over, and returns what is merged; nothing of a piece that is not needed.
    fn result(&mut self, place: u32, past: Past) -> Option<Result<Payload, Box<Envelope>>> {
        match past {
            Past::Completed(answer) => {
                self.gathered.completed += 1;
                Some(Ok(answer))
            }
            Past::Failed(envelope) => {
                let code = envelope.error.as_ref().map_or("", |error| &error.code);
                *self.gathered.failed.entry(code.to_owned()).or_default() += 1;
                self.gathered.failures.insert(place, (self.outcome_key(place), envelope.clone()));
                Some(Err(envelope))
            }
            Past::Unneeded => None,
            Past::OnRecord { .. } => unreachable!("the outcome was read from the record"),
        }
    }

    fn refused(&mut self, place: u32, refusal: Refusal) {
        *self.gathered.not_admitted.entry(refusal.code).or_default() += 1;
        let key = self.outcome_key(place);
        self.gathered.refused.insert(place, Refused { key, refusal });
    }

    /// The name of a result; its number from 1 where it has none.
    fn key(&self, place: u32) -> Arc<str> {
        let key = self.keys[place as usize].clone();
        key.unwrap_or_else(|| (place + 1).to_string().into())
    }

    /// The name of a piece that is over; of a chain that did not complete, with the stage in which that was.
    fn outcome_key(&self, place: u32) -> Arc<str> {
        match self.chains.as_ref().and_then(|chains| chains.failed_at(place)) {
            None => self.key(place),
            Some(stage) => format!("{} (stage {stage})", self.key(place)).into(),
        }
    }

    /// Cancels what is not over, once.
    fn cut_short(&mut self, by: CancelledBy) {
        if self.gathered.cut_short.is_none() {
            self.gathered.cut_short = Some(by);
            // A tree that is over has nothing to cancel.
            let _ = self.link.tell(Message::CancelPieces { fan: self.id, by });
        }
    }
}
