//! Stored results, opened for whoever writes an answer.

use std::fmt;
use std::io;
use std::sync::Arc;

use offshoot_merge::Values;
use offshoot_model::VariableRef;
use offshoot_store::Store;

/// The values of a store, as a merge wants them.
#[derive(Clone)]
pub struct StoredValues(Arc<dyn Store>);

impl StoredValues {
    /// The values of this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self(store)
    }
}

impl Values for StoredValues {
    fn open(&self, reference: &VariableRef) -> io::Result<Box<dyn io::Read + '_>> {
        let file = self.0.open(reference).map_err(io::Error::other)?;
        Ok(Box::new(file))
    }
}

impl fmt::Debug for StoredValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoredValues")
    }
}
