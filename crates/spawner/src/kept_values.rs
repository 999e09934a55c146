//! Values that sessions keep under names of their own. Names are recorded first, and looked up here.

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

/// The kept values of each session that is not over, by name. No session sees the values of another.
#[derive(Debug, Default)]
pub(crate) struct KeptValues(Mutex<ValuesBySession>);

/// Kept values by session, as they are read back.
pub(crate) type ValuesBySession = HashMap<RunId, BTreeMap<Arc<str>, KeptValue>>;

impl KeptValues {
    /// Restores the values that the record of the tree names.
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
