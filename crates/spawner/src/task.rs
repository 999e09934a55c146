//! The task of one run: prepares its launch, lets its runtime run it, and keeps what it answered.

mod host;

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt;
use offshoot_model::{
    ContextEntry, Ending, InputRange, Payload, Reason, RunId, ValueKind, VariableRef, error_chain,
};
use offshoot_runtime::{ContextFile, Finished, Input, Launch, Output, RunContext};
use offshoot_split::HeldPiece;
use offshoot_store::{ManifestEntry, NewValue, StoreError};

use crate::machine::{Outcome, Session};
use crate::request::Prepared;
use crate::tree_context::{INLINE_BYTES, TreeContext};

pub(crate) use host::AgentHost;

/// Runs one run to its end. Everything it started is gone when this answers. A panic of a runtime is its own failure.
pub(crate) async fn run(
    tree: Arc<TreeContext>,
    run: RunId,
    session: Session,
    mut prepared: Box<Prepared>,
    cx: RunContext,
) -> Outcome {
    let runtime = Arc::clone(&prepared.runtime);
    let limit = session.grant.max_output_bytes;
    let _given = Given::to(&tree, run, &prepared.context);
    let piece = match hold(prepared.input.take()).await {
        Ok(piece) => piece,
        Err(reason) => return Ending::of(reason).into(),
    };
    let input = piece.as_ref().map_or(Input::Prompt, |piece| Input::Piece(piece.range()));
    let launch = match launch(&tree, run, session, prepared, input).await {
        Ok(launch) => launch,
        Err(error) => {
            return Ending::of(Reason::CannotStart { message: error_chain(&error) }).into();
        }
    };
    let started = AssertUnwindSafe(async { runtime.start(launch, cx).await });
    let finished = started.catch_unwind().await.unwrap_or_else(|panic| {
        let message = format!("the runtime panicked: {}", panic_text(&*panic));
        Finished::of(Reason::RuntimeError { message, retryable: false })
    });
    drop(piece);
    if let Some(ticket_issuer) = &tree.ticket_issuer {
        ticket_issuer.ended(run);
    }
    let Finished { mut reason, output, diagnostics, usage, cost, retry_after } = finished;
    let output = match keep(&tree, output).await {
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
async fn hold(range: Option<InputRange>) -> Result<Option<HeldPiece>, Reason> {
    let Some(range) = range else { return Ok(None) };
    let held = tokio::task::spawn_blocking(|| HeldPiece::open(range)).await;
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

async fn launch(
    tree: &Arc<TreeContext>,
    run: RunId,
    session: Session,
    prepared: Box<Prepared>,
    input: Input,
) -> Result<Launch, StoreError> {
    let Session { key, agent, depth, grant, inline_bytes: _, may_retry: _ } = session;
    let Prepared { task, context, command, model, thinking, run_spec, continues, .. } = *prepared;
    let definition = tree.config.agent(&agent);
    let (context, context_manifest) = link(tree, run, context).await?;
    Ok(Launch {
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
    })
}

/// Puts the values of a run's context where it can read them, and lists them in a manifest.
async fn link(
    tree: &Arc<TreeContext>,
    run: RunId,
    context: Vec<ContextEntry>,
) -> Result<(Vec<ContextFile>, Option<PathBuf>), StoreError> {
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

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("with something that is no text")
}
