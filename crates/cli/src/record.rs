//! The record of a data folder, for commands that look.

mod naming;

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{Ending, Event, JsonText, Payload, RootId, RunId, Timestamp, Tree, ValueKind};
use offshoot_spawner::{Clock, SystemClock};
use offshoot_store::{DataFolder, FoundRun, RootSummary, SqliteStore, Store, StoreError, Watch};

use crate::code::{FailureCode, NoteCode};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// A record that is there. Cheap enough to clone.
#[derive(Clone)]
pub(crate) struct Record {
    store: Arc<dyn Store>,
    sqlite: Arc<SqliteStore>,
    folder: DataFolder,
    /// The last tree that was proven.
    proven: Cell<Option<RootId>>,
}

impl Record {
    /// Opens the record; none where nothing has been recorded yet.
    pub(crate) fn open(cx: &Invocation) -> Result<Option<Self>, Failure> {
        Self::open_in(&cx.data_folder(), cx)
    }

    /// Opens the record of this data folder.
    pub(crate) fn open_in(folder: &Path, cx: &Invocation) -> Result<Option<Self>, Failure> {
        let Some(folder) = DataFolder::existing(folder)? else { return Ok(None) };
        let folder = telling(folder, cx);
        let store = SqliteStore::open_to_read(&folder)?;
        let sqlite = Arc::new(store);
        let store: Arc<dyn Store> = Arc::<SqliteStore>::clone(&sqlite);
        Ok(Some(Self { store, sqlite, folder, proven: Cell::default() }))
    }

    /// Opens the record in which a run is to be found.
    pub(crate) fn open_for(cx: &Invocation, text: &str) -> Result<Self, Failure> {
        Self::open(cx)?.ok_or_else(|| {
            let folder = cx.data_folder();
            Failure::input(
                FailureCode::NoSuchRun,
                format_args!(
                    "there is no run `{text}`: nothing is recorded in {}",
                    folder.display()
                ),
            )
            .hint("--data-dir names another data folder")
        })
    }

    /// The store behind it.
    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The folder that it is in.
    pub(crate) fn folder(&self) -> &DataFolder {
        &self.folder
    }

    /// The same, with what only a database can be asked.
    pub(crate) fn sqlite(&self) -> &SqliteStore {
        &self.sqlite
    }

    /// True if a tree with this root is on record.
    pub(crate) fn has(&self, root: RunId) -> Result<bool, Failure> {
        Ok(self.store.admitted(RootId::new(root), root)?.is_some())
    }

    /// A whole tree.
    pub(crate) fn tree(&self, root: RootId) -> Result<Tree, Failure> {
        let mut tree = Tree::new();
        self.read(root, &mut tree)?;
        Ok(tree)
    }

    /// Makes sure that the record of a tree is what was written, before a part of it is printed that was read alone.
    pub(crate) fn prove(&self, root: RootId) -> Result<(), Failure> {
        if self.proven.get() != Some(root) {
            self.sqlite.prove(root)?;
            self.proven.set(Some(root));
        }
        Ok(())
    }

    /// Returns the ending of a run, once it has ended.
    pub(crate) fn ending(&self, root: RootId, run: RunId) -> Result<Option<Ending>, Failure> {
        self.prove(root)?;
        Ok(self.store.ending(root, run)?)
    }

    /// Adds a whole tree to what was read before. What its supervisor has left open is lost if that is gone.
    pub(crate) fn read(&self, root: RootId, into: &mut Tree) -> Result<(), Failure> {
        if self.replay(root, |event| into.apply(event))? {
            into.lose(root);
        }
        Ok(())
    }

    /// Hands over each event of a tree, the oldest first. True if no supervisor holds the tree, which is asked before: one that ends
    /// meanwhile has written them all.
    pub(crate) fn replay(
        &self,
        root: RootId,
        mut see: impl FnMut(&Event),
    ) -> Result<bool, Failure> {
        let is_abandoned = self.is_abandoned(root)?;
        for event in self.store.events(root, 0) {
            see(&event?);
        }
        Ok(is_abandoned)
    }

    /// Reads all trees, and names those that cannot be read whole; what can be read of them is there all the same. Archived ones
    /// are counted, unless they are wanted too. How a command that shows them ends.
    pub(crate) fn read_all(
        &self,
        archived_too: bool,
        into: &mut Tree,
        cx: &Invocation,
    ) -> Result<Exit, Failure> {
        let (mut exit, mut hidden) = (Exit::Done, 0_u64);
        let now = SystemClock.now();
        for summary in self.summaries()? {
            if !archived_too && self.is_archived(&summary, now) {
                hidden += 1;
                continue;
            }
            let root = summary.root;
            let lost = self.is_abandoned(root)?;
            for event in self.store.events(root, 0) {
                match event {
                    Ok(event) => into.apply(&event),
                    Err(error) => {
                        let failure = Failure::from(error);
                        exit = failure.exit;
                        cx.output.failure(&failure);
                    }
                }
            }
            if lost {
                into.lose(root);
            }
        }
        if hidden > 0 {
            let trees = if hidden == 1 { "archived tree is" } else { "archived trees are" };
            cx.output.note(
                NoteCode::ArchivedHidden,
                format_args!(
                    "{hidden} {trees} not shown, over for longer than archiveAfterMinutes: --all shows everything"
                ),
            );
        }
        Ok(exit)
    }

    /// True if a tree has been over for longer than its root's `archiveAfterMinutes`. A tree without an end is never archived:
    /// the operator should see it.
    fn is_archived(&self, summary: &RootSummary, now: Timestamp) -> bool {
        let minutes =
            || self.store.admitted(summary.root, summary.root.run()).ok()??.archive_after_minutes;
        let after = |minutes: u64| Duration::from_secs(minutes.saturating_mul(60));
        summary.ended
            && minutes().is_some_and(|minutes| now.since(summary.last_at) >= after(minutes))
            && self.is_abandoned(summary.root).unwrap_or(false)
    }

    /// True if no supervisor holds this tree. To be asked before its events are read: one that ends meanwhile has written them
    /// all.
    pub(crate) fn is_abandoned(&self, root: RootId) -> Result<bool, Failure> {
        Ok(!self.folder.is_held(root)?)
    }

    /// Returns a watch, which wakes its holder when a tree is written.
    pub(crate) fn watch(&self, root: RootId) -> Result<Watch, Failure> {
        Ok(self.folder.watch(root)?)
    }

    /// Trees that are not over and that no supervisor holds, the newest first.
    pub(crate) fn abandoned(&self) -> Result<Vec<RootId>, Failure> {
        let roots = self.store.roots()?;
        let mut found = Vec::new();
        for summary in roots.into_iter().rev().filter(|summary| !summary.ended) {
            if self.is_abandoned(summary.root)? {
                found.push(summary.root);
            }
        }
        Ok(found)
    }

    /// All roots, the oldest first.
    pub(crate) fn summaries(&self) -> Result<Vec<RootSummary>, Failure> {
        Ok(self.store.roots()?)
    }
}

/// A whole tree, as it stands on record.
pub(crate) fn tree(store: &dyn Store, root: RootId) -> Result<Tree, Failure> {
    let mut tree = Tree::new();
    for event in store.events(root, 0) {
        tree.apply(&event?);
    }
    Ok(tree)
}

/// The failure where a run has no event on record.
pub(crate) fn no_record(run: RunId) -> Failure {
    Failure::input(FailureCode::NoRunRecord, format_args!("run {run} has no record"))
        .hint("`offshoot list --all` shows what is recorded")
}

/// The failure where a command needs the end of a run that has none.
pub(crate) fn not_over(record: &Record, found: &FoundRun) -> Result<Failure, Failure> {
    let (root, run) = (found.root, found.run);
    let failure = Failure::input(FailureCode::RunNotOver, format_args!("run {run} is not over"));
    Ok(match record.is_abandoned(root)? {
        true => failure.hint(format_args!(
            "its tree has lost its supervisor: `offshoot resume {root}` goes on with it, and keeps what the run has changed so far; `offshoot cancel {root}` ends it"
        )),
        false => failure.hint(format_args!(
            "`offshoot show {run}` says what it waits for, and `offshoot cancel {run}` ends it"
        )),
    })
}

/// A payload whose value is at hand, whatever it was before; what is not UTF-8 stays named.
pub(crate) fn at_hand(store: &dyn Store, payload: &Payload) -> Result<Payload, Failure> {
    let Payload::Stored(reference) = payload else { return Ok(payload.clone()) };
    if reference.kind == ValueKind::Bytes {
        return Ok(payload.clone());
    }
    let bytes = store.read(reference)?;
    let Ok(text) = String::from_utf8(bytes) else { return Ok(payload.clone()) };
    if reference.kind == ValueKind::Text {
        return Ok(Payload::text(text));
    }
    JsonText::parse(text).map(Payload::Json).map_err(|error| {
        Failure::input(
            FailureCode::ValueUnreadable,
            format_args!("value {} is not the JSON it was", reference.hash),
        )
        .caused_by(Some(&error))
        .hint("`offshoot audit RUN` says what else of its tree is not as it was")
    })
}

/// Fails where the answer of a run was deleted.
pub(crate) fn must_be_there(
    store: &dyn Store,
    run: RunId,
    answer: &Payload,
) -> Result<(), Failure> {
    if let Payload::Stored(value) = answer
        && let Err(StoreError::Missing { .. }) = store.open(value)
    {
        let message = format!("the answer of run {run} was deleted");
        return Err(Failure::input(FailureCode::AnswerDeleted, message)
            .hint("`offshoot merge --result RUN` merges answers that are left, run by run"));
    }
    Ok(())
}

/// Prints an answer as it is, and a newline.
pub(crate) fn print(store: &dyn Store, answer: &Payload, cx: &Invocation) -> Result<(), Failure> {
    match answer {
        Payload::Text(text) => cx.output.line(text),
        Payload::Json(json) => cx.output.line(json.as_str()),
        Payload::Stored(reference) => {
            // Read once more than printing it takes: what was changed is not handed on as what was answered.
            store.verify(reference)?;
            cx.output.copy(store.open(reference)?)
        }
    }
}

/// A folder that tells the user of a lock that is waited for.
pub(crate) fn telling(folder: DataFolder, cx: &Invocation) -> DataFolder {
    let output = cx.output;
    folder.on_stall(move |stalled| output.note(NoteCode::WaitingForLock, stalled))
}
