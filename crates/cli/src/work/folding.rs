//! A merge outside a tree: by a fold of ours, or by a plugin's merge.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use offshoot_host::Merging;
use offshoot_merge::{Answer, Fold, OnFailure};
use offshoot_model::{Payload, Refusal, RefusalCode, RunId, RunStatus, SpawnRequest};
use offshoot_runtime::{
    Host, MergeFault, MergeInput, MergeJob, MergeValue, RunEvent, RunHost, WaitAnswer, WaitFor,
};
use offshoot_spawner::ExternalMerge;
use offshoot_store::Store;

use super::engine::block_on;
use super::pieces::merging as parse;
use crate::arguments::{LimitArguments, MergeArguments};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::load;
use crate::plugins;
use crate::record::failed;

/// A fold of ours, or a plugin's merge with one that counts.
pub(crate) struct Folding {
    fold: Fold,
    job: Option<Box<dyn MergeJob>>,
}

impl Folding {
    /// Begins it.
    pub(crate) fn begin(arguments: &MergeArguments, cx: &Invocation) -> Result<Self, Failure> {
        let merging = parse(&arguments.strategy)?;
        if let Merging::Strategy(strategy) = merging {
            return Ok(Self { fold: Fold::new(strategy, OnFailure::Fail), job: None });
        }
        let config = load::config(cx, &LimitArguments::default())?;
        let plugins = plugins::plugins(&arguments.plugins.plugin_path, &config, cx)?;
        let external = merging.load(|name| plugins.merge(name))?.expect("it is no strategy");
        let begun = external.merge.begin(&external.params, RunHost::new(NoTree));
        let job = begun.map_err(|fault| wrong(&fault))?;
        Ok(Self { fold: Fold::elsewhere(OnFailure::Fail), job: Some(job) })
    }

    /// Takes one result; what is stored, from this store.
    pub(crate) fn push(
        &mut self,
        place: u32,
        key: Arc<str>,
        value: Payload,
        store: Option<&dyn Store>,
    ) -> Result<(), Failure> {
        if let Some(job) = self.job.as_mut().filter(|_| !self.fold.stands()) {
            let value = match &value {
                Payload::Text(text) => MergeValue::Text(Arc::clone(text)),
                Payload::Json(json) => MergeValue::Json(json.clone()),
                Payload::Stored(reference) => {
                    let store = store.expect("what is stored comes from a store");
                    store.verify(reference).map_err(|error| failed(&error))?;
                    let path = store.path(reference).map_err(|error| failed(&error))?;
                    MergeValue::File { path, kind: reference.kind, size: reference.size }
                }
            };
            let input = MergeInput { key: Arc::clone(&key), status: RunStatus::Completed, value };
            if let Some(answer) = job.push(place, input).map_err(|fault| wrong(&fault))? {
                self.fold.give(ExternalMerge::payload(answer), true);
            }
        }
        if let (Some(reference), Some(store)) = (self.fold.unread(&value), store) {
            let bytes = store.read(&reference).map_err(|error| failed(&error))?;
            self.fold.learn(&reference, &bytes);
        }
        self.fold.push(place, key, Ok(value));
        Ok(())
    }

    /// The answer to so many results.
    pub(crate) fn finish(mut self, count: u32) -> Result<Answer, Failure> {
        let stands = self.fold.stands();
        if let Some(mut job) = self.job.filter(|_| !stands) {
            let answer = block_on(async { job.finish().await.map_err(|fault| wrong(&fault)) })?;
            self.fold.give(ExternalMerge::payload(answer), false);
        }
        let finished = self.fold.finish(count);
        finished.map_err(|error| Failure::of(Exit::BadInput, &error).maybe_hint(error.hint()))
    }
}

/// Outside a tree, a merge that needs an agent gets none.
struct NoTree;

impl Host for NoTree {
    fn hear(&self, _event: RunEvent) {}

    fn spawn(&self, _request: SpawnRequest) -> BoxFuture<'static, Result<RunId, Refusal>> {
        Box::pin(async { Err(no_agents()) })
    }

    fn wait(&self, _wait: WaitFor) -> BoxFuture<'static, Result<WaitAnswer, Refusal>> {
        Box::pin(async { Err(no_agents()) })
    }
}

fn no_agents() -> Refusal {
    Refusal::new(RefusalCode::UnknownCaller, "a merge outside a tree has no agents")
}

fn wrong(fault: &MergeFault) -> Failure {
    Failure::of(Exit::BadInput, fault)
}
