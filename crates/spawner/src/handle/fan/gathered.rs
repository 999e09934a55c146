//! Gathering what comes of the pieces of one request.

use std::collections::BTreeMap;
use std::sync::Arc;

use offshoot_merge::{Listed, Step};
use offshoot_model::{CancelledBy, Envelope, Payload, Refusal, RefusalCode, RunId, RunStatus};
use offshoot_store::StoreError;

use super::{Fan, FanAnswer, Refused};
use crate::error::SpawnerError;
use crate::handle::tree_state::{broken, over};
use crate::machine::Past;
use crate::message::{FanEvent, Message};
use crate::stored_values::recorded;

/// The most events that are taken at once. What some of them left on record only is read together.
const TOGETHER: usize = 256;

/// Pieces on their way, and what came of those that are over.
pub(super) struct Gathered {
    fan: Fan,
    /// The run of each piece that was admitted.
    runs: Vec<RunId>,
    completed: u32,
    failures: Listed<(Arc<str>, Box<Envelope>)>,
    failed: BTreeMap<String, u32>,
    refused: Listed<Refused>,
    not_admitted: BTreeMap<RefusalCode, u32>,
    cut_short: Option<CancelledBy>,
}

impl From<Fan> for Gathered {
    fn from(fan: Fan) -> Self {
        Self {
            runs: vec![fan.root.run(); fan.keys.len()],
            fan,
            completed: 0,
            failures: Listed::default(),
            failed: BTreeMap::new(),
            refused: Listed::default(),
            not_admitted: BTreeMap::new(),
            cut_short: None,
        }
    }
}

impl Gathered {
    pub(super) async fn answer(mut self) -> Result<FanAnswer, SpawnerError> {
        let total =
            u32::try_from(self.fan.keys.len()).expect("a request has fewer than 2^32 pieces");
        let (mut events, mut left) = (Vec::new(), self.fan.keys.len());
        while left > 0 {
            let Fan { state, events: told, .. } = &mut self.fan;
            tokio::select! {
                biased;
                error = broken(state) => return Err(error),
                received = told.recv_many(&mut events, TOGETHER) => {
                    if received == 0 {
                        return Err(over(state));
                    }
                }
            }
            left -= events.len();
            self.read_again(&mut events).await?;
            for event in events.drain(..) {
                self.take(event).await;
            }
        }
        let Self { mut fan, runs, completed, failures, failed, .. } = self;
        let Self { refused, not_admitted, cut_short, .. } = self;
        let verdict = fan.gathering.conclude(total - refused.count()).await;
        let failure = |(_, (key, envelope)): (_, (_, Box<Envelope>))| (key, *envelope);
        Ok(FanAnswer {
            strategy: fan.gathering.strategy().to_owned(),
            verdict,
            early: fan.gathering.stands(),
            answer: fan.gathering.into_answer(),
            total,
            completed,
            failures: failures.into_places().map(failure).collect(),
            failed,
            refused: refused.into_places().map(|(_, refused)| refused).collect(),
            not_admitted,
            cut_short,
            root: fan.root,
            runs: runs.into(),
            on_failure: fan.on_failure,
        })
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
        let (root, store) = (self.fan.root, Arc::clone(&self.fan.store));
        let read = move || {
            let envelope = |(run, seq)| {
                recorded(&*store, root, run)?.ok_or(StoreError::Tampered { root, seq })
            };
            runs.into_iter().map(envelope).collect::<Result<Vec<Envelope>, StoreError>>()
        };
        let read = tokio::task::spawn_blocking(read).await.expect("reading does not panic");
        let envelopes = read.map_err(|error| {
            // The record ends here, so that a later supervisor can read it.
            let _ = self.fan.sender.send(Message::Halt { error: error.clone() });
            SpawnerError::Store(error)
        })?;
        let unread = events.iter_mut().filter(|event| on_record(event).is_some());
        for (event, envelope) in unread.zip(envelopes) {
            if let FanEvent::Over { past, .. } = event {
                *past = Past::of(envelope);
            }
        }
        Ok(())
    }

    async fn take(&mut self, event: FanEvent) {
        let outcome = match event {
            FanEvent::Ended { place, envelope } => {
                self.runs[place as usize] = envelope.run_id;
                // A piece that was cancelled because the answer stands without it did not fail.
                let unneeded = self.cut_short == Some(CancelledBy::EarlyAnswer)
                    && envelope.status == RunStatus::Cancelled;
                (!unneeded).then(|| (place, Past::of(*envelope)))
            }
            FanEvent::Over { place, run, past } => {
                self.runs[place as usize] = run;
                Some((place, past))
            }
            FanEvent::Refused { place, refusal } => {
                self.refused(place, *refusal);
                None
            }
        };
        let outcome = outcome.and_then(|(place, past)| Some((place, self.result(place, past)?)));
        if let Some((place, result)) = outcome {
            let step = self.fan.gathering.push(place, self.key(place), result).await;
            // One more result is in: the other pieces may not be needed any more.
            if step == Step::Early || self.fan.gathering.has_failed() {
                self.cut_short(CancelledBy::EarlyAnswer);
            }
        }
        let failed = self.failures.count() + self.refused.count();
        if self.fan.max_fail.is_some_and(|most| failed > most) {
            self.cut_short(CancelledBy::MaxFail);
        }
    }

    /// Counts a piece that is over, and returns what is merged; nothing of a piece that is not needed.
    fn result(&mut self, place: u32, past: Past) -> Option<Result<Payload, Box<Envelope>>> {
        match past {
            Past::Completed(answer) => {
                self.completed += 1;
                Some(Ok(answer))
            }
            Past::Failed(envelope) => {
                let code = envelope.error.as_ref().map_or("", |error| &error.code);
                match self.failed.get_mut(code) {
                    Some(count) => *count += 1,
                    None => drop(self.failed.insert(code.to_owned(), 1)),
                }
                self.failures.insert(place, (self.key(place), envelope.clone()));
                Some(Err(envelope))
            }
            Past::Unneeded => None,
            Past::OnRecord { .. } => unreachable!("the outcome was read from the record"),
        }
    }

    fn refused(&mut self, place: u32, refusal: Refusal) {
        *self.not_admitted.entry(refusal.code).or_default() += 1;
        let key = self.key(place);
        self.refused.insert(place, Refused { key, refusal });
    }

    /// The name of a result; its number from 1 where it has none.
    fn key(&self, place: u32) -> Arc<str> {
        let key = self.fan.keys[place as usize].clone();
        key.unwrap_or_else(|| (place + 1).to_string().into())
    }

    /// Cancels what is not over, once.
    fn cut_short(&mut self, by: CancelledBy) {
        if self.cut_short.is_none() {
            self.cut_short = Some(by);
            // A tree that is over has nothing to cancel.
            let _ = self.fan.sender.send(Message::CancelPieces { fan: self.fan.id, by });
        }
    }
}
