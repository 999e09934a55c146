//! What sessions call the values that they keep. The record says so first; this is where it is looked up.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use offshoot_model::{RunId, Timestamp, VariableRef};

/// A value that a session keeps under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptValue {
    /// The value.
    pub value: VariableRef,
    /// Since when it has its name.
    pub at: Timestamp,
}

/// What each session that is not over keeps, by its own names. No session sees those of another.
#[derive(Debug, Default)]
pub(crate) struct KeptValues(Mutex<ValuesBySession>);

/// The same, before anybody shares it.
pub(crate) type ValuesBySession = HashMap<RunId, BTreeMap<Arc<str>, KeptValue>>;

impl KeptValues {
    /// Those that the record of the tree tells of.
    pub(crate) fn restore(&self, sessions: ValuesBySession) {
        *self.lock() = sessions;
    }

    /// Gives a value a name; the name's earlier value is forgotten.
    pub(crate) fn put(&self, session: RunId, name: Arc<str>, kept: KeptValue) {
        self.lock().entry(session).or_default().insert(name, kept);
    }

    /// The value of this name.
    pub(crate) fn get(&self, session: RunId, name: &str) -> Option<KeptValue> {
        self.lock().get(&session)?.get(name).copied()
    }

    /// All values of a session, by name.
    pub(crate) fn of(&self, session: RunId) -> BTreeMap<Arc<str>, KeptValue> {
        self.lock().get(&session).cloned().unwrap_or_default()
    }

    /// A session is over.
    pub(crate) fn forget(&self, session: RunId) {
        self.lock().remove(&session);
    }

    fn lock(&self) -> MutexGuard<'_, ValuesBySession> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
