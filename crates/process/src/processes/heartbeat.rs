//! Looking after the keeper: one that has ended, is stopped or gets no time to run would not end what we leave.

use std::future::pending;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::{Inner, KeeperFault, Notice, ProcessTable};
use crate::keeper::Link;
use crate::watch::watch;
use crate::{Identity, KeeperError};

/// The time that an answer may take. The keeper has nothing to do but to answer.
const PATIENCE: Duration = Duration::from_secs(10);

impl Inner {
    /// Starts the task with the first program: from then on there is something to be held.
    pub(super) fn watch_keeper(self: &Arc<Self>) {
        if self.options.keeper.is_some() && !self.keeper_is_asked.swap(true, Ordering::Relaxed) {
            let (inner, every) = (Arc::downgrade(self), self.options.keeper_heartbeat);
            #[expect(clippy::disallowed_methods, reason = "it ends by itself with the last child")]
            // The task holds nothing while it sleeps, so it keeps no keeper alive.
            drop(tokio::spawn(look_after(inner, every)));
        }
    }

    /// Returns a descriptor that becomes readable when the keeper ends.
    fn keeper_end(&self) -> Option<AsyncFd<OwnedFd>> {
        let end = self.state.lock().keeper.as_ref()?.end().ok()?;
        watch(end, Interest::READABLE).ok()
    }

    /// Asks the keeper. Answers which one, where it can be asked.
    fn ask_keeper(&self) -> Option<u32> {
        let state = self.state.lock();
        let keeper = state.keeper.as_ref()?;
        keeper.ask().then(|| keeper.pid())
    }

    /// Replaces the keeper where it has ended, or was asked and has not answered. Blocks while another one starts. False where
    /// there is no other one.
    fn replace_failed_keeper(&self, asked: Option<u32>) -> bool {
        let mut state = self.state.lock();
        let Some(keeper) = &state.keeper else { return true };
        let is_silent = asked == Some(keeper.pid()) && !keeper.has_answered();
        if !is_silent && !keeper.has_ended() {
            return true;
        }
        let (pid, found) = (keeper.pid(), keeper.fault());
        let error = self.replace_keeper(&mut state, None).err();
        drop(state);
        let is_replaced = error.is_none();
        self.notice(Notice::KeeperFailed { pid, found, error });
        is_replaced
    }

    /// Starts another keeper for all that live, and for this one. Where that fails the last one stays.
    pub(super) fn replace_keeper(
        &self,
        state: &mut ProcessTable,
        newest: Option<Identity>,
    ) -> Result<(), KeeperError> {
        let Some(command) = &self.options.keeper else { return Ok(()) };
        let held = state.live.iter().chain(&state.guests).chain(&state.strays);
        let held = held.map(|(&pid, &start_time)| Identity { pid, start_time });
        let link = Link::start(command, &self.token, self.cgroup.as_deref(), held.chain(newest))?;
        // Killed only now: until then it may still wake up in time.
        if let Some(failed) = state.keeper.replace(link) {
            failed.kill();
        }
        Ok(())
    }

    /// Sends a notice, where there is a receiver.
    pub(super) fn notice(&self, notice: Notice) {
        match &notice {
            Notice::Stray(stray) => {
                tracing::warn!(
                    pid = stray.pid,
                    "process belongs to no run, ends with the last one"
                );
            }
            Notice::KeeperFailed { pid, found, error: None } => {
                tracing::warn!(keeper = pid, ?found, "keeper failed, replaced");
            }
            Notice::KeeperFailed { pid, found, error: Some(error) } => {
                let error = error.to_string();
                tracing::error!(keeper = pid, ?found, error, "keeper failed, none in its place");
            }
        }
        if let Some(notices) = &self.options.notices {
            // One that has stopped to listen does not want to know.
            let _ = notices.send(notice);
        }
    }
}

impl Link {
    /// Returns the fault of a keeper that does not hold.
    pub(super) fn fault(&self) -> KeeperFault {
        if self.has_ended() {
            KeeperFault::Ended
        } else if self.is_stopped() {
            KeeperFault::Stopped
        } else {
            KeeperFault::Silent
        }
    }
}

async fn look_after(inner: Weak<Inner>, every: Duration) {
    loop {
        let Some(end) = inner.upgrade().map(|inner| inner.keeper_end()) else { return };
        let ended = async {
            match &end {
                // An error means that the runtime is shutting down, and this task with it.
                Some(end) => drop(end.readable().await),
                None => pending().await,
            }
        };
        let beat = async {
            pause(every).await;
            let asked = inner.upgrade().and_then(|inner| inner.ask_keeper());
            pause(every.min(PATIENCE)).await;
            asked
        };
        let asked = tokio::select! {
            () = ended => None,
            asked = beat => asked,
        };
        let Some(inner) = inner.upgrade() else { return };
        // Where the runtime ends meanwhile, so does this task.
        let replaced = spawn_blocking(move || inner.replace_failed_keeper(asked)).await;
        if !replaced.unwrap_or(false) {
            pause(every).await;
        }
    }
}

async fn pause(time: Duration) {
    #[expect(
        clippy::disallowed_methods,
        reason = "a sign of life has no event to wait for but time"
    )]
    sleep(time).await;
}
