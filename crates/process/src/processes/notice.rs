//! What is noticed beside the children.

use crate::{Identity, KeeperError};

/// Something that concerns no child alone.
#[derive(Debug)]
#[non_exhaustive]
pub enum Notice {
    /// This process has come to us, belongs to no child that could be named, and is ended with the last of them. Until
    /// then it lives.
    Stray(Identity),
    /// The keeper did not hold the children any more.
    KeeperFailed {
        /// The number of that one. It has been killed where there is another one.
        pid: u32,
        /// How it was found.
        found: KeeperFault,
        /// Why no other one could be started: then, if this process is killed, its children may live on. It is tried again with
        /// the next heartbeat and the next start. None where another one holds the children now.
        error: Option<KeeperError>,
    },
}

/// How a keeper was found that did not hold any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeeperFault {
    /// It had ended.
    Ended,
    /// It was stopped, by a signal or a debugger.
    Stopped,
    /// It gave no sign of life, although nothing had stopped it: it got no time to run.
    Silent,
}
