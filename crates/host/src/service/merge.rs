//! Many results as one answer.

use std::collections::HashMap;
use std::sync::Arc;

use offshoot_door::{CallError, KeyedResult, Merge, Merged};
use offshoot_merge::{Answer, MergeError};
use offshoot_model::{Envelope, JsonText, PathText, Payload, RunId, VariableRef, error_chain};
use offshoot_spawner::{Excerpt, Gathering, StoredValues};
use serde::Serialize;

use super::{TreeService, blocking, failed, invalid};

/// A partial answer up to this size is told as progress.
const PARTIAL_BYTES: u64 = 16 * 1024;

/// Results of runs on their way into one answer.
pub(super) struct RunResults {
    gathering: Gathering,
    /// The names of the results, in request order.
    keys: Vec<Arc<str>>,
    runs: Vec<RunId>,
    places: HashMap<RunId, u32>,
}

impl RunResults {
    fn new(gathering: Gathering, keys: Vec<Arc<str>>, runs: Vec<RunId>) -> Self {
        let places = (0..).zip(&runs).map(|(place, run)| (*run, place)).collect();
        Self { gathering, keys, runs, places }
    }

    /// Takes the result of a run. The same result taken again changes nothing.
    pub(super) async fn push(&mut self, envelope: &Envelope) {
        let Some(&place) = self.places.get(&envelope.run_id) else { return };
        self.take(place, envelope.clone().into_result()).await;
    }

    async fn take(&mut self, place: u32, result: Result<Payload, Box<Envelope>>) {
        let key = Arc::clone(&self.keys[place as usize]);
        self.gathering.push(place, key, result).await;
    }

    /// Returns true if the answer stands whatever is still to come.
    pub(super) fn stands(&self) -> bool {
        self.gathering.stands()
    }

    /// Gives a plugin's merge up: not all that it should merge will come.
    pub(super) fn give_up(&mut self) {
        self.gathering.give_up();
    }

    /// Returns the answer so far, where it is small.
    pub(super) fn partial(&self) -> Merged {
        let data = self.at_hand().filter(|data| data.size() <= PARTIAL_BYTES);
        Merged { data: data.as_ref().map(Payload::to_json), ..self.words() }
    }

    /// Returns the answer so far, where it needs no store.
    fn at_hand(&self) -> Option<Payload> {
        self.gathering.partial().and_then(Answer::to_payload)
    }

    async fn conclude(&mut self) -> Result<(), MergeError> {
        self.gathering.conclude(u32::try_from(self.keys.len()).unwrap_or(u32::MAX)).await
    }

    fn words(&self) -> Merged {
        let run = |place: u32| self.runs.get(place as usize).copied();
        Merged {
            strategy: self.gathering.strategy().to_owned(),
            data: None,
            name: None,
            failed: self.gathering.failed().filter_map(run).collect(),
            error: None,
            chosen: self.gathering.chosen().cloned(),
        }
    }
}

impl TreeService {
    /// Results of runs that have ended, then results that the caller brings, as one answer.
    pub(super) async fn merge(&self, caller: RunId, merge: Merge) -> Result<Merged, CallError> {
        let Merge { order, runs, results } = merge;
        let gathering = self.order(caller, &order).await?;
        let all = runs.is_empty() && results.is_empty();
        let runs = if all {
            self.agents.children_with_results(caller).await?
        } else {
            self.all_named(caller, &runs).await?
        };
        let mut ended = self.envelopes(runs.clone()).await?;
        if !all
            && let Some(run) = runs.iter().find(|run| !ended.iter().any(|it| it.run_id == **run))
        {
            return Err(invalid("runs", format!("the run {run} is not over")));
        }
        let runs: Vec<RunId> = ended.iter().map(|envelope| envelope.run_id).collect();
        let mut merging = self.results_of(gathering, runs.clone()).await?;
        merging.keys.extend(results.iter().map(|result| Arc::from(result.key.as_str())));
        for envelope in ended.drain(..) {
            merging.push(&envelope).await;
        }
        for (place, KeyedResult { value, .. }) in (runs.len() as u32..).zip(results) {
            merging.take(place, Ok(Payload::Json(value))).await;
        }
        self.merged(caller, merging).await
    }

    /// Returns the results to be gathered from these runs, each named by its label, else by its number from 1.
    pub(super) async fn results_of(
        &self,
        gathering: Gathering,
        runs: Vec<RunId>,
    ) -> Result<RunResults, CallError> {
        let (store, root) = (Arc::clone(self.agents.store()), self.agents.root());
        blocking(move || {
            let mut keys = Vec::with_capacity(runs.len());
            for (number, run) in (1_u32..).zip(&runs) {
                let admitted = store.admitted(root, *run).map_err(failed)?;
                let label = admitted.and_then(|admitted| admitted.label);
                keys.push(label.unwrap_or_else(|| number.to_string().into()));
            }
            Ok(RunResults::new(gathering, keys, runs))
        })
        .await
    }

    /// Returns the envelopes of those of these runs that have ended.
    pub(super) async fn envelopes(&self, runs: Vec<RunId>) -> Result<Vec<Envelope>, CallError> {
        let agents = self.agents.clone();
        blocking(move || {
            let envelope = |run| agents.envelope(run).map_err(failed).transpose();
            runs.into_iter().filter_map(envelope).collect()
        })
        .await
    }

    /// The answer to the caller. It is kept as a value of the caller's.
    pub(super) async fn merged(
        &self,
        caller: RunId,
        mut results: RunResults,
    ) -> Result<Merged, CallError> {
        let verdict = results.conclude().await;
        let mut merged = results.words();
        let at_hand = results.at_hand();
        let limit = self.agents.session(caller).await?.inline_bytes;
        let small = at_hand.as_ref().filter(|data| data.size() <= limit);
        merged.error = verdict.as_ref().err().map(ToString::to_string);
        merged.data = small.map(Payload::to_json);
        // A partial answer gets no name, unless it is too large to be handed over without one.
        let Some(answer) = results.gathering.partial() else { return Ok(merged) };
        if verdict.is_err() && small.is_some() {
            return Ok(merged);
        }
        let value = match &at_hand {
            Some(payload) => self.stored(payload).await?,
            None => {
                let values = StoredValues::new(Arc::clone(self.agents.store()));
                let folder = Arc::clone(self.agents.folder());
                let put = values.put(answer.clone(), folder).await;
                put.map_err(|error| CallError::Failed {
                    message: error_chain(&error),
                    hint: error.hint(),
                })?
            }
        };
        if merged.data.is_none() {
            let store = Arc::clone(self.agents.store());
            let excerpt = blocking(move || {
                let excerpt = Excerpt::of(&*store, &Payload::Stored(value), limit);
                excerpt.map_err(failed)
            });
            merged.data = Some(excerpt_json(&excerpt.await?));
        }
        let name = format!("merged-{}", self.agents.mint());
        self.keep(caller, name.clone(), value).await?;
        merged.name = Some(name);
        Ok(merged)
    }
}

/// As much of a payload as travels.
pub(super) fn excerpt_json(excerpt: &Excerpt) -> JsonText {
    #[derive(Serialize)]
    struct Part<'a> {
        r#ref: &'a VariableRef,
        path: PathText,
        head: &'a str,
        tail: &'a str,
    }
    match excerpt {
        Excerpt::Whole(payload) => payload.to_json(),
        Excerpt::Part { value, path, head, tail } => {
            let path = PathText(path.clone());
            let part = JsonText::of(&Part { r#ref: value, path, head, tail });
            part.expect("texts and references are plain data")
        }
    }
}
