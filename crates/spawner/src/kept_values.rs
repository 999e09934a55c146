//! Values that sessions keep under names of their own. Names are recorded first, and looked up here.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

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
pub(crate) type ValuesBySession = HashMap<RunId, BTreeMap<Arc<str>, KeptValue>>;
