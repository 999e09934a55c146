//! The store as the place where a merge finds large results.

use std::io::{self, Read};
use std::sync::Arc;

use offshoot_merge::Values;
use offshoot_model::VariableRef;
use offshoot_store::Store;

/// Values of a store.
pub(crate) struct StoredValues(pub(crate) Arc<dyn Store>);

impl Values for StoredValues {
    fn open(&self, reference: &VariableRef) -> io::Result<Box<dyn Read + '_>> {
        let file = self.0.open(reference).map_err(io::Error::other)?;
        Ok(Box::new(file))
    }
}
