//! The state of a tree, as a caller waits for it.

use std::sync::Arc;

use tokio::sync::watch;

use crate::error::SpawnerError;
use crate::message::TreeState;

/// Ends with an error when the record of the tree breaks; never otherwise.
pub(crate) async fn broken(state: &mut watch::Receiver<TreeState>) -> SpawnerError {
    // The borrowed state is a lock, and must not be held during the wait below.
    let error = match state.wait_for(|state| matches!(state, TreeState::Broken(_))).await.as_deref()
    {
        Ok(TreeState::Broken(error)) => Some(Arc::clone(error)),
        _ => None,
    };
    match error {
        Some(error) => SpawnerError::Record(error),
        None => std::future::pending().await,
    }
}

/// Returns the error for a call that a supervisor will not answer any more.
pub(crate) fn over(state: &watch::Receiver<TreeState>) -> SpawnerError {
    match &*state.borrow() {
        TreeState::Broken(error) => SpawnerError::Record(Arc::clone(error)),
        TreeState::Live | TreeState::Unwritten(_) | TreeState::Ended => SpawnerError::Over,
    }
}
