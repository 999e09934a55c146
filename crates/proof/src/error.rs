//! Errors of a proof.

use std::sync::Arc;

use offshoot_config::ConfigErrors;
use offshoot_spawner::SpawnerError;
use offshoot_store::StoreError;

use crate::probe::Verdict;

/// A proof that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ProofError {
    /// The configuration is wrong, or a ceiling forbids a setting that a probe needs.
    #[error("the configuration cannot be read")]
    Config(#[source] Arc<ConfigErrors>),
    /// A tree of a probe cannot be opened.
    #[error("the tree of a probe cannot be held")]
    Tree(#[from] SpawnerError),
    /// The record of a probe cannot be read.
    #[error("the record of a probe cannot be read")]
    Record(#[from] StoreError),
}

/// The reason why a probe has no finding.
pub(crate) enum NoProbe {
    /// A limit that is not set, or cannot be tried.
    Untried(Verdict),
    Failed(ProofError),
}

impl From<Verdict> for NoProbe {
    fn from(verdict: Verdict) -> Self {
        Self::Untried(verdict)
    }
}

impl<E> From<E> for NoProbe
where
    ProofError: From<E>,
{
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl From<ConfigErrors> for ProofError {
    fn from(errors: ConfigErrors) -> Self {
        Self::Config(Arc::new(errors))
    }
}
