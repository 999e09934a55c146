//! The questions of the engine and the command to a record, for each kind of store.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use offshoot_model::{
    Admitted, Ending, Event, RootId, RunId, SessionKey, Timestamp, ValueKind, VariableRef,
};

use crate::{Commit, StoreError, ValueReader};

/// Keeps events and values. Implemented by [`MemoryStore`](crate::MemoryStore) and
/// [`SqliteStore`](crate::SqliteStore); one set of tests runs against both.
///
/// `record`, `append` and `put` may be called from async code. Everything else reads, synchronously: call it on a thread that
/// may block.
pub trait Store: Send + Sync + 'static {
    /// Queues events for the record, in this order; the answer comes when they are durable. Never blocks.
    ///
    /// One call is recorded whole or not at all, and calls are recorded in the order in which they were made. Each
    /// event must follow the last one of its tree without a gap, so nothing can be recorded after something that was
    /// lost: see [`StoreError::Broken`]. Events that are not to be kept (progress) are passed over.
    /// The record may keep the events themselves instead of copies.
    fn record(&self, events: &[Arc<Event>], urgency: Urgency) -> Commit;

    /// Records copies of events, [now](Urgency::Now).
    fn append(&self, events: &[Event]) -> Commit {
        let events: Vec<Arc<Event>> = events.iter().cloned().map(Arc::new).collect();
        self.record(&events, Urgency::Now)
    }

    /// Takes in a value; the answer comes when it is durable. The same value is stored once.
    ///
    /// The future has to be awaited inside a tokio runtime: copying runs on its blocking threads.
    fn put(&self, value: NewValue) -> BoxFuture<'static, Result<VariableRef, StoreError>>;

    /// Takes in a small value that stands in the record too, at once and without a flush: after a power failure it may be missing, and is
    /// taken in again. [`put`](Self::put) makes it durable. Blocks.
    fn put_copy(&self, kind: ValueKind, bytes: &Arc<[u8]>) -> Result<VariableRef, StoreError>;

    /// The file that holds a value, bare. It is shared and must not be written to.
    fn path(&self, reference: &VariableRef) -> Result<PathBuf, StoreError>;

    /// A value that fits in memory, verified by its hash.
    fn read(&self, reference: &VariableRef) -> Result<Vec<u8>, StoreError>;

    /// Reads a value's file once and compares it with its hash.
    fn verify(&self, reference: &VariableRef) -> Result<(), StoreError>;

    /// The events of a tree after the one numbered `after`, oldest first; 0 for all. Read page by page: memory stays
    /// flat, no page holds up a writer, and events that are recorded meanwhile appear at the end.
    ///
    /// Each event is compared with the hash that ties it to the one before it, and the last one with the line of its tree.
    /// An event that cannot be read or was changed is an error in its place, and the next one follows it.
    fn events(&self, root: RootId, after: u64) -> Events;

    /// The events of all trees, one tree after the other in the order in which they were opened; read like
    /// [`events`](Self::events), and faster than asking for one tree after the other where there are many.
    fn all_events(&self) -> Events;

    /// All trees, in the order in which they were opened.
    fn roots(&self) -> Result<Vec<RootSummary>, StoreError>;

    /// The runs that a text may mean, newest first, at most [`FIND_LIMIT`]: by the beginning of a run id, by a whole
    /// session key, or, for the bare word `main`, the main sessions; where none is meant so, by their label.
    fn find(&self, text: &str) -> Result<Vec<FoundRun>, StoreError>;

    /// Returns what is known of a run of this tree since it was created. What another tree says of the run does not count.
    fn admitted(&self, root: RootId, run: RunId) -> Result<Option<Admitted>, StoreError>;

    /// Returns the ending of a run of this tree, once it has one.
    fn ending(&self, root: RootId, run: RunId) -> Result<Option<Ending>, StoreError>;

    /// Returns the outcomes of runs of this tree, in this order; none where a run has no end.
    fn outcomes(&self, root: RootId, runs: &[RunId]) -> Vec<Result<Option<Outcome>, StoreError>> {
        let outcome = |run| Ok(self.admitted(root, run)?.zip(self.ending(root, run)?));
        runs.iter().map(|run| outcome(*run)).collect()
    }

    /// A value, to be read from any place; each part is compared with what was stored before it is handed out.
    fn open(&self, reference: &VariableRef) -> Result<ValueReader, StoreError>;
}

/// The time at which events are to become durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// At once: a caller waits.
    Now,
    /// In a few milliseconds, so that what comes meanwhile becomes durable with them: no caller waits. Events behind them
    /// that are recorded now take them along.
    Soon,
}

/// The admission of a run, and its ending.
pub type Outcome = (Admitted, Ending);

/// Events as they are read back.
pub type Events = Box<dyn Iterator<Item = Result<Event, StoreError>> + Send>;

/// The most matches: more would say no more than "be more precise".
pub const FIND_LIMIT: usize = 20;

/// A value to take in.
#[derive(Clone, Debug)]
pub struct NewValue {
    /// The kind of the value.
    pub kind: ValueKind,
    /// The source of the value.
    pub source: Source,
}

/// The source of a new value.
#[derive(Clone, Debug)]
pub enum Source {
    /// From memory.
    Bytes(Arc<[u8]>),
    /// Copied from a file of another owner; shares its blocks where the file system can.
    File(PathBuf),
    /// Moved: a file of ours that is not needed any more, such as spooled output.
    Adopt(PathBuf),
}

/// One tree, in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootSummary {
    /// The tree.
    pub root: RootId,
    /// The root's address; none where its record does not begin with its admission.
    pub key: Option<SessionKey>,
    /// The time of its first event.
    pub opened_at: Timestamp,
    /// The number of its last event.
    pub last_seq: u64,
    /// True if the root's own run has ended.
    pub ended: bool,
    /// The time of its last event.
    pub last_at: Timestamp,
}

/// A run that a text may mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundRun {
    /// The run.
    pub run: RunId,
    /// The tree of the run.
    pub root: RootId,
    /// The session key.
    pub key: SessionKey,
}

impl NewValue {
    /// A value in memory.
    pub fn bytes(kind: ValueKind, bytes: impl Into<Arc<[u8]>>) -> Self {
        Self { kind, source: Source::Bytes(bytes.into()) }
    }

    /// A copy of a file.
    pub fn file(kind: ValueKind, path: impl Into<PathBuf>) -> Self {
        Self { kind, source: Source::File(path.into()) }
    }

    /// A file that is taken over.
    pub fn adopt(kind: ValueKind, path: impl Into<PathBuf>) -> Self {
        Self { kind, source: Source::Adopt(path.into()) }
    }
}
