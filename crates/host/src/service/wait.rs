//! Waiting for runs below, with what there is meanwhile.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use offshoot_door::{CallError, Progress, ProgressSink, Wait, Waited, WireEnvelope};
use offshoot_model::{Envelope, EnvelopeError, EventKind, Payload, RunId};
use offshoot_runtime::{WaitAnswer, WaitFor};
use offshoot_spawner::{Excerpt, Gathering, LiveEvent};
use offshoot_store::Store;

use super::merge::{RunResults, excerpt_json};
use super::values::result_name;
use super::{TreeService, blocking, failed};

/// The state of the runs of one wait while it is open.
struct Watched<'a> {
    open: HashSet<RunId>,
    total: u64,
    gathering: Option<&'a mut RunResults>,
    progress: Option<&'a ProgressSink>,
}

impl TreeService {
    /// Blocks until runs have ended; the caller's slot is lent meanwhile.
    pub(super) async fn wait(
        &self,
        caller: RunId,
        wait: Wait,
        progress: &ProgressSink,
    ) -> Result<Waited, CallError> {
        let runs = if wait.runs.is_empty() {
            if wait.merge.is_none() && !wait.progress {
                // The engine that holds the tree knows them without looking at its record.
                let answer = self.agents.wait(caller, wait_for(Vec::new(), &wait)).await?;
                return self.waited(caller, &answer).await;
            }
            match wait.merge {
                // A merge is one of the results of all children.
                Some(_) => self.agents.children_with_results(caller).await?,
                None => self.agents.unnamed(caller).await?,
            }
        } else {
            self.all_named(caller, &wait.runs).await?
        };
        let order = self.order_of(caller, &wait).await?;
        self.wait_for(caller, runs, &wait, order, progress).await
    }

    /// Returns the merge that a wait asks for.
    pub(super) async fn order_of(
        &self,
        caller: RunId,
        wait: &Wait,
    ) -> Result<Option<Gathering>, CallError> {
        match &wait.merge {
            Some(order) => self.order(caller, order).await.map(Some),
            None => Ok(None),
        }
    }

    /// The same for these runs, which are below the caller.
    pub(super) async fn wait_for(
        &self,
        caller: RunId,
        mut runs: Vec<RunId>,
        wait: &Wait,
        order: Option<Gathering>,
        progress: &ProgressSink,
    ) -> Result<Waited, CallError> {
        let may_end_early = order.as_ref().is_some_and(Gathering::may_end_early);
        let mut seen = HashSet::new();
        runs.retain(|run| seen.insert(*run));
        let mut gathering = match order {
            Some(order) => Some(self.results_of(order, runs.clone()).await?),
            None => None,
        };
        let wait_for = wait_for(runs.clone(), wait);
        let answer = if runs.is_empty() {
            WaitAnswer::default()
        } else if wait.progress || may_end_early {
            let watched = Watched {
                open: runs.iter().copied().collect(),
                total: runs.len() as u64,
                gathering: gathering.as_mut(),
                progress: wait.progress.then_some(progress),
            };
            self.watch(caller, wait_for, watched).await?
        } else {
            self.agents.wait(caller, wait_for).await?
        };
        let mut waited = self.waited(caller, &answer).await?;
        if let Some(mut gathering) = gathering {
            if !answer.pending.is_empty() {
                gathering.give_up();
            }
            for envelope in &answer.ended {
                gathering.push(envelope).await;
            }
            waited.merged = Some(self.merged(caller, gathering).await?);
        }
        Ok(waited)
    }

    /// Returns the answer of a wait, with as much of each result as may travel with it.
    async fn waited(&self, caller: RunId, answer: &WaitAnswer) -> Result<Waited, CallError> {
        let limit = self.agents.session(caller).await?.inline_bytes;
        let (store, envelopes) = (Arc::clone(self.agents.store()), answer.ended.clone());
        let ended = blocking(move || {
            Ok(envelopes.iter().map(|envelope| outcome(&*store, envelope, limit)).collect())
        });
        Ok(Waited { ended: ended.await?, pending: answer.pending.clone(), merged: None })
    }

    /// Waits and looks on: tells how it goes, and ends what an early answer has no need of.
    async fn watch(
        &self,
        caller: RunId,
        wait: WaitFor,
        mut watched: Watched<'_>,
    ) -> Result<WaitAnswer, CallError> {
        let mut events = self.agents.live_events();
        let mut over = false;
        let mut spared = false;
        // Runs that had ended before this wait looked are read from the record.
        let mut look: Vec<RunId> = watched.open.iter().copied().collect();
        let mut answer = pin!(self.agents.wait(caller, wait));
        loop {
            for envelope in self.envelopes(std::mem::take(&mut look)).await? {
                watched.open.remove(&envelope.run_id);
                if let Some(gathering) = &mut watched.gathering {
                    // A plugin may take more time over a result than the caller has patience for the rest.
                    let push = pin!(gathering.push(&envelope));
                    if let Either::Left((answer, push)) = select(answer.as_mut(), push).await {
                        let answer = answer?;
                        if answer.pending.is_empty() {
                            push.await;
                        }
                        return Ok(answer);
                    }
                }
                watched.tell(None);
            }
            if !spared && watched.gathering.as_ref().is_some_and(|it| it.stands()) {
                spared = true;
                for run in &watched.open {
                    self.agents.spare(caller, *run).await?;
                }
            }
            tokio::select! {
                biased;
                answer = &mut answer => return Ok(answer?),
                event = events.next(), if !over => match event {
                    Some(LiveEvent::Event(event)) if watched.open.contains(&event.run) => {
                        match &event.kind {
                            EventKind::Ended(_) => look.push(event.run),
                            EventKind::Progress { text } | EventKind::Reported { text } => {
                                watched.tell(Some(text));
                            }
                            EventKind::ToolUsed(used) => watched.tell(Some(&used.line())),
                            _ => {}
                        }
                    }
                    Some(LiveEvent::Event(_)) => {}
                    Some(LiveEvent::Missed) => look.extend(&watched.open),
                    None => over = true,
                },
            }
        }
    }
}

impl Watched<'_> {
    /// Reports progress, where the caller has asked for it.
    fn tell(&self, text: Option<&str>) {
        let Some(progress) = self.progress else { return };
        progress.tell(Progress {
            ended: self.total - self.open.len() as u64,
            total: self.total,
            text: text.map(str::to_owned),
            merged: self.gathering.as_ref().map(|gathering| gathering.partial()),
        });
    }
}

/// An envelope with as much of its result as goes into the limit. A result that cannot be read at the moment takes no
/// other with it: its outcome says so.
fn outcome(store: &dyn Store, envelope: &Envelope, limit: u64) -> WireEnvelope {
    let mut outcome = WireEnvelope::from(envelope);
    let is_whole = |data: &Payload| !matches!(data, Payload::Stored(_)) && data.size() <= limit;
    if let Some(data) = envelope.data.as_ref().filter(|data| !is_whole(data)) {
        match Excerpt::of(store, data, limit) {
            Ok(excerpt) => {
                let whole = matches!(excerpt, Excerpt::Whole(_));
                outcome.name = (!whole).then(|| result_name(envelope.run_id));
                outcome.data = Some(excerpt_json(&excerpt));
            }
            Err(error) => {
                outcome.data = None;
                outcome.name = Some(result_name(envelope.run_id));
                outcome.error.get_or_insert_with(|| EnvelopeError {
                    code: "result_unreadable".to_owned(),
                    message: format!("its result cannot be read: {}", failed(error)),
                    recovery_suggestion: Some(format!(
                        "wait for it again, or read {} with context.get",
                        result_name(envelope.run_id)
                    )),
                    parent_can_retry: true,
                    said: None,
                });
            }
        }
    }
    outcome
}

fn wait_for(runs: Vec<RunId>, wait: &Wait) -> WaitFor {
    let mode = wait.mode.unwrap_or_default();
    WaitFor { runs, mode, timeout: wait.timeout_ms.map(Duration::from_millis) }
}
