//! Errors of a whole tree. A fault of one run is the ending of that run.

use std::io;
use std::sync::Arc;

use offshoot_merge::MergeError;
use offshoot_model::{Account, InputRange, Refusal, RunId};
use offshoot_store::StoreError;

use crate::machine::{NotReopened, Unknown};

/// A tree that could not be held, or an answer that could not be made.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnerError {
    /// The record broke. Everything that ran was killed, and nothing was told that is not recorded.
    #[error("the record of the tree broke, so everything that ran was stopped")]
    Record(#[source] Arc<StoreError>),
    /// The store could not be read or written beside the record.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// The runs of the tree cannot be counted with those of the other trees of the user, which `host.maxConcurrent` bounds.
    #[error("host.maxConcurrent is set, and the runs of all trees cannot be counted")]
    HostSlots(#[source] Arc<io::Error>),
    /// The runs of an account cannot be counted with those of the other trees of the user, which `host.maxConcurrentPerAccount` bounds.
    #[error(
        "host.maxConcurrentPerAccount is set, and the runs of {0} in all trees cannot be counted"
    )]
    AccountSlots(Account, #[source] Arc<io::Error>),
    /// The merged answer could not be written.
    #[error("cannot write the merged answer")]
    Answer(#[source] Arc<io::Error>),
    /// The root itself was refused.
    #[error("the root was refused: {0}")]
    Refused(#[source] Box<Refusal>),
    /// The results do not merge.
    #[error("the results do not merge")]
    Merge(#[source] Arc<MergeError>),
    /// The record of a tree to resume does not fit together.
    #[error("the record of the tree does not fit together")]
    Unknown(#[source] Unknown),
    /// A run of a tree to resume would go on, and what ran it is not here.
    #[error("the run {run} was begun with the runtime `{runtime}`, which is not here")]
    RuntimeMissing {
        /// The run.
        run: RunId,
        /// The name of its runtime.
        runtime: Arc<str>,
        /// The names of those that are here.
        here: String,
    },
    /// The pieces of a tree to resume would not read what they have read.
    #[error(
        "{} has changed since the tree was opened: bytes {} to {} are not what they were",
        .0.path.display(), .0.offset, .0.offset + .0.length
    )]
    InputChanged(InputRange),
    /// The changes that interrupted runs have left in folders of their own cannot be brought back.
    #[error("what interrupted runs have changed cannot be brought back: {message}")]
    Changes {
        /// The reason, and the folder that stays.
        message: String,
    },
    /// The tree is over already.
    #[error("the tree is over")]
    Over,
    /// The tree is over, and cannot go on in this way.
    #[error(transparent)]
    NotReopened(NotReopened),
}

impl From<Refusal> for SpawnerError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

impl SpawnerError {
    /// Returns advice on what to do about the error.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Record(error) => error.hint()?,
            Self::Store(error) => error.hint()?,
            Self::Refused(refusal) => refusal.hint.as_deref()?,
            Self::RuntimeMissing { here, .. } => {
                return Some(format!(
                    "resume it where that runtime is installed and configured, or cancel it; runtimes here: {here}"
                ));
            }
            Self::InputChanged(_) => {
                "put the file back as it was, or run the command again as a new tree"
            }
            Self::Changes { .. } => {
                "nothing is lost: mend what stands in the way, and resume or cancel it once more"
            }
            Self::Answer(_) => {
                "the results are kept: `offshoot merge --children RUN` merges them once more"
            }
            Self::Unknown(_) => "`offshoot audit RUN` says where the record does not hold",
            Self::HostSlots(_) => {
                "mend the folder `offshoot/slots` of the user's state, or take host.maxConcurrent out of the user's file"
            }
            Self::AccountSlots(..) => {
                "mend what the message names of the folder `offshoot/account-slots`, or take host.maxConcurrentPerAccount out of the user's file"
            }
            Self::Over => "`offshoot show RUN` shows what came of it",
            Self::Merge(_) | Self::NotReopened(_) => return None,
        };
        Some(hint.to_owned())
    }
}
