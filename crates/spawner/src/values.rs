//! Stored results, opened for whoever writes an answer.

use std::fmt;
use std::io;
use std::sync::Arc;

use offshoot_merge::{Fold, Values};
use offshoot_model::{Payload, VariableRef};
use offshoot_store::Store;

/// The values of a store, as a merge wants them.
#[derive(Clone)]
pub struct StoredValues(Arc<dyn Store>);

impl StoredValues {
    /// The values of this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self(store)
    }

    /// Lets a fold know what a result says that it is about to get, where it has to. What cannot be read at the moment is
    /// an error when the answer is written.
    pub async fn learn(&self, fold: &mut Fold, result: &Payload) {
        let Some(reference) = fold.unread(result) else { return };
        let store = Arc::clone(&self.0);
        let read = tokio::task::spawn_blocking(move || store.read(&reference)).await;
        if let Ok(bytes) = read.expect("reading a value does not panic") {
            fold.learn(&reference, &bytes);
        }
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
