//! The registrar of the process in which this copy of the crate is a guest.

use std::fmt;
use std::io;

use crate::Identity;

/// The host of a plugin. Plugin and host each have a copy of this crate, in one process: the host's may adopt orphans and
/// has the keeper, so it has to know what the plugin's starts. Its side is
/// [`Processes::guest_starting`](crate::Processes::guest_starting) and what follows there.
pub trait ProcessRegistrar: fmt::Debug + Send + Sync {
    /// A process is about to be started. [`started`](Self::started) or [`not_started`](Self::not_started) follows. Answers
    /// what stands first in the value of [`MARK_VARIABLE`](crate::MARK_VARIABLE) for it.
    fn starting(&self) -> Option<String>;

    /// The process was not started.
    fn not_started(&self);

    /// The process was started, and leads a group of its own.
    ///
    /// # Errors
    /// Fails where nothing would end the process if the host were killed. It is ended then.
    fn started(&self, leader: Identity) -> io::Result<()>;

    /// The group is gone, and its leader is about to be reaped.
    fn ended(&self, leader: Identity);

    /// Returns the processes that have come to this process of all that was started in it, if orphans come to it.
    fn orphans(&self) -> Option<Adopted>;
}

/// Children of this process that it did not start: processes that some program has left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adopted {
    /// The process ids.
    pub pids: Vec<u32>,
    /// True if none of them can be a program that is just being started.
    pub quiet: bool,
}
