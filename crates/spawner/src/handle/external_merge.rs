//! Merges that are not ours: a plugin's, or a library user's.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use offshoot_merge::{Fold, MergeError};
use offshoot_model::{
    Delegated, Envelope, JsonText, Payload, Refusal, RefusalCode, RunId, RunStatus, SpawnRequest,
    Stream, ValueKind, VariableRef,
};
use offshoot_runtime::{
    Host, Merge, MergeFault, MergeInput, MergeJob, MergeValue, Ruling, RunEvent, RunHost,
    ToolOffer, WaitAnswer, WaitFor,
};
use offshoot_store::Store;
use tokio::sync::Semaphore;

use crate::attempt_watch::AttemptWatch;
use crate::handle::agents::Agents;
use crate::machine::RunIndex;
use crate::message::link::Link;
use crate::task::AgentHost;
use crate::tree_context::MergeThreads;

/// A merge with its parameters.
#[derive(Clone, derive_more::Debug)]
#[debug("ExternalMerge({}, {params:?})", merge.name())]
pub struct ExternalMerge {
    /// The merge.
    pub merge: Arc<dyn Merge>,
    /// Parameters of the merge; `null` where there are none.
    pub params: JsonText,
}

impl ExternalMerge {
    /// Converts an answer into a payload. A JSON string becomes the text.
    pub fn payload(answer: JsonText) -> Payload {
        match serde_json::from_str::<String>(answer.as_str()) {
            Ok(text) => Payload::text(text),
            Err(_) => Payload::Json(answer),
        }
    }
}

/// Results up to this size are handed over; larger ones stay in their file.
const HANDED_OVER: u64 = 16 << 20;

/// A merge under way.
pub(super) struct ExternalMergeJob {
    /// None while a push has it, and after one that failed or was given up.
    job: Option<Box<dyn MergeJob>>,
    store: Arc<dyn Store>,
    threads: MergeThreads,
    stands: bool,
    fault: Option<MergeFault>,
}

impl ExternalMergeJob {
    /// Begins it for the root.
    pub(super) async fn of_root(external: &ExternalMerge, link: &Link) -> Result<Self, MergeError> {
        let tree = &link.tree;
        let root = AgentHost {
            link: link.clone(),
            attempt: 1,
            run: RunIndex::ROOT,
            id: tree.root.run(),
            agent: tree.agent.clone(),
            inline_bytes: u64::MAX,
            // A merge has no process, and uses no tools.
            watch: AttemptWatch::default(),
            output: None,
            form: None,
            tools: Arc::new(Semaphore::new(0)),
        };
        let (store, threads) = (Arc::clone(&tree.store), tree.merging.clone());
        Self::begin(external, store, threads, MergeHost::Root(root)).await.map_err(failed)
    }

    /// Begins it with this host.
    ///
    /// # Errors
    ///
    /// The merge cannot use its parameters, or panicked over them.
    pub(super) async fn begin(
        ExternalMerge { merge, params }: &ExternalMerge,
        store: Arc<dyn Store>,
        threads: MergeThreads,
        host: MergeHost,
    ) -> Result<Self, MergeFault> {
        let (merge, params) = (Arc::clone(merge), params.clone());
        let job = threads.run(move || merge.begin(&params, RunHost::new(host))).await?;
        Ok(Self { job: Some(job), store, threads, stands: false, fault: None })
    }

    /// Returns true if there will be no answer.
    pub(super) fn has_failed(&self) -> bool {
        self.fault.is_some()
    }

    /// Hands one result over, which is done once for each place. An early answer goes to the fold, which is one for a merge
    /// [made elsewhere](Fold::elsewhere). Dropping the future gives the merge up.
    pub(super) async fn push(
        &mut self,
        place: u32,
        key: Arc<str>,
        result: Result<Payload, Box<Envelope>>,
        fold: &mut Fold,
    ) {
        if self.stands {
            return;
        }
        let Some(mut job) = self.job.take() else { return };
        let store = Arc::clone(&self.store);
        // A merge may take its time over a value, and a value may have to be read: neither is for a thread that others
        // need.
        let pushed = self.threads.run(move || {
            let status =
                result.as_ref().map_or_else(|envelope| envelope.status, |_| RunStatus::Completed);
            let value = value(result, &*store)?;
            let early = job.push(place, MergeInput { key, status, value })?;
            Ok((job, early))
        });
        match pushed.await {
            Ok((job, early)) => {
                self.job = Some(job);
                if let Some(answer) = early {
                    self.stands = true;
                    fold.give(ExternalMerge::payload(answer), true);
                }
            }
            Err(fault) => self.fault = Some(fault),
        }
    }

    /// Asks for the answer, which goes to the fold.
    ///
    /// # Errors
    ///
    /// The merge could not take a result, was given up, or has no answer.
    pub(super) async fn finish(self, fold: &mut Fold) -> Result<(), MergeError> {
        if let Some(fault) = self.fault {
            return Err(failed(fault));
        }
        if self.stands {
            return Ok(());
        }
        let given_up = || failed(MergeFault::new("the merge was given up"));
        let mut job = self.job.ok_or_else(given_up)?;
        fold.give(ExternalMerge::payload(job.finish().await.map_err(failed)?), false);
        Ok(())
    }
}

fn failed(fault: MergeFault) -> MergeError {
    MergeError::Elsewhere { message: fault.message }
}

/// Converts the answer of a piece into the value that a merge takes.
fn value(
    result: Result<Payload, Box<Envelope>>,
    store: &dyn Store,
) -> Result<MergeValue, MergeFault> {
    let reference = match result {
        Ok(Payload::Text(text)) => return Ok(MergeValue::Text(text)),
        Ok(Payload::Json(json)) => return Ok(MergeValue::Json(json)),
        Err(envelope) => {
            let json = JsonText::of(&envelope).expect("an envelope is plain data");
            return Ok(MergeValue::Json(json));
        }
        Ok(Payload::Stored(reference)) => reference,
    };
    let unreadable =
        |error: &dyn fmt::Display| MergeFault::new(format!("a result cannot be read: {error}"));
    let VariableRef { size, kind, .. } = reference;
    if kind == ValueKind::Bytes || size > HANDED_OVER {
        // The merge reads the file by itself, and would not notice that it was changed.
        store.verify(&reference).map_err(|error| unreadable(&error))?;
        let path = store.path(&reference).map_err(|error| unreadable(&error))?;
        return Ok(MergeValue::File { path, kind, size });
    }
    let bytes = store.read(&reference).map_err(|error| unreadable(&error))?;
    let text = String::from_utf8(bytes).map_err(|error| unreadable(&error))?;
    match kind {
        ValueKind::Json | ValueKind::Result => {
            JsonText::parse(text).map(MergeValue::Json).map_err(|error| unreadable(&error))
        }
        ValueKind::Text | ValueKind::Bytes => Ok(MergeValue::Text(text.into())),
    }
}

/// The host of a merge: what the merge asks for is asked for by a run, through the same admission. Its events are no
/// progress of any run, and it has no turns.
pub(super) enum MergeHost {
    /// Of the root.
    Root(AgentHost),
    /// Of a run below it. A merge that keeps its host does not keep the tree.
    Run { agents: Agents, caller: RunId },
    /// Outside of any tree.
    NoAgents,
}

fn no_agents<T>() -> Result<T, Refusal> {
    Err(Refusal::new(RefusalCode::UnknownCaller, "a merge outside a tree has no agents"))
}

#[deny(clippy::missing_trait_methods, reason = "what a merge may ask for is decided here")]
impl Host for MergeHost {
    fn hear(&self, _event: RunEvent) {}

    fn memory_short(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn sign(&self) {}

    fn said(&self, _stream: Stream, _bytes: &[u8]) {}

    fn spawn(&self, request: SpawnRequest) -> BoxFuture<'static, Result<RunId, Refusal>> {
        match self {
            Self::Root(root) => root.spawn(request),
            Self::Run { agents, caller } => {
                let (agents, caller) = (agents.clone(), *caller);
                Box::pin(async move { Ok(agents.spawn(caller, request).await?.run) })
            }
            Self::NoAgents => Box::pin(async { no_agents() }),
        }
    }

    fn delegate(
        &self,
        request: SpawnRequest,
        choose_only: bool,
    ) -> BoxFuture<'static, Result<Delegated, Refusal>> {
        match self {
            Self::Root(root) => root.delegate(request, choose_only),
            Self::Run { agents, caller } => {
                let (agents, caller) = (agents.clone(), *caller);
                Box::pin(async move { agents.delegate(caller, request.into(), choose_only).await })
            }
            Self::NoAgents => Box::pin(async { no_agents() }),
        }
    }

    fn observed(&self, observation: u32, success: bool) -> BoxFuture<'static, Result<(), Refusal>> {
        match self {
            Self::Root(root) => root.observed(observation, success),
            Self::Run { agents, caller } => {
                let (agents, caller) = (agents.clone(), *caller);
                Box::pin(async move { agents.observed(caller, observation, success).await })
            }
            Self::NoAgents => Box::pin(async { no_agents() }),
        }
    }

    fn wait(&self, wait: WaitFor) -> BoxFuture<'static, Result<WaitAnswer, Refusal>> {
        match self {
            Self::Root(root) => root.wait(wait),
            Self::Run { agents, caller } => {
                let (agents, caller) = (agents.clone(), *caller);
                Box::pin(async move { agents.wait(caller, wait).await })
            }
            Self::NoAgents => Box::pin(async { no_agents() }),
        }
    }

    // A merge starts agents, and has nothing else to ask.
    fn goes_on(&self) -> BoxFuture<'static, bool> {
        Box::pin(async { true })
    }

    fn tools(&self) -> BoxFuture<'static, Vec<ToolOffer>> {
        Box::pin(async { Vec::new() })
    }

    fn call_tool(&self, name: &str, _arguments: &str) -> BoxFuture<'static, JsonText> {
        let refusal = Refusal::invalid("name", format!("there is no tool `{name}`"));
        Box::pin(async move { JsonText::of(&refusal).expect("a refusal is plain data") })
    }

    fn turn_ended(&self, _answer: Option<Arc<str>>, _taken: u32) -> BoxFuture<'static, Ruling> {
        Box::pin(async { Ruling::End })
    }
}

impl fmt::Display for ExternalMerge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "plugin:{}", self.merge.name())?;
        match self.params.as_str() {
            "null" => Ok(()),
            params => write!(f, "={params}"),
        }
    }
}
