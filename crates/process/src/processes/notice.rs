//! Notices of events that concern no child alone.

use crate::{Identity, KeeperError};

/// Something that concerns no child alone.
#[derive(Debug)]
#[non_exhaustive]
pub enum Notice {
    /// A process has come to us that belongs to no child that could be named. It is ended with the last of them; until then it
    /// lives.
    Stray(Identity),
    /// The keeper did not hold the children any more.
    KeeperFailed {
        /// The number of that one. It has been killed where there is another one.
        pid: u32,
        /// The state in which the keeper was found.
        found: KeeperFault,
        /// The reason why no other keeper could be started: then, if this process is killed, its children may live on. It is
        /// tried again with the next heartbeat and the next start. None where another keeper holds the children now.
        error: Option<KeeperError>,
    },
}

/// The state of a keeper that did not hold the children any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeeperFault {
    /// The keeper had ended.
    Ended,
    /// The keeper was stopped, by a signal or a debugger.
    Stopped,
    /// The keeper gave no sign of life, although nothing had stopped it: it got no time to run.
    Silent,
}
