//! The trees that are shown: the record of each, and the way to its supervisor.

use std::collections::HashMap;

use offshoot_door::Client;
use offshoot_model::RootId;
use parking_lot::Mutex;

use crate::door::supervisor_of;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;

/// All trees that are shown.
pub(super) struct Trees {
    pub(super) cx: Invocation,
    known: Mutex<HashMap<RootId, Known>>,
}

struct Known {
    record: Record,
    /// A connection to the supervisor, once it was asked for something.
    supervisor: Option<Client>,
}

impl Trees {
    pub(super) fn new(cx: Invocation) -> Self {
        Self { cx, known: Mutex::default() }
    }

    pub(super) fn add(&self, root: RootId, record: Record, supervisor: Option<Client>) {
        self.known.lock().insert(root, Known { record, supervisor });
    }

    pub(super) fn has(&self, root: RootId) -> bool {
        self.known.lock().contains_key(&root)
    }

    /// The records of all.
    pub(super) fn records(&self) -> Vec<(RootId, Record)> {
        self.known.lock().iter().map(|(root, known)| (*root, known.record.clone())).collect()
    }

    pub(super) fn record(&self, root: RootId) -> Option<Record> {
        self.known.lock().get(&root).map(|known| known.record.clone())
    }

    /// The supervisor that runs a tree.
    pub(super) async fn supervisor(&self, root: RootId) -> Result<Client, Failure> {
        let known = self.known.lock().get(&root).and_then(|known| known.supervisor.clone());
        if let Some(supervisor) = known {
            return Ok(supervisor);
        }
        let supervisor = supervisor_of(root.run(), &self.cx).await?;
        if let Some(known) = self.known.lock().get_mut(&root) {
            known.supervisor = Some(supervisor.clone());
        }
        Ok(supervisor)
    }

    /// Forgets a connection on which no answer came.
    pub(super) fn forget(&self, root: RootId) {
        if let Some(known) = self.known.lock().get_mut(&root) {
            known.supervisor = None;
        }
    }
}
