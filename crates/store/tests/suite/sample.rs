//! Trees, runs and events to record.

use std::sync::Arc;

use offshoot_model::{
    Admitted, AgentId, Cleanup, Ending, Event, EventKind, Grant, OnNeedFailed, Origin, Payload,
    Reason, RootId, RunId, SessionKey, Timestamp,
};
use offshoot_store::{DataFolder, SqliteStore};
use tempfile::TempDir;
use uuid::Uuid;

/// A data folder of its own, and the store in it.
pub(crate) struct OnDisk {
    pub(crate) store: SqliteStore,
    pub(crate) folder: DataFolder,
    /// Removed at the end.
    pub(crate) _home: TempDir,
}

/// A tree that is being recorded.
pub(crate) struct Script {
    pub(crate) root: RootId,
    seq: u64,
}

impl OnDisk {
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let folder = DataFolder::open(home.path().join(".offshoot")).unwrap();
        Self { store: SqliteStore::open(&folder).unwrap(), folder, _home: home }
    }

    pub(crate) fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.folder.path().join("offshoot.db")).unwrap()
    }
}

impl Script {
    pub(crate) fn new() -> Self {
        Self::after(RootId::new(new_run()), 0)
    }

    /// One that goes on where a record ends.
    pub(crate) fn after(root: RootId, last: u64) -> Self {
        Self { root, seq: last }
    }

    /// The number of the last event.
    pub(crate) fn last(&self) -> u64 {
        self.seq
    }

    /// The next event, about the root.
    pub(crate) fn next(&mut self, kind: EventKind) -> Event {
        self.about(self.root.run(), kind)
    }

    /// The next event, about a run.
    pub(crate) fn about(&mut self, run: RunId, kind: EventKind) -> Event {
        self.seq += 1;
        Event { root: self.root, seq: self.seq, at: Timestamp::from_micros(self.seq), run, kind }
    }

    /// So many of the smallest.
    pub(crate) fn many(&mut self, count: usize) -> Vec<Event> {
        (0..count).map(|_| self.next(EventKind::Starting)).collect()
    }
}

pub(crate) fn new_run() -> RunId {
    RunId::from_uuid(Uuid::now_v7())
}

pub(crate) fn admitted(key: &str) -> EventKind {
    EventKind::Admitted(Box::new(admission(key)))
}

pub(crate) fn admission(key: &str) -> Admitted {
    Admitted {
        key: SessionKey::parse(key).unwrap(),
        parent: None,
        agent: AgentId::main(),
        depth: 0,
        origin: Origin::Root,
        label: Some("a label".into()),
        runtime: None,
        task: Payload::text("count the lines"),
        input: None,
        place: None,
        instead: None,
        needs: Vec::new(),
        on_need_failed: OnNeedFailed::Skip,
        particulars: None,
        grant: Arc::new(Grant::unbounded()),
        rules: None,
        cleanup: Cleanup::Keep,
        archive_after_minutes: None,
        plan: None,
    }
}

pub(crate) fn ended(answer: &str) -> EventKind {
    EventKind::Ended(Box::new(Ending::completed(Payload::text(answer))))
}

pub(crate) fn failed(code: i32) -> EventKind {
    EventKind::Ended(Box::new(Ending::of(Reason::ExitCode { code })))
}
