//! The data that a run reads: its context values, the answers that it needs, and its input.
//!
//! All of it is looked up, put in its place and opened by one visit to a thread that may block. Where all is in its place already, as for
//! most pieces of a map, it is small files that are read before the start: a run that needs a small answer starts about as fast as one
//! that needs none.

use std::path::PathBuf;
use std::sync::Arc;

use offshoot_model::{
    ContextEntry, InputRange, Need, Payload, Reason, RunId, ValueKind, VariableRef, error_chain,
};
use offshoot_runtime::{ContextFile, Input};
use offshoot_split::{HeldPiece, SplitError};
use offshoot_store::{SharedContext, StoreError};

use crate::blocking::blocking;
use crate::request::Prepared;
use crate::stored_values::recorded_all;
use crate::tree_context::TreeContext;

/// The data of a run, in its place until this is dropped.
#[derive(Default)]
pub(super) struct Reading {
    context: Vec<ContextFile>,
    manifest: Option<PathBuf>,
    piece: Option<HeldPiece>,
    _given: Option<Given>,
}

/// The names of the data of a run, as it was asked for.
struct Wanted {
    needs: Vec<(Arc<str>, RunId)>,
    context: Vec<ContextEntry>,
    input: Option<InputRange>,
    /// True if the answer that it needs is its input.
    reads_need: bool,
}

impl Reading {
    /// Puts everything in its place that a run with these needs reads.
    pub(super) async fn of(
        tree: &Arc<TreeContext>,
        run: RunId,
        needs: &[(Arc<str>, RunId)],
        prepared: &mut Prepared,
    ) -> Result<Self, Reason> {
        let context = std::mem::take(&mut prepared.context);
        let input = prepared.input.take();
        if needs.is_empty() && context.is_empty() && input.is_none() && !prepared.reads_need {
            return Ok(Self::default());
        }
        let wanted = Wanted {
            needs: needs.to_vec(),
            context: context.into_iter().collect(),
            input: input.map(|input| *input),
            reads_need: prepared.reads_need,
        };
        if let Some(reading) = wanted.known(tree, run) {
            return Ok(reading);
        }
        let tree = Arc::clone(tree);
        blocking(move || wanted.read(&tree, run)).await
    }

    /// Takes the files of the context, their manifest, and the input.
    pub(super) fn take(&mut self) -> (Vec<ContextFile>, Option<PathBuf>, Input) {
        let input = self.piece.as_ref().map_or(Input::Prompt, |it| Input::Piece(it.range()));
        (std::mem::take(&mut self.context), self.manifest.take(), input)
    }
}

impl Wanted {
    /// Returns what is in its place already, and small.
    fn known(&self, tree: &Arc<TreeContext>, run: RunId) -> Option<Reading> {
        if self.input.is_some() || self.reads_need {
            return None;
        }
        let (mut context, now) = (self.context.clone(), tree.clock.now());
        for (name, needed) in &self.needs {
            let answer = tree.answers.get(*needed)?;
            let value = match answer.at_hand() {
                Ok(text) => tree.copies.get(answer.kind(), text.as_bytes(), now)?,
                Err(value) => *value,
            };
            context.push(ContextEntry { name: Need::variable(name).into(), value });
        }
        let shared = tree.shared_contexts.known(&context)?;
        let given = Given::to(tree, run, &context);
        let (context, manifest) = (files_of(context, shared.files), Some(shared.manifest));
        Some(Reading { context, manifest, piece: None, _given: given })
    }

    fn read(self, tree: &Arc<TreeContext>, run: RunId) -> Result<Reading, Reason> {
        let Self { needs, mut context, mut input, reads_need } = self;
        let mut answers = answers(tree, needs).map_err(cannot_start)?;
        if reads_need {
            let answer = answers.pop().map(|answer| Ok(answer.value));
            let answer = answer.unwrap_or_else(|| tree.store.put_copy(ValueKind::Text, &[].into()));
            input = Some(answer.and_then(|answer| whole(tree, answer)).map_err(cannot_start)?);
        }
        context.extend(answers);
        let given = Given::to(tree, run, &context);
        let piece = input.map(|range| hold(tree, range)).transpose()?;
        let (context, manifest) = link(tree, context).map_err(cannot_start)?;
        Ok(Reading { context, manifest, piece, _given: given })
    }
}

fn cannot_start(error: StoreError) -> Reason {
    Reason::CannotStart { message: error_chain(&error) }
}

/// Returns the answers that a run needs, as values of its context: those that are held, and the others from the record.
fn answers(
    tree: &TreeContext,
    needs: Vec<(Arc<str>, RunId)>,
) -> Result<Vec<ContextEntry>, StoreError> {
    let held: Vec<Option<Payload>> = needs.iter().map(|(_, run)| tree.answers.get(*run)).collect();
    let unread = needs.iter().zip(&held).filter(|(_, held)| held.is_none());
    let unread: Vec<RunId> = unread.map(|((_, run), _)| *run).collect();
    let read = (!unread.is_empty()).then(|| recorded_all(&*tree.store, tree.root, &unread));
    let mut read = read.into_iter().flatten();
    let mut context = Vec::with_capacity(needs.len());
    for ((name, _), held) in needs.iter().zip(held) {
        let answer = match held {
            Some(answer) => answer,
            None => {
                let envelope = read.next().expect("each was asked for")?;
                let envelope =
                    envelope.expect("an answer that is not held is durable before the start");
                let Ok(answer) = envelope.into_result() else { continue };
                answer
            }
        };
        let value = match answer.at_hand() {
            Ok(text) => {
                let copied = tree.store.put_copy(answer.kind(), &text.as_bytes().into())?;
                tree.copies.made(copied, tree.clock.now());
                copied
            }
            Err(value) => *value,
        };
        context.push(ContextEntry { name: Need::variable(name).into(), value });
    }
    Ok(context)
}

/// Returns a whole value as an input, compared with its hash: an agent may have written into its file.
fn whole(tree: &TreeContext, value: VariableRef) -> Result<InputRange, StoreError> {
    tree.store.verify(&value)?;
    let path = tree.store.path(&value)?.into();
    Ok(InputRange { path, offset: 0, length: value.size, header: 0, hash: Some(value.hash) })
}

/// Opens the file of a run's piece, so that it stays the same for as long as the run lasts.
fn hold(tree: &TreeContext, range: InputRange) -> Result<HeldPiece, Reason> {
    HeldPiece::open(range, &tree.spool_folder).map_err(|error| {
        let message = error_chain(&error);
        match error {
            error if error.is_pressure() => Reason::NoRoom { message },
            SplitError::Spool { .. } => Reason::NotRecorded { message },
            _ => Reason::InputUnreadable { message },
        }
    })
}

/// Puts the values of a run's context where it can read them, with their list.
fn link(
    tree: &TreeContext,
    context: Vec<ContextEntry>,
) -> Result<(Vec<ContextFile>, Option<PathBuf>), StoreError> {
    if context.is_empty() {
        return Ok((Vec::new(), None));
    }
    let SharedContext { files, manifest } = tree.shared_contexts.of(&*tree.store, &context)?;
    Ok((files_of(context, files), Some(manifest)))
}

fn files_of(context: Vec<ContextEntry>, paths: Vec<PathBuf>) -> Vec<ContextFile> {
    let file = |(entry, path)| {
        let ContextEntry { name, value } = entry;
        ContextFile { name, path, value }
    };
    context.into_iter().zip(paths).map(file).collect()
}

/// Context values that a run holds until it ends, in whatever way it ends.
struct Given {
    tree: Arc<TreeContext>,
    run: RunId,
}

impl Given {
    fn to(tree: &Arc<TreeContext>, run: RunId, context: &[ContextEntry]) -> Option<Self> {
        if context.is_empty() {
            return None;
        }
        tree.contexts.lock().insert(run, context.into());
        Some(Self { tree: Arc::clone(tree), run })
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        self.tree.contexts.lock().remove(&self.run);
    }
}
