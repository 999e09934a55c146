//! What sessions call their values.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use offshoot_model::{RunId, Timestamp, VariableRef};

/// A value that a session has put.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    /// The value.
    pub(super) value: VariableRef,
    /// Since when it has its name.
    pub(super) at: Timestamp,
}

/// What each session has put, by its own names. No session sees those of another. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(Arc<Mutex<HashMap<RunId, BTreeMap<String, Kept>>>>);

impl Names {
    /// Gives a value a name; the name's earlier value is forgotten.
    pub(super) fn put(&self, session: RunId, name: &str, kept: Kept) {
        self.lock().entry(session).or_default().insert(name.to_owned(), kept);
    }

    /// The value of this name.
    pub(super) fn get(&self, session: RunId, name: &str) -> Option<Kept> {
        self.lock().get(&session)?.get(name).copied()
    }

    /// All values of a session, by name.
    pub(super) fn of(&self, session: RunId) -> BTreeMap<String, Kept> {
        self.lock().get(&session).cloned().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, BTreeMap<String, Kept>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
