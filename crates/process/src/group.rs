//! The group of one child: what it is signalled through, and how it comes to its end.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::io::unix::AsyncFd;
use tokio::task::spawn_blocking;

use crate::cpu::CpuClock;
use crate::processes::Inner;
use crate::remains::{self, Ended};
use crate::sys::{self, ProcessId};
use crate::{Exit, Identity};

/// A process group whose leader has not been reaped, so that its number means it and nothing else. Dropped before its
/// end, it is killed, and reaped by a thread.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) known: KnownGroup,
    pub(crate) cpu: CpuClock,
    /// The leader. None once the group has been settled.
    exit: Option<AsyncFd<OwnedFd>>,
}

/// A group by what it is signalled through, and by what its processes are told from others.
#[derive(Clone, Debug)]
pub(crate) struct KnownGroup {
    /// Keeps the keeper until the group is gone.
    pub(crate) inner: Arc<Inner>,
    pub(crate) process: ProcessId,
    pub(crate) identity: Identity,
    /// The element of the mark that is this child's alone.
    pub(crate) mark: String,
}

impl Group {
    pub(crate) fn new(known: KnownGroup, exit: AsyncFd<OwnedFd>) -> Self {
        Self { cpu: CpuClock::new(&known), known, exit: Some(exit) }
    }

    /// Waits until the leader has ended. It is left unreaped.
    pub(crate) async fn leader_ended(&self) {
        let Some(exit) = &self.exit else { return };
        // An error means that the runtime is shutting down, and with it the waiting task.
        while let Ok(mut ready) = exit.readable().await {
            if sys::has_ended(exit.get_ref()) {
                return;
            }
            ready.clear_ready();
        }
    }

    /// Returns true if the leader has ended, whether this thread has heard of it or not.
    pub(crate) fn has_leader_ended(&self) -> bool {
        self.exit.as_ref().is_none_or(|exit| sys::has_ended(exit.get_ref()))
    }

    /// Ends what the leader has left, and then reaps it. It must have ended.
    pub(crate) async fn end(mut self) -> Ended {
        self.cpu.ends();
        let KnownGroup { inner, process, identity, .. } = &self.known;
        process.kill_group();
        let ended = match inner.settle(*identity) {
            Some(exit) if inner.adopts() || !process.group_exists() => Ended::alone(exit),
            settled => {
                let known = self.known.clone();
                // The blocking thread goes on even when this wait is dropped.
                let cleared = spawn_blocking(move || remains::clear(&known, settled)).await;
                cleared.unwrap_or_else(|_| Ended::alone(settled.unwrap_or(Exit::Lost)))
            }
        };
        self.exit = None;
        ended
    }

    /// No longer waits for a leader that does not end even when killed. The keeper keeps it in mind.
    pub(crate) fn give_up(mut self) -> Ended {
        self.exit = None;
        Ended { lost: 1, ..Ended::alone(Exit::Lost) }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(exit) = self.exit.take() {
            self.known.process.kill_group();
            self.known.inner.reaper.end_later((self.known.clone(), exit.into_inner()));
        }
    }
}
