//! A store whose writes a test intercepts.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use offshoot_model::{Admitted, Ending, Event, RootId, RunId, ValueKind, VariableRef};
use offshoot_store::{
    Commit, Events, FoundRun, MemoryStore, NewValue, RootSummary, Store, StoreError, Urgency,
    ValueReader,
};

/// Hands everything on but `append`, and `put` where something is to happen before it.
pub(crate) struct Intercept<A> {
    inner: Arc<MemoryStore>,
    append: A,
    before_put: Option<BeforePut>,
    /// True if no value can be read.
    unreadable: bool,
}

/// Returns what a value waits for before it is put, and whether it is put then.
pub(crate) type BeforePut =
    Box<dyn Fn() -> BoxFuture<'static, Result<(), StoreError>> + Send + Sync>;

impl<A> Intercept<A> {
    pub(crate) fn new(inner: Arc<MemoryStore>, append: A) -> Self {
        Self { inner, append, before_put: None, unreadable: false }
    }

    pub(crate) fn before_put(self, before_put: BeforePut) -> Self {
        Self { before_put: Some(before_put), ..self }
    }

    pub(crate) fn with_unreadable_values(self) -> Self {
        Self { unreadable: true, ..self }
    }

    fn check(&self, reference: &VariableRef) -> Result<(), StoreError> {
        match self.unreadable {
            true => Err(StoreError::Missing { hash: reference.hash }),
            false => Ok(()),
        }
    }
}

impl<A> Store for Intercept<A>
where
    A: Fn(&MemoryStore, &[Arc<Event>]) -> Commit + Send + Sync + 'static,
{
    fn record(&self, events: &[Arc<Event>], _urgency: Urgency) -> Commit {
        (self.append)(&self.inner, events)
    }

    fn put(&self, value: NewValue) -> BoxFuture<'static, Result<VariableRef, StoreError>> {
        let (inner, before) = (Arc::clone(&self.inner), self.before_put.as_ref().map(|it| it()));
        Box::pin(async move {
            if let Some(before) = before {
                before.await?;
            }
            inner.put(value).await
        })
    }

    fn put_copy(&self, kind: ValueKind, bytes: &Arc<[u8]>) -> Result<VariableRef, StoreError> {
        self.inner.put_copy(kind, bytes)
    }

    fn path(&self, reference: &VariableRef) -> Result<PathBuf, StoreError> {
        self.inner.path(reference)
    }

    fn read(&self, reference: &VariableRef) -> Result<Vec<u8>, StoreError> {
        self.check(reference).and_then(|()| self.inner.read(reference))
    }

    fn open(&self, reference: &VariableRef) -> Result<ValueReader, StoreError> {
        self.check(reference).and_then(|()| self.inner.open(reference))
    }

    fn verify(&self, reference: &VariableRef) -> Result<(), StoreError> {
        self.inner.verify(reference)
    }

    fn events(&self, root: RootId, after: u64) -> Events {
        self.inner.events(root, after)
    }

    fn all_events(&self) -> Events {
        self.inner.all_events()
    }

    fn roots(&self) -> Result<Vec<RootSummary>, StoreError> {
        self.inner.roots()
    }

    fn find(&self, text: &str) -> Result<Vec<FoundRun>, StoreError> {
        self.inner.find(text)
    }

    fn admitted(&self, root: RootId, run: RunId) -> Result<Option<Admitted>, StoreError> {
        self.inner.admitted(root, run)
    }

    fn ending(&self, root: RootId, run: RunId) -> Result<Option<Ending>, StoreError> {
        self.inner.ending(root, run)
    }
}
