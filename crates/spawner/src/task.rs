//! The task of one run: prepares its launch, lets its runtime run it, and keeps what it answered.

mod form;
mod host;
mod own_folder;
mod own_words;
mod reading;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt;
use offshoot_model::{
    Ending, JsonText, Payload, Reason, RunId, ValueKind, VariableRef, error_chain,
};
use offshoot_runtime::{
    ContextFile, Finished, Input, Launch, MeterPass, Output, OutputFormat, RunContext,
};
use offshoot_store::{AttemptOutput, NewValue, StoreError};

use crate::attempt_watch::AttemptWatch;
use crate::blocking::blocking;
use crate::machine::{Outcome, RunIndex, Session};
use crate::message::Message;
use crate::message::link::Link;
use crate::request::Prepared;
use crate::ticket_issuer::MeterOrder;
use crate::tree_context::{INLINE_BYTES, TreeContext, summary};

pub(crate) use form::Form;
pub(crate) use host::{AgentHost, TOOL_USES};
use reading::Reading;

/// The task of one run. Its supervisor is told how it ended, unless both are dropped with the runtime of tokio: then the run is
/// interrupted like one whose supervisor was killed, and a later supervisor decides about it.
pub(crate) struct Task {
    pub(crate) link: Link,
    pub(crate) run: RunIndex,
    pub(crate) id: RunId,
    /// The end of the run, once the run is over.
    pub(crate) outcome: Option<Box<Outcome>>,
    /// The watch over this attempt.
    pub(crate) watch: AttemptWatch,
    /// The keeper of what it says; none where nothing is kept.
    pub(crate) output: Option<AttemptOutput>,
}

impl Task {
    /// Runs the run to its end. Everything it started is gone when this answers. A panic of a runtime is its own failure.
    #[expect(
        clippy::manual_async_fn,
        reason = "an `async fn` has room for its arguments twice, and this is allocated and copied for each run"
    )]
    pub(crate) fn run(
        self,
        session: Session,
        mut prepared: Box<Prepared>,
        cx: RunContext,
    ) -> impl Future<Output = ()> + Send {
        async move {
            let mut task = self;
            let tree = &task.link.tree;
            let (limit, runtime) = (session.grant.max_output_bytes, Arc::clone(&prepared.runtime));
            let schema = prepared.schema.clone();
            let outcome = 'outcome: {
                if let Err(reason) = own_folder::take(tree, task.id, &mut prepared).await {
                    break 'outcome Ending::of(reason).into();
                }
                let folder = Arc::clone(&prepared.run_spec.working_folder);
                let reading = Reading::of(tree, task.id, &session.needs, &mut prepared).await;
                let mut reading = match reading {
                    Ok(reading) => reading,
                    Err(reason) => break 'outcome Ending::of(reason).into(),
                };
                let meter = match metered(tree, task.id, &session, runtime.name()) {
                    Ok(meter) => meter,
                    Err(message) => {
                        break 'outcome Ending::of(Reason::CannotStart { message }).into();
                    }
                };
                let launch = launch(tree, task.id, session, *prepared, reading.take());
                let launch = Launch { meter, ..launch };
                let started = catch_unwind(AssertUnwindSafe(|| runtime.start(launch, cx)));
                let finished = match started {
                    Ok(running) => AssertUnwindSafe(running).catch_unwind().await,
                    Err(panic) => Err(panic),
                };
                drop(reading);
                if let Some(ticket_issuer) = &tree.ticket_issuer {
                    ticket_issuer.ended(task.id).await;
                }
                let finished = in_its_folder(finished.unwrap_or_else(|p| panicked(&*p)), folder);
                kept(tree, finished.await, limit, schema).await
            };
            let mut outcome = own_folder::bring_back(tree, task.id, outcome).await;
            if let Some(output) = &task.output {
                if !outcome.ending.status().is_success() {
                    outcome.last_words = output.last_words();
                }
                output.end(tree.clock.now());
            }
            task.watch.settle(&tree.clock, task.link.busy(task.run)).await;
            task.outcome = Some(Box::new(outcome));
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        let outcome = match self.outcome.take() {
            Some(outcome) => outcome,
            None if std::thread::panicking() => {
                let message = "its task panicked".to_owned();
                Box::new(Ending::of(Reason::RuntimeError { message, retryable: false }).into())
            }
            None => return,
        };
        // The supervisor outlives its runs, unless everything is torn down at once.
        let _ = self.link.tell(Message::Finished { run: self.run, outcome });
    }
}

/// Keeps what a runtime answered. An answer that is too large, that has not the form that was asked for, or that cannot be kept,
/// is the reason of the ending.
async fn kept(
    tree: &Arc<TreeContext>,
    finished: Finished,
    limit: u64,
    schema: Option<JsonText>,
) -> Outcome {
    let Finished { mut reason, output, diagnostics, usage, cost, retry_after } = finished;
    let output = match keep(tree, output).await {
        Ok(mut output) => {
            let size = output.as_ref().map_or(0, Payload::size);
            if limit > 0 && size > limit && reason.status().is_success() {
                reason = Reason::OutputLimit { bytes: limit };
            }
            if let (Some(schema), true) = (schema, reason.status().is_success()) {
                match form::of(tree, schema, output.as_ref()).await {
                    Ok(None) => {}
                    Ok(json) => output = json,
                    Err(mismatch) => reason = mismatch,
                }
            }
            output
        }
        Err(error) => {
            reason = Reason::NotRecorded { message: error_chain(&error) };
            None
        }
    };
    let said = match &output {
        Some(answer) if !reason.status().is_success() => own_words::of(tree, answer).await,
        _ => None,
    };
    let ending = Ending { output, diagnostics, said, ..Ending::of(reason) };
    Outcome { ending, usage, cost, retry_after, last_words: None }
}

/// The same, but that a run whose working folder is gone could not have been started: no fault of its program. A name with a
/// slash is looked for in that folder, so this is asked of every failed start.
async fn in_its_folder(finished: Finished, folder: Arc<PathBuf>) -> Finished {
    if !matches!(finished.reason, Reason::CannotStart { .. }) {
        return finished;
    }
    let look = move || (!folder.is_dir()).then(|| folder.display().to_string());
    match blocking(look).await {
        None => finished,
        Some(folder) => {
            let message = format!("the folder that it works in is gone: {folder}");
            Finished { reason: Reason::InputUnreadable { message }, ..finished }
        }
    }
}

/// Returns the way of a run to its model through the meter; none where it is not metered.
fn metered(
    tree: &TreeContext,
    run: RunId,
    session: &Session,
    runtime: &str,
) -> Result<Option<MeterPass>, String> {
    let Some(ticket_issuer) = &tree.ticket_issuer else { return Ok(None) };
    let &Session { left, allows_unknown_cost, pauses_at_cap, .. } = session;
    ticket_issuer.meter(MeterOrder { run, runtime, left, allows_unknown_cost, pauses_at_cap })
}

fn launch(
    tree: &TreeContext,
    run: RunId,
    session: Session,
    prepared: Prepared,
    (context, context_manifest, input): (Vec<ContextFile>, Option<PathBuf>, Input),
) -> Launch {
    let Session { key, agent, depth, delegation, grant, .. } = session;
    let Prepared { task, command, schema, model_choice, run_spec, continues, .. } = prepared;
    let model_choice = model_choice.as_deref();
    let definition = tree.config.agent(&agent);
    Launch {
        run,
        root: tree.root,
        key,
        agent: agent.clone(),
        depth,
        delegation,
        context,
        context_manifest,
        task,
        input,
        command,
        ok_exit: Arc::clone(&run_spec.ok_exit),
        output: if schema.is_some() { OutputFormat::Json } else { run_spec.output },
        schema,
        working_folder: Arc::clone(&run_spec.working_folder),
        run_folder: tree.folder.run_folder(run),
        spool_folder: Arc::clone(&tree.spool_folder),
        model: model_choice.and_then(|choice| choice.model.clone()),
        thinking: model_choice.and_then(|choice| choice.thinking.clone()),
        system_prompt: definition
            .and_then(|agent| agent.system_prompt.as_ref())
            .map(|prompt| prompt.value.as_str().into()),
        sub_agents: grant.agents.iter().map(|id| summary(id, &agent, &tree.config)).collect(),
        grant,
        continues,
        meter: None,
        pass: tree.ticket_issuer.as_ref().and_then(|issuer| issuer.issue(tree.root, run)),
    }
}

/// Keeps an answer: small text inline, the rest in the store.
pub(crate) async fn keep(
    tree: &Arc<TreeContext>,
    output: Output,
) -> Result<Option<Payload>, StoreError> {
    let stored = |value: VariableRef| Some(Payload::Stored(value));
    let put = |kind, bytes: Arc<[u8]>| tree.store.put(NewValue::bytes(kind, bytes));
    Ok(match output {
        Output::None => None,
        Output::Text(text) if text.len() <= INLINE_BYTES => Some(Payload::Text(text)),
        Output::Text(text) => stored(put(ValueKind::Text, text.into()).await?),
        Output::Json(json) if json.as_str().len() <= INLINE_BYTES => Some(Payload::Json(json)),
        Output::Json(json) => {
            stored(put(ValueKind::Result, json.as_str().as_bytes().into()).await?)
        }
        Output::Bytes(bytes) => stored(put(ValueKind::Bytes, bytes).await?),
        Output::File { path, kind } => stored(tree.store.put(NewValue::adopt(kind, path)).await?),
    })
}

fn panicked(panic: &(dyn Any + Send)) -> Finished {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("with something that is no text");
    let message = format!("the runtime panicked: {text}");
    Finished::of(Reason::RuntimeError { message, retryable: false })
}
