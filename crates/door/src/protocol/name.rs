//! The name by which a caller names a run.

use offshoot_model::{RunId, SessionKey};
use serde::{Deserialize, Serialize};

/// A run id, a unique beginning of one, a session key, or `main`. The supervisor looks it up in its record, among the
/// runs that the caller may see; what is meant is never read off the text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, derive_more::Display)]
#[serde(transparent)]
pub struct RunName(pub String);

impl From<RunId> for RunName {
    fn from(run: RunId) -> Self {
        Self(run.to_string())
    }
}

impl From<&SessionKey> for RunName {
    fn from(key: &SessionKey) -> Self {
        Self(key.to_string())
    }
}
