//! The record in a SQLite database, the values in a folder.
//!
//! ```text
//!  append ──▶ queue ──▶ one writing thread ──▶ offshoot.db (log ahead, flushed at each commit)
//!  events, roots, find … ──▶ connections that only read, in any thread and any process
//!  put ──▶ blobs/ab/cdef…
//! ```
//!
//! Promise: what a commit has answered survives `kill -9` and a power failure; what was not answered is there whole or
//! not at all. Any number of processes may read while one writes. Several may write, each its own trees.

mod chain;
mod column;
mod file;
mod heads;
mod identity;
mod look;
mod queue;
mod reader;
mod remove;
mod row;
mod schema;
mod writer;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use offshoot_model::{
    Admitted, ContentHash, Ending, Event, EventClass, EventKind, RootId, RunId, ValueKind,
    VariableRef,
};

use self::chain::Chain;
pub use self::chain::{ChainHead, Proof};
use self::file::DatabaseFile;
use self::look::{Milestones, ReadPosition};
use self::reader::Readers;
use self::writer::Writer;
use crate::blobs::{Blobs, Durability, put_on_thread};
use crate::page::Page;
use crate::pages::Pages;
use crate::sought::Sought;
use crate::{
    Commit, DataFolder, Events, FoundRun, NewValue, Outcome, RootSummary, Store, StoreError,
    Urgency, ValueReader,
};

/// A store that outlives its process. Dropped, it waits until what was queued has been written: drop it where a thread
/// may block.
#[derive(Debug)]
pub struct SqliteStore {
    folder: DataFolder,
    blobs: Blobs,
    readers: Arc<Readers>,
    /// Started by the first append: who only reads needs no thread.
    writer: OnceLock<Result<Writer, StoreError>>,
}

impl SqliteStore {
    /// Opens the record in a data folder, or begins one.
    pub fn open(folder: &DataFolder) -> Result<Self, StoreError> {
        schema::prepare(folder)?;
        Ok(Self::over(folder, DatabaseFile::shared(folder.database())))
    }

    /// Opens a record that is only to be read. Unlike [`open`](Self::open) it does so in a folder in which nothing can be
    /// written too, with what its log holds and whatever its version.
    pub fn open_to_read(folder: &DataFolder) -> Result<Self, StoreError> {
        match folder.is_read_only() && folder.database().exists() {
            true => Ok(Self::over(folder, DatabaseFile::frozen(folder)?)),
            false => Self::open(folder),
        }
    }

    fn over(folder: &DataFolder, file: DatabaseFile) -> Self {
        Self {
            folder: folder.clone(),
            blobs: folder.blobs(),
            readers: Arc::new(Readers::new(file)),
            writer: OnceLock::new(),
        }
    }

    /// The data folder.
    pub fn folder(&self) -> &DataFolder {
        &self.folder
    }

    /// Transactions that this store has committed: how well appends were grouped.
    pub fn commits(&self) -> u64 {
        self.writer.get().and_then(|writer| writer.as_ref().ok()).map_or(0, Writer::commits)
    }

    fn write<'a>(&self, events: impl Iterator<Item = &'a Event>, urgency: Urgency) -> Commit {
        let mut kept = events.filter(|event| event.kind.class() == EventClass::Kept).peekable();
        if kept.peek().is_none() {
            return Commit::ready(Ok(()));
        }
        match self.writer.get_or_init(|| Writer::start(&self.folder)) {
            Ok(writer) => writer.append(kept, urgency),
            Err(error) => Commit::ready(Err(error.clone())),
        }
    }

    /// The milestones of one run.
    fn milestones(&self, root: RootId, run: RunId) -> Result<Milestones, StoreError> {
        let found = self.readers.ask(|connection| look::milestones(connection, root, &[run]))?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    /// Recomputes the hash chain of a tree's record, and returns how many events it proves. What it cannot tell is
    /// whether the chain was recomputed too: for that, keep its last link elsewhere.
    pub fn verify_record(&self, root: RootId) -> Result<u64, StoreError> {
        self.prove(root).map(|proof| proof.events)
    }

    /// The same, with the last link.
    pub fn prove(&self, root: RootId) -> Result<Proof, StoreError> {
        self.prove_each(root, drop)
    }

    /// Proves the record like `prove`, and passes on each event in its place, as it stands there. The events and the proof are
    /// of one view of the record: what is recorded meanwhile is in neither.
    pub fn prove_each(
        &self,
        root: RootId,
        each: impl FnMut(Result<Event, StoreError>),
    ) -> Result<Proof, StoreError> {
        self.readers.ask(|connection| chain::prove(connection, root, each))?
    }

    /// The ends of the chains of all trees, or of one. They are kept elsewhere, so that a later look can tell whether the
    /// record still continues them: see [`place_of_link`](Self::place_of_link).
    pub fn chain_heads(&self, only: Option<RootId>) -> Result<Vec<ChainHead>, StoreError> {
        self.readers.ask(|connection| chain::heads(connection, only))
    }

    /// The ids of all runs, in their order.
    pub fn runs(&self) -> Result<Vec<RunId>, StoreError> {
        self.readers.ask(look::runs)
    }

    /// The number of the event whose link this is, in a tree that was [proven](Self::prove): up to there the record is the one of
    /// which the link was kept.
    pub fn place_of_link(
        &self,
        root: RootId,
        link: ContentHash,
    ) -> Result<Option<u64>, StoreError> {
        self.readers.ask(|connection| chain::place(connection, root, link))
    }
}

impl Store for SqliteStore {
    fn record(&self, events: &[Arc<Event>], urgency: Urgency) -> Commit {
        self.write(events.iter().map(|event| &**event), urgency)
    }

    fn append(&self, events: &[Event]) -> Commit {
        self.write(events.iter(), Urgency::Now)
    }

    fn put(&self, value: NewValue) -> BoxFuture<'static, Result<VariableRef, StoreError>> {
        put_on_thread(self.blobs.clone(), value)
    }

    fn put_copy(&self, kind: ValueKind, bytes: &Arc<[u8]>) -> Result<VariableRef, StoreError> {
        self.blobs.put_bytes(kind, bytes, Durability::OnRecord)
    }

    fn path(&self, reference: &VariableRef) -> Result<PathBuf, StoreError> {
        Ok(self.blobs.path(reference.hash))
    }

    fn read(&self, reference: &VariableRef) -> Result<Vec<u8>, StoreError> {
        self.blobs.read(reference)
    }

    fn open(&self, reference: &VariableRef) -> Result<ValueReader, StoreError> {
        self.blobs.open(reference)
    }

    fn verify(&self, reference: &VariableRef) -> Result<(), StoreError> {
        self.blobs.verify(reference)
    }

    fn events(&self, root: RootId, after: u64) -> Events {
        let readers = Arc::clone(&self.readers);
        // SQLite's numbers are signed, and no record is that long.
        let after = after.min(i64::MAX.cast_unsigned());
        let mut chain = None;
        Box::new(Pages::new(move || {
            readers.ask(|connection| {
                let view = connection.unchecked_transaction()?;
                if chain.is_none()
                    && let Some(number) = look::number(&view, root)?
                {
                    chain = Some(Chain::after(&view, root, number, after)?);
                }
                chain.as_mut().map_or(Ok(Page::default()), |chain| look::page(&view, chain))
            })
        }))
    }

    fn all_events(&self) -> Events {
        let readers = Arc::clone(&self.readers);
        let mut place = ReadPosition::default();
        Box::new(Pages::new(move || {
            readers.ask(|connection| {
                let view = connection.unchecked_transaction()?;
                look::page_of_all(&view, &mut place)
            })
        }))
    }

    fn roots(&self) -> Result<Vec<RootSummary>, StoreError> {
        self.readers.ask(look::roots)
    }

    fn find(&self, text: &str) -> Result<Vec<FoundRun>, StoreError> {
        for sought in Sought::meanings(text) {
            let found = self.readers.ask(|connection| look::find(connection, &sought))?;
            if !found.is_empty() {
                return Ok(found);
            }
        }
        Ok(Vec::new())
    }

    fn admitted(&self, root: RootId, run: RunId) -> Result<Option<Admitted>, StoreError> {
        self.milestones(root, run)?.admitted()
    }

    fn ending(&self, root: RootId, run: RunId) -> Result<Option<Ending>, StoreError> {
        self.milestones(root, run)?.ending()
    }

    fn outcomes(&self, root: RootId, runs: &[RunId]) -> Vec<Result<Option<Outcome>, StoreError>> {
        let outcome = |mut found: Milestones| Ok(found.admitted()?.zip(found.ending()?));
        match self.readers.ask(|connection| look::milestones(connection, root, runs)) {
            Ok(found) => found.into_iter().map(outcome).collect(),
            Err(error) => vec![Err(error); runs.len()],
        }
    }
}

impl Milestones {
    fn admitted(&mut self) -> Result<Option<Admitted>, StoreError> {
        Ok(match self.admitted.take().transpose()?.map(|event| event.kind) {
            Some(EventKind::Admitted(admitted)) => Some(*admitted),
            _ => None,
        })
    }

    fn ending(&mut self) -> Result<Option<Ending>, StoreError> {
        Ok(match self.ended.take().transpose()?.map(|event| event.kind) {
            Some(EventKind::Ended(ending)) => Some(*ending),
            _ => None,
        })
    }
}
