//! The treatment of a session afterwards.

use clap::ValueEnum;
use offshoot_model::Cleanup;
use serde::{Deserialize, Serialize};

/// The treatment of a session once its answer was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum CleanupArgument {
    /// The session stays
    Keep,
    /// The folder is removed, and only --all shows the session
    Delete,
}

impl CleanupArgument {
    /// As the configuration has it.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Delete => "delete",
        }
    }
}

impl From<CleanupArgument> for Cleanup {
    fn from(argument: CleanupArgument) -> Self {
        match argument {
            CleanupArgument::Keep => Self::Keep,
            CleanupArgument::Delete => Self::Delete,
        }
    }
}
