//! The task of one run: prepares its launch, lets its runtime run it, and keeps what it answered.

mod host;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt;
use offshoot_model::{
    ContextEntry, Ending, InputRange, Payload, Reason, RunId, ValueKind, VariableRef, error_chain,
};
use offshoot_runtime::{ContextFile, Finished, Input, Launch, Output, RunContext};
use offshoot_split::HeldPiece;
use offshoot_store::{ManifestEntry, NewValue, StoreError};
use thin_vec::ThinVec;
use tokio::sync::mpsc;

use crate::attempt_watch::AttemptWatch;
use crate::machine::{Outcome, RunIndex, Session};
use crate::message::{Message, busy};
use crate::request::Prepared;
use crate::tree_context::{INLINE_BYTES, TreeContext};

pub(crate) use host::{AgentHost, TOOL_USES};

/// The task of one run. Its supervisor is told how it ended, unless both are dropped with the runtime of tokio: then the run is
/// interrupted like one whose supervisor was killed, and a later supervisor decides about it.
pub(crate) struct Task {
    pub(crate) tree: Arc<TreeContext>,
    pub(crate) run: RunIndex,
    pub(crate) id: RunId,
    pub(crate) sender: mpsc::UnboundedSender<Message>,
    /// The end of the run, once the run is over.
    pub(crate) outcome: Option<Box<Outcome>>,
    /// The watch over this attempt.
    pub(crate) watch: AttemptWatch,
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
            let (limit, runtime) = (session.grant.max_output_bytes, Arc::clone(&prepared.runtime));
            let outcome = 'outcome: {
                let _given = Given::to(&task.tree, task.id, &prepared.context);
                let piece = match hold(prepared.input.take()).await {
                    Ok(piece) => piece,
                    Err(reason) => break 'outcome Ending::of(reason).into(),
                };
                let context = std::mem::take(&mut prepared.context);
                let linked = match link(&task.tree, task.id, context).await {
                    Ok(linked) => linked,
                    Err(error) => {
                        let message = error_chain(&error);
                        break 'outcome Ending::of(Reason::CannotStart { message }).into();
                    }
                };
                let input =
                    piece.as_ref().map_or(Input::Prompt, |piece| Input::Piece(piece.range()));
                let launch = launch(&task.tree, task.id, session, *prepared, input, linked);
                let started = catch_unwind(AssertUnwindSafe(|| runtime.start(launch, cx)));
                let finished = match started {
                    Ok(running) => AssertUnwindSafe(running).catch_unwind().await,
                    Err(panic) => Err(panic),
                };
                drop(piece);
                if let Some(ticket_issuer) = &task.tree.ticket_issuer {
                    ticket_issuer.ended(task.id);
                }
                kept(&task.tree, finished.unwrap_or_else(|panic| panicked(&*panic)), limit).await
            };
            task.watch.settle(&task.tree.clock, busy(&task.sender, task.run)).await;
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
        let _ = self.sender.send(Message::Finished { run: self.run, outcome });
    }
}

/// Keeps what a runtime answered. An answer that is too large, or that cannot be kept, is the reason of the ending.
async fn kept(tree: &Arc<TreeContext>, finished: Finished, limit: u64) -> Outcome {
    let Finished { mut reason, output, diagnostics, usage, cost, retry_after } = finished;
    let output = match keep(tree, output).await {
        Ok(output) => {
            let size = output.as_ref().map_or(0, Payload::size);
            if limit > 0 && size > limit && reason.status().is_success() {
                reason = Reason::OutputLimit { bytes: limit };
            }
            output
        }
        Err(error) => {
            reason = Reason::NotRecorded { message: error_chain(&error) };
            None
        }
    };
    let ending = Ending { output, diagnostics, ..Ending::of(reason) };
    Outcome { ending, usage, cost, retry_after }
}

/// Opens the file of a run's piece, so that it stays the same for as long as the run lasts.
async fn hold(range: Option<Box<InputRange>>) -> Result<Option<HeldPiece>, Reason> {
    let Some(range) = range else { return Ok(None) };
    let held = tokio::task::spawn_blocking(|| HeldPiece::open(*range)).await;
    held.expect("opening a file does not panic").map(Some).map_err(|error| {
        let message = error_chain(&error);
        match error.is_pressure() {
            true => Reason::NoRoom { message },
            false => Reason::CannotStart { message },
        }
    })
}

/// Context values that a run holds until it ends, in whatever way it ends.
struct Given<'a> {
    tree: &'a TreeContext,
    run: RunId,
}

impl<'a> Given<'a> {
    fn to(tree: &'a TreeContext, run: RunId, context: &[ContextEntry]) -> Option<Self> {
        if context.is_empty() {
            return None;
        }
        tree.contexts.give(run, context.into());
        Some(Self { tree, run })
    }
}

impl Drop for Given<'_> {
    fn drop(&mut self) {
        self.tree.contexts.forget(self.run);
    }
}

fn launch(
    tree: &TreeContext,
    run: RunId,
    session: Session,
    prepared: Prepared,
    input: Input,
    (context, context_manifest): Linked,
) -> Launch {
    let Session { key, agent, depth, grant, inline_bytes: _, may_retry: _ } = session;
    let Prepared { task, command, model, thinking, run_spec, continues, .. } = prepared;
    let definition = tree.config.agent(&agent);
    Launch {
        run,
        root: tree.root,
        key,
        agent: agent.clone(),
        depth,
        context,
        context_manifest,
        task,
        input,
        command,
        ok_exit: Arc::clone(&run_spec.ok_exit),
        output: run_spec.output,
        working_folder: Arc::clone(&run_spec.working_folder),
        run_folder: tree.folder.run_folder(run),
        spool_folder: Arc::clone(&tree.spool_folder),
        model,
        thinking,
        system_prompt: definition
            .and_then(|agent| agent.system_prompt.as_ref())
            .map(|prompt| prompt.value.as_str().into()),
        grant,
        continues,
        pass: tree.ticket_issuer.as_ref().and_then(|issuer| issuer.issue(tree.root, run)),
    }
}

/// The files of a run's context, and their manifest.
type Linked = (Vec<ContextFile>, Option<PathBuf>);

/// Puts the values of a run's context where it can read them, and lists them in a manifest.
async fn link(
    tree: &Arc<TreeContext>,
    run: RunId,
    context: ThinVec<ContextEntry>,
) -> Result<Linked, StoreError> {
    if context.is_empty() {
        return Ok((Vec::new(), None));
    }
    let tree = Arc::clone(tree);
    let link_all = move || {
        let link = |ContextEntry { name, value }: ContextEntry| {
            let path = tree.folder.context_link(&*tree.store, run, &name, &value)?;
            Ok(ContextFile { name, path, value })
        };
        let files: Vec<ContextFile> = context.into_iter().map(link).collect::<Result<_, _>>()?;
        let entries: Vec<ManifestEntry<'_>> = files
            .iter()
            .map(|file| ManifestEntry { name: &file.name, path: &file.path, value: file.value })
            .collect();
        let manifest = tree.folder.write_manifest(run, &entries)?;
        Ok((files, Some(manifest)))
    };
    tokio::task::spawn_blocking(link_all).await.expect("linking files does not panic")
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
