//! The group of one child: what it is signalled through, and how it comes to its end.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use tokio::io::unix::AsyncFd;
use tokio::task::spawn_blocking;

use crate::cpu::CpuClock;
use crate::processes::Inner;
use crate::reaper::EndingGroup;
use crate::remains::{self, Ended};
use crate::sys::{self, ProcessId};
use crate::{Exit, Identity};

/// A process group whose leader has not been reaped, so that its number means it and nothing else. Dropped before its
/// end, it is killed, and reaped by a thread.
#[derive(Debug)]
pub(crate) struct Group {
    inner: Arc<Inner>,
    process: ProcessId,
    identity: Identity,
    /// The element of the mark that is this child's alone.
    mark: String,
    cpu: CpuClock,
    /// The leader. None once the group has been settled.
    exit: Option<AsyncFd<OwnedFd>>,
}

impl Group {
    pub(crate) fn new(
        inner: Arc<Inner>,
        process: ProcessId,
        identity: Identity,
        mark: String,
        exit: AsyncFd<OwnedFd>,
    ) -> Self {
        let cpu = CpuClock::new(&inner, identity, mark.clone());
        Self { inner, process, identity, mark, cpu, exit: Some(exit) }
    }

    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }

    pub(crate) fn cpu(&self) -> CpuClock {
        self.cpu.clone()
    }

    pub(crate) fn end_limit(&self) -> std::time::Duration {
        self.inner.end_limit
    }

    pub(crate) fn ask(&self) {
        self.process.ask_group();
    }

    pub(crate) fn kill(&self) {
        self.process.kill_group();
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
        self.process.kill_group();
        let ended = match self.inner.settle(self.identity) {
            Some(exit) if self.inner.adopts() || !self.process.group_exists() => Ended::alone(exit),
            settled => {
                let ending = self.ending(None);
                // The blocking thread goes on even when this wait is dropped.
                let cleared = spawn_blocking(move || remains::clear(&ending, settled)).await;
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

    fn ending(&self, leader: Option<OwnedFd>) -> EndingGroup {
        let (inner, mark) = (Arc::clone(&self.inner), self.mark.clone());
        EndingGroup { inner, process: self.process, identity: self.identity, mark, leader }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(exit) = self.exit.take() {
            self.process.kill_group();
            let ending = self.ending(Some(exit.into_inner()));
            self.inner.reaper.end_later(ending);
        }
    }
}

/// Waits, on a blocking thread, until a leader that has been killed has ended.
pub(crate) fn wait_for_leader(leader: impl AsFd, inner: &Inner) -> bool {
    sys::wait_readable(leader, inner.end_limit)
}
