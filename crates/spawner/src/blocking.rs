//! Work that may wait for the disk, on threads of its own.

use std::future::pending;
use std::panic::resume_unwind;

use tokio::task::{JoinError, JoinHandle, spawn_blocking};

/// Does this on a thread that may block. A panic in there is one of the caller.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let done = joined(spawn_blocking(work)).await;
    done.unwrap_or_else(|panic| resume_unwind(panic.into_panic()))
}

/// Waits for the end of a task; an error says that it has panicked. A task that never began because its threads are being shut down has no end:
/// then this waits until it is dropped with its caller. What the caller would record instead would be taken for an end of its own.
pub(crate) async fn joined<T>(task: JoinHandle<T>) -> Result<T, JoinError> {
    match task.await {
        Err(error) if error.is_cancelled() => pending().await,
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::runtime::Builder;

    use super::*;

    #[tokio::test]
    async fn the_answer_and_the_panic_are_those_of_the_work() {
        assert_eq!(blocking(|| 7).await, 7);
        let panics = blocking(|| -> u32 { panic!("on purpose") });
        let panic = std::panic::AssertUnwindSafe(panics).catch_unwind().await;
        let panic = panic.expect_err("it has panicked");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"on purpose"));
    }

    #[test]
    fn work_that_never_began_has_no_end() {
        let threads = Builder::new_current_thread().build().expect("a thread");
        let handle = threads.handle().clone();
        threads.shutdown_background();
        let task = handle.spawn_blocking(|| ());
        let waits = Builder::new_current_thread().build().expect("a thread");
        let joined = waits.block_on(async { joined(task).now_or_never() });
        assert!(joined.is_none(), "the run that waits for it decides nothing");
        let cancelled = waits.block_on(handle.spawn_blocking(|| ()));
        assert!(cancelled.is_err_and(|error| error.is_cancelled()), "as tokio tells it");
    }
}
