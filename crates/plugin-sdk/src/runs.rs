//! The work of a plugin: everything that its shutdown has to end.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use offshoot_plugin_abi::AbiError;
use offshoot_runtime::{Stop, StopHandle};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// Runs and merges that are under way.
#[derive(Debug)]
pub(crate) struct Runs {
    state: Mutex<State>,
    /// Wakes the shutdown that waits until there are none.
    none_left: Notify,
}

#[derive(Debug, Default)]
struct State {
    closed: bool,
    next: u64,
    live: HashMap<u64, Live>,
}

#[derive(Debug)]
struct Live {
    stop: Option<StopHandle>,
    /// None for the moment in which its task is being started.
    task: Option<AbortHandle>,
}

/// A place among those under way, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    runs: &'static Runs,
    id: u64,
}

impl Runs {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::default(), none_left: Notify::new() }
    }

    /// One more, unless the plugin is being shut down. What listens to requests to stop brings its handle.
    pub(crate) fn enter(&'static self, stop: Option<StopHandle>) -> Result<Entry, AbiError> {
        let mut state = self.state();
        if state.closed {
            return Err(AbiError::new(AbiError::CANCELLED, "this plugin is shut down"));
        }
        let id = state.next;
        state.next += 1;
        state.live.insert(id, Live { stop, task: None });
        Ok(Entry { runs: self, id })
    }

    /// Notes the task of an entry. The task may have ended already.
    pub(crate) fn runs_as(&self, id: u64, task: AbortHandle) {
        if let Some(live) = self.state().live.get_mut(&id) {
            live.task = Some(task);
        }
    }

    /// Ends all of them, softly where that is possible, and says how many had to be ended by force. None is let in any more.
    pub(crate) async fn shut_down(&self, limit: Duration) -> usize {
        let request = match limit / 2 {
            Duration::ZERO => Stop::Firm,
            grace => Stop::Soft { grace },
        };
        self.close();
        for live in self.state().live.values() {
            match (&live.stop, &live.task) {
                (Some(stop), _) => stop.stop(request),
                (None, Some(task)) => task.abort(),
                (None, None) => {}
            }
        }
        // The last tenth is for those who are ended by force.
        if timeout(limit * 9 / 10, self.none_left()).await.is_ok() {
            return 0;
        }
        let left = {
            let state = self.state();
            state.live.values().filter_map(|live| live.task.as_ref()).for_each(AbortHandle::abort);
            state.live.len()
        };
        // A task that blocks its thread cannot be ended; everything else is as soon as it is polled.
        let _ = timeout(limit / 10 + Duration::from_millis(100), self.none_left()).await;
        left
    }

    /// Lets no run in any more.
    pub(crate) fn close(&self) {
        self.state().closed = true;
    }

    async fn none_left(&self) {
        // Listening first: the last one may go between the look and the wait.
        let told = self.none_left.notified();
        if !self.state().live.is_empty() {
            told.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    pub(crate) fn id(&self) -> u64 {
        self.id
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut state = self.runs.state();
        state.live.remove(&self.id);
        if state.live.is_empty() {
            self.runs.none_left.notify_waiters();
        }
    }
}
