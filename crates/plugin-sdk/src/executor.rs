//! The plugin's own tokio runtime: one, started when it is first needed.

use std::sync::{Mutex, MutexGuard, PoisonError};

use offshoot_plugin_abi::AbiError;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::guard;

/// Threads of it at most: work is the authors', which mostly waits.
const WORKERS: usize = 2;

/// Returns their number here: a library does not take a machine's every core, or its threads and the host's would take turns
/// instead of working side by side.
fn workers() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (cores / 2).clamp(1, WORKERS)
}

/// A library has its own copy of tokio, for which the host's runtime does not exist.
pub(crate) struct Executor(Mutex<State>);

enum State {
    Idle,
    Runs(Runtime),
    /// For good: nothing is asked of a plugin after its shutdown.
    Over,
}

impl Executor {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(State::Idle))
    }

    /// The runtime, started if there was none.
    pub(crate) fn handle(&self) -> Result<Handle, AbiError> {
        let mut state = self.state();
        match &*state {
            State::Runs(runtime) => Ok(runtime.handle().clone()),
            State::Over => Err(AbiError::new(AbiError::CANCELLED, "this plugin is shut down")),
            State::Idle => {
                let runtime = Builder::new_multi_thread()
                    .worker_threads(workers())
                    .thread_name("plugin")
                    .on_thread_start(guard::guard_thread)
                    .enable_all()
                    .build()
                    .map_err(|error| {
                        let message = format!("its threads cannot be started: {error}");
                        AbiError::new(AbiError::UNAVAILABLE, message)
                    })?;
                let handle = runtime.handle().clone();
                *state = State::Runs(runtime);
                Ok(handle)
            }
        }
    }

    /// The runtime, where there is one.
    pub(crate) fn running(&self) -> Option<Handle> {
        match &*self.state() {
            State::Runs(runtime) => Some(runtime.handle().clone()),
            State::Idle | State::Over => None,
        }
    }

    /// Stops its threads without waiting for them.
    pub(crate) fn end(&self) {
        let state = std::mem::replace(&mut *self.state(), State::Over);
        if let State::Runs(runtime) = state {
            runtime.shutdown_background();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
