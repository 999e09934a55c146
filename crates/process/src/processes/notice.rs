//! What is noticed beside the children.

use crate::{Identity, KeeperError};

/// Something that concerns no child alone.
#[derive(Debug)]
#[non_exhaustive]
pub enum Notice {
    /// This process has come to us, belongs to no child that could be named, and is ended with the last of them. Until
    /// then it lives.
    Stray(Identity),
    /// The keeper gave no sign of life, because it was stopped or got no time to run. Another one holds the children now.
    KeeperReplaced {
        /// The number of the one that was silent. It has been killed.
        pid: u32,
    },
    /// The keeper gives no sign of life, and no other one can be started: if this process is killed, its children may live
    /// on. It is tried again with the next sign of life that stays away.
    KeeperSilent {
        /// The number of the one that is silent.
        pid: u32,
        /// Why there is no other one.
        error: KeeperError,
    },
}
