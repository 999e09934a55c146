//! The record in memory, for tests and for trees that need no record after their end.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use offshoot_model::{
    Admitted, ContentHash, Ending, Event, EventClass, EventKind, RootId, RunId, ValueKind,
    VariableRef,
};
use offshoot_session_key::KeyKind;
use parking_lot::Mutex;
use tempfile::TempDir;

use crate::below::Below;
use crate::blobs::{Blobs, Durability, put_on_thread};
use crate::order::check_order;
use crate::page::{Page, key_of};
use crate::pages::{PAGE, Pages};
use crate::sought::Sought;
use crate::{
    Commit, Events, FIND_LIMIT, FoundRun, NewValue, RootSummary, Source, Store, StoreError,
    Urgency, ValueReader,
};

/// Values up to this size are hashed by the caller of `put`: that takes some twenty microseconds.
const HASHED_AT_ONCE: usize = 64 << 10;

/// A store that answers at once and dies with its process. Values from files, and values that are asked for as a file,
/// go to a temporary folder, which is made when it is needed and removed with the store.
#[derive(Debug, Default)]
pub struct MemoryStore {
    record: Arc<Mutex<Record>>,
    values: Arc<Values>,
}

#[derive(Debug, Default)]
struct Record {
    /// In the order in which they were opened.
    roots: Vec<RootId>,
    trees: HashMap<RootId, Vec<Arc<Event>>>,
    runs: BTreeMap<(RunId, RootId), Milestones>,
}

/// The positions, in its tree's list, of the events that say most about a run.
#[derive(Debug, Default)]
struct Milestones {
    admitted: Option<usize>,
    ended: Option<usize>,
}

#[derive(Debug, Default)]
struct Values {
    held: Mutex<HashMap<ContentHash, Arc<[u8]>>>,
    files: OnceLock<Result<Files, StoreError>>,
}

#[derive(Debug)]
struct Files {
    blobs: Blobs,
    /// Removed with the store.
    _folder: TempDir,
}

impl MemoryStore {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Store for MemoryStore {
    fn record(&self, events: &[Arc<Event>], _urgency: Urgency) -> Commit {
        Commit::ready(self.record.lock().append(events))
    }

    fn put(&self, value: NewValue) -> BoxFuture<'static, Result<VariableRef, StoreError>> {
        let values = Arc::clone(&self.values);
        match value.source {
            Source::Bytes(bytes) if bytes.len() <= HASHED_AT_ONCE => {
                let reference = values.hold(value.kind, bytes);
                Box::pin(std::future::ready(Ok(reference)))
            }
            _ => Box::pin(async move { put_on_thread(values.blobs()?, value).await }),
        }
    }

    fn put_copy(&self, kind: ValueKind, bytes: &Arc<[u8]>) -> Result<VariableRef, StoreError> {
        Ok(self.values.hold(kind, Arc::clone(bytes)))
    }

    fn path(&self, reference: &VariableRef) -> Result<PathBuf, StoreError> {
        Ok(self.values.filed(reference)?.path(reference.hash))
    }

    fn read(&self, reference: &VariableRef) -> Result<Vec<u8>, StoreError> {
        match self.values.held(reference) {
            Some(bytes) => Ok(bytes.to_vec()),
            None => self.values.blobs()?.read(reference),
        }
    }

    fn open(&self, reference: &VariableRef) -> Result<ValueReader, StoreError> {
        self.values.filed(reference)?.open(reference)
    }

    fn verify(&self, reference: &VariableRef) -> Result<(), StoreError> {
        match self.values.held(reference) {
            Some(_) => Ok(()),
            None => self.values.blobs()?.verify(reference),
        }
    }

    fn events(&self, root: RootId, after: u64) -> Events {
        Box::new(events(Arc::clone(&self.record), root, after))
    }

    fn all_events(&self) -> Events {
        let roots = self.record.lock().roots.clone();
        let record = Arc::clone(&self.record);
        Box::new(roots.into_iter().flat_map(move |root| events(Arc::clone(&record), root, 0)))
    }

    fn roots(&self) -> Result<Vec<RootSummary>, StoreError> {
        let record = self.record.lock();
        Ok(record.roots.iter().map(|&root| record.summary(root)).collect())
    }

    fn find(&self, text: &str) -> Result<Vec<FoundRun>, StoreError> {
        let record = self.record.lock();
        let found = Sought::meanings(text).into_iter().map(|sought| record.find(&sought));
        Ok(found.into_iter().find(|found| !found.is_empty()).unwrap_or_default())
    }

    fn admitted(&self, root: RootId, run: RunId) -> Result<Option<Admitted>, StoreError> {
        Ok(self.record.lock().admitted(root, run).cloned())
    }

    fn ending(&self, root: RootId, run: RunId) -> Result<Option<Ending>, StoreError> {
        Ok(self.record.lock().ending(root, run).cloned())
    }
}

impl Record {
    fn append(&mut self, events: &[Arc<Event>]) -> Result<(), StoreError> {
        let last = |root| self.trees.get(&root).map_or(0, |events| events.len() as u64);
        let kept = events.iter().filter(|event| event.kind.class() == EventClass::Kept);
        check_order(kept.clone().map(|event| (event.root, event.seq)), last)?;
        for event in kept {
            let (root, run) = (event.root, (event.run, event.root));
            let tree = self.trees.entry(root).or_insert_with(|| {
                self.roots.push(root);
                Vec::new()
            });
            let at = tree.len();
            match &event.kind {
                EventKind::Admitted(_) => self.runs.entry(run).or_default().admitted = Some(at),
                EventKind::Ended(_) => self.runs.entry(run).or_default().ended = Some(at),
                EventKind::RootReopened(_) => self.runs.entry(run).or_default().ended = None,
                _ => {}
            }
            tree.push(Arc::clone(event));
        }
        Ok(())
    }

    fn page(&self, root: RootId, at: usize) -> Page {
        let events = self.trees.get(&root).and_then(|events| events.get(at..)).unwrap_or_default();
        let page = events.iter().take(PAGE).map(|event| Ok(Event::clone(event)));
        Page::of(page, events.len() > PAGE)
    }

    fn summary(&self, root: RootId) -> RootSummary {
        let events = &self.trees[&root];
        let first = events.first().expect("a tree is opened by its first event");
        RootSummary {
            root,
            key: key_of(&first.kind).cloned(),
            opened_at: first.at,
            last_seq: events.len() as u64,
            ended: self.ending(root, root.run()).is_some(),
            last_at: events.last().map_or(first.at, |last| last.at),
        }
    }

    fn find(&self, sought: &Sought) -> Vec<FoundRun> {
        let newest_first = self.runs.keys().rev().copied();
        let wanted = |(run, root): (RunId, RootId)| {
            let admitted = self.admitted(root, run)?;
            let key = &admitted.key;
            let wanted = match sought {
                Sought::MainSessions => run == root.run() && key.kind() == KeyKind::Main,
                Sought::Session(wanted) => wanted == key,
                Sought::Runs(runs) => runs.contains(&run),
                Sought::Labelled(label) => admitted.label.as_deref() == Some(label),
            };
            wanted.then(|| FoundRun { run, root, key: key.clone() })
        };
        newest_first.filter_map(wanted).take(FIND_LIMIT).collect()
    }

    fn admitted(&self, root: RootId, run: RunId) -> Option<&Admitted> {
        let place = self.runs.get(&(run, root))?;
        match &self.trees[&root][place.admitted?].kind {
            EventKind::Admitted(admitted) => Some(admitted),
            _ => None,
        }
    }

    fn ending(&self, root: RootId, run: RunId) -> Option<&Ending> {
        let place = self.runs.get(&(run, root))?;
        match &self.trees[&root][place.ended?].kind {
            EventKind::Ended(ending) => Some(ending),
            _ => None,
        }
    }
}

impl Values {
    fn hold(&self, kind: ValueKind, bytes: Arc<[u8]>) -> VariableRef {
        let hash = ContentHash::of(&bytes);
        let size = bytes.len() as u64;
        self.held.lock().entry(hash).or_insert(bytes);
        VariableRef { hash, size, kind }
    }

    fn held(&self, reference: &VariableRef) -> Option<Arc<[u8]>> {
        self.held.lock().get(&reference.hash).cloned()
    }

    /// The values in files, this one among them if there is one.
    fn filed(&self, reference: &VariableRef) -> Result<Blobs, StoreError> {
        let blobs = self.blobs()?;
        if let Some(bytes) = self.held(reference) {
            blobs.put_bytes(reference.kind, &bytes, Durability::OnRecord)?;
        }
        Ok(blobs)
    }

    fn blobs(&self) -> Result<Blobs, StoreError> {
        let files = self.files.get_or_init(|| {
            let folder = tempfile::Builder::new().prefix("offshoot-").tempdir();
            let trouble = |error| StoreError::io("make a folder in", &std::env::temp_dir(), error);
            let folder = folder.map_err(trouble)?;
            let below = Below::open(folder.path()).map_err(trouble)?;
            Ok(Files { blobs: Blobs::new(below, "values"), _folder: folder })
        });
        match files {
            Ok(files) => Ok(files.blobs.clone()),
            Err(error) => Err(error.clone()),
        }
    }
}

fn events(
    record: Arc<Mutex<Record>>,
    root: RootId,
    after: u64,
) -> impl Iterator<Item = Result<Event, StoreError>> + Send {
    // Events are numbered from 1 without a gap, so the one after number n stands at n.
    let mut at = usize::try_from(after).unwrap_or(usize::MAX);
    Pages::new(move || {
        let page = record.lock().page(root, at);
        at += page.len();
        Ok(page)
    })
}
