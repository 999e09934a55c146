//! Stored results, opened for writing an answer.

use std::io::{self, Write};
use std::sync::Arc;

use offshoot_merge::{Answer, AnswerKind, Fold, Values};
use offshoot_model::{Envelope, JsonText, Payload, RootId, RunId, ValueKind, VariableRef};
use offshoot_store::{DataFolder, NewValue, Store, StoreError, ValueFile, WholeCopies};

use crate::blocking::blocking;
use crate::error::SpawnerError;

/// The values of a store, as a merge wants them.
#[derive(Clone, derive_more::Debug)]
#[debug("StoredValues")]
pub struct StoredValues {
    store: Arc<dyn Store>,
    /// The tree, and its runs whose results a fold did not hold, by their place in the request.
    runs: Option<(RootId, Arc<[RunId]>)>,
}

impl StoredValues {
    /// The values of this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, runs: None }
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// With the results of these runs of a tree, in the order of the request.
    #[must_use]
    pub fn with_results_of(self, root: RootId, runs: Arc<[RunId]>) -> Self {
        Self { runs: Some((root, runs)), ..self }
    }

    /// Writes an answer with these values, as [`Answer::write_to`].
    ///
    /// # Errors
    ///
    /// Fails if `out` fails or a value cannot be read.
    pub fn write(&self, answer: &Answer, out: &mut dyn Write) -> io::Result<()> {
        answer.write_to(out, self)
    }

    /// Writes an answer with these values into a file. Large values that are parts of the answer as they are do not pass
    /// through this process: the kernel copies them, and each copy is verified where it lies, while the next value is copied.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written, or a value cannot be read or is not what was stored.
    pub fn write_file(&self, answer: &Answer, file: &ValueFile) -> io::Result<()> {
        file.fill(|copies| {
            let mut out = copies;
            answer.write_to(&mut out, &CopiedValues { values: self, copies })
        })
    }

    /// Writes an answer as a value of the store, by way of a file in this folder.
    ///
    /// # Errors
    ///
    /// Fails where a value cannot be read or the answer cannot be stored.
    pub async fn put(
        self,
        answer: Answer,
        folder: Arc<DataFolder>,
    ) -> Result<VariableRef, SpawnerError> {
        let kind = match answer.kind() {
            AnswerKind::Text => ValueKind::Text,
            AnswerKind::Json => ValueKind::Result,
        };
        let store = Arc::clone(&self.store);
        let write = move || {
            let (file, path) = folder.spool_file()?;
            let written = self.write_file(&answer, &ValueFile::new(file));
            written.map_err(|error| SpawnerError::Answer(Arc::new(error)))?;
            Ok::<_, SpawnerError>(path)
        };
        let path = blocking(write).await?;
        Ok(store.put(NewValue::adopt(kind, path)).await?)
    }

    /// Lets a fold know what a result says that it is about to get, where it has to. What cannot be read at the moment is
    /// an error when the answer is written.
    pub async fn learn(&self, fold: &mut Fold, result: &Payload) {
        let Some(reference) = fold.unread(result) else { return };
        let store = Arc::clone(&self.store);
        if let Ok(bytes) = blocking(move || store.read(&reference)).await {
            fold.learn(&reference, &bytes);
        }
    }
}

impl Values for StoredValues {
    fn open(&self, reference: &VariableRef) -> io::Result<Box<dyn io::BufRead + '_>> {
        let file = self.store.open(reference).map_err(io::Error::other)?;
        Ok(Box::new(file))
    }

    fn result(&self, place: u32) -> io::Result<Payload> {
        let lost = || io::Error::new(io::ErrorKind::NotFound, format!("result {place} is lost"));
        let (root, runs) = self.runs.as_ref().ok_or_else(lost)?;
        let (root, run) = (*root, *runs.get(place as usize).ok_or_else(lost)?);
        let envelope = recorded(&*self.store, root, run).map_err(io::Error::other)?;
        let envelope = envelope.ok_or_else(lost)?;
        envelope.into_result().or_else(|envelope| {
            JsonText::of(&envelope).map(Payload::Json).map_err(io::Error::other)
        })
    }
}

/// Values that are copied into a file by the kernel, where they are large.
struct CopiedValues<'a> {
    values: &'a StoredValues,
    copies: &'a WholeCopies<'a>,
}

impl Values for CopiedValues<'_> {
    fn open(&self, reference: &VariableRef) -> io::Result<Box<dyn io::BufRead + '_>> {
        self.values.open(reference)
    }

    fn put_whole(&self, reference: &VariableRef) -> io::Result<bool> {
        if self.copies.takes(reference) {
            let value = self.values.store.open(reference).map_err(io::Error::other)?;
            self.copies.put(value)?;
            return Ok(true);
        }
        Ok(false)
    }

    fn result(&self, place: u32) -> io::Result<Payload> {
        self.values.result(place)
    }
}

/// Reads the envelope of a run from the record; none where the run has no end.
pub(crate) fn recorded(
    store: &dyn Store,
    root: RootId,
    run: RunId,
) -> Result<Option<Envelope>, StoreError> {
    recorded_all(store, root, &[run]).next().expect("one was asked for")
}

/// Reads the envelopes of runs from the record, in this order; none where a run has no end.
pub(crate) fn recorded_all(
    store: &dyn Store,
    root: RootId,
    runs: &[RunId],
) -> impl Iterator<Item = Result<Option<Envelope>, StoreError>> {
    store.outcomes(root, runs).into_iter().zip(runs).map(|(outcome, run)| {
        Ok(outcome?.map(|(about, ending)| {
            Envelope::of(&ending, about.key, *run, about.agent, about.depth)
        }))
    })
}
