//! Threads for asynchronous work.

use tokio::runtime::{Builder, Runtime};

use crate::error::HostError;

/// Starts threads for asynchronous work.
pub fn threads() -> Result<Runtime, HostError> {
    Builder::new_multi_thread().enable_all().build().map_err(HostError::Threads)
}

/// Runs something to its end on threads of its own. A trial of a plugin is made while a command is prepared, and some commands
/// are prepared within the one future of the process.
pub fn aside<T: Send>(work: impl Future<Output = T> + Send) -> Result<T, HostError> {
    let run = || threads().map(|threads| threads.block_on(work));
    let joined = std::thread::scope(|scope| scope.spawn(run).join());
    joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
