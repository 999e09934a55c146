//! The record of offshoot: events, values and results, in SQLite and a folder, or in memory.
//!
//! ```text
//!  spawner ── append(events) ──▶ Store ──▶ offshoot.db        an event is durable before it is told
//!          ── put(value) ──────▶       ──▶ blobs/ab/cdef…     a value once, under the hash of its content
//!          ── of(variables) ───▶ SharedContexts ──▶ contexts/{root}/…/context/{name}
//!
//!  tree · list · show · audit ◀── events, roots, find ── any process, while another one writes
//! ```
//!
//! Promises:
//!
//! - `recorded_before_told`: a [`Commit`] that answers `Ok` survives `kill -9` and a power failure. One `append` is
//!   recorded whole or not at all.
//! - The record of a tree has no gap: what follows a lost event is refused, see [`StoreError::Broken`].
//! - The events of a tree form a hash chain, so that a record can be proven later.
//! - A value is never changed and never held whole in memory where a file will do; handing it on costs the same for a
//!   byte and for a gigabyte.
//! - A full disk or a folder we may not write to is an answer with a hint; the store goes on when there is space again.
//!
//! ```
//! use offshoot_model::{Ending, Event, EventKind, Reason, RootId, RunId, Timestamp, ValueKind};
//! use offshoot_store::{DataFolder, NewValue, SqliteStore, Store};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let somewhere = tempfile::tempdir()?;
//! let folder = DataFolder::open(somewhere.path().join(".offshoot"))?;
//! let store = SqliteStore::open(&folder)?;
//!
//! let run = RunId::from_bytes(*b"one run, 16 byte");
//! let root = RootId::new(run);
//! let _held = folder.hold(root)?;
//! let ended = EventKind::Ended(Box::new(Ending::of(Reason::Completed { exit_code: Some(0) })));
//! store
//!     .append(&[
//!         Event { root, seq: 1, at: Timestamp::EPOCH, run, kind: EventKind::Starting },
//!         Event { root, seq: 2, at: Timestamp::EPOCH, run, kind: ended },
//!     ])
//!     .await?;
//! assert!(store.ending(root, run)?.is_some());
//!
//! let value = store.put(NewValue::bytes(ValueKind::Text, *b"a long log")).await?;
//! let path = folder.context_link(&store, run, "the log", &value)?;
//! assert!(path.ends_with("context/the%20log"));
//! assert_eq!(std::fs::read(path)?, b"a long log");
//! # Ok(())
//! # }
//! ```

mod below;
mod blobs;
mod commit;
mod error;
mod folder;
mod kind;
mod memory;
mod name;
mod order;
mod output;
mod page;
mod pages;
mod removal;
mod sought;
mod sqlite;
mod store;
mod sweep;
mod value_file;
mod value_reader;

pub use below::{append_below, open_without_links};
pub use commit::Commit;
pub use error::StoreError;
pub use folder::{
    DataFolder, FOLDER_NAME, RootLock, SharedContext, SharedContexts, Stalled, Watch,
};
pub use kind::kind_of;
pub use memory::MemoryStore;
pub use name::{NAME_LIMIT, file_name};
pub use output::{
    AttemptId, AttemptOutput, OutputBounds, OutputKeeper, OutputReader, Said, SaidPart,
};
pub use sqlite::{ChainHead, Proof, SqliteStore};
pub use store::{
    Events, FIND_LIMIT, FoundRun, NewValue, Outcome, RootSummary, Source, Store, Urgency,
};
pub use sweep::Swept;
pub use value_file::{ValueFile, WholeCopies};
pub use value_reader::ValueReader;

/// Runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
