//! Asking the keeper for a sign of life: one that is stopped, or that gets no time to run, would not end what we leave.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::{Inner, Notice};
use crate::Identity;
use crate::keeper::Link;

/// How long an answer may take. The keeper has nothing to do but to answer.
const PATIENCE: Duration = Duration::from_secs(10);

impl Inner {
    /// Starts the task with the first program: from then on there is something to be held.
    pub(super) fn watch_keeper(self: &Arc<Self>) {
        if self.keeper.is_some() && !self.keeper_is_asked.swap(true, Ordering::Relaxed) {
            let (inner, every) = (Arc::downgrade(self), self.keeper_heartbeat);
            #[expect(clippy::disallowed_methods, reason = "it ends by itself with the last child")]
            // It holds nothing while it sleeps, so it keeps no keeper alive.
            drop(tokio::spawn(watch(inner, every)));
        }
    }

    /// Asks the keeper. Answers which one, where it can be asked.
    fn ask_keeper(&self) -> Option<u32> {
        let state = self.state();
        let keeper = state.keeper.as_ref()?;
        keeper.ask().then(|| keeper.pid())
    }

    /// Replaces the keeper that was asked, if it is still the one and has not answered. Blocks while another one starts.
    fn replace_if_silent(&self, asked: u32) {
        let mut state = self.state();
        let (Some(keeper), Some(command)) = (&state.keeper, &self.keeper) else { return };
        if keeper.pid() != asked || keeper.has_answered() {
            return;
        }
        let held = state.live.iter().chain(&state.guests).chain(&state.strays);
        let held = held.map(|(&pid, &start_time)| Identity { pid, start_time });
        let notice = match Link::start(command, &self.token, self.cgroup.as_deref(), held) {
            Ok(link) => {
                // Killed only now: until then it may still wake up in time.
                if let Some(silent) = state.keeper.replace(link) {
                    silent.kill();
                }
                Notice::KeeperReplaced { pid: asked }
            }
            Err(error) => Notice::KeeperSilent { pid: asked, error },
        };
        drop(state);
        self.notice(notice);
    }

    /// Tells whoever wants to know.
    pub(super) fn notice(&self, notice: Notice) {
        if let Some(notices) = &self.notices {
            // One that has stopped to listen does not want to know.
            let _ = notices.send(notice);
        }
    }
}

async fn watch(inner: Weak<Inner>, every: Duration) {
    loop {
        pause(every).await;
        let Some(asked) = inner.upgrade().map(|inner| inner.ask_keeper()) else { return };
        // One that cannot even be asked has ended, which the next start finds.
        let Some(asked) = asked else { continue };
        pause(every.min(PATIENCE)).await;
        let Some(inner) = inner.upgrade() else { return };
        // Where the runtime ends meanwhile, so does this task.
        let _ = spawn_blocking(move || inner.replace_if_silent(asked)).await;
    }
}

async fn pause(time: Duration) {
    #[expect(
        clippy::disallowed_methods,
        reason = "a sign of life has no event to wait for but time"
    )]
    sleep(time).await;
}
