//! The threads that the merges of a tree may have at once.
//!
//! A merge may take its time over a result, and one of a plugin may never come back. It has one of these threads then, and
//! not the last of those that the record is read on.

use std::sync::Arc;

use offshoot_runtime::MergeFault;
use tokio::sync::Semaphore;

use crate::blocking::joined;

/// Half of what tokio has for work that blocks, by default.
const MOST: usize = 256;

/// A bounded number of threads. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct MergeThreads(Arc<Semaphore>);

impl MergeThreads {
    /// Does this on one of them, when there is one. Dropping the future does not end what has begun.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, MergeFault> + Send + 'static,
    ) -> Result<T, MergeFault> {
        let thread =
            Arc::clone(&self.0).acquire_owned().await.expect("the threads of merges were closed");
        let done = tokio::task::spawn_blocking(move || {
            let _until_it_comes_back = thread;
            work()
        });
        joined(done).await.unwrap_or_else(|panic| {
            let message = format!("the merge panicked: {panic}");
            Err(MergeFault { message, panicked: true })
        })
    }
}

impl Default for MergeThreads {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MOST)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn what_does_not_come_back_takes_no_thread_from_others() {
        let threads = MergeThreads(Arc::new(Semaphore::new(1)));
        let (go_on, held) = mpsc::channel::<()>();
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let stuck = threads.run(move || {
            begun.send(()).expect("the test listens");
            held.recv().map_err(|_| MergeFault::new("let go"))
        });
        tokio::select! {
            biased;
            _ = stuck => panic!("it is held for ever"),
            heard = has_begun => heard.expect("nothing has begun"),
        }
        // No caller waits for it any more, and it has its thread all the same.
        assert!(threads.0.try_acquire().is_err());
        drop(go_on);
        assert_eq!(threads.run(|| Ok(1)).await, Ok(1));
        let error = threads.run(|| -> Result<(), _> { panic!("at the disco") }).await;
        assert!(error.expect_err("it panics").panicked);
    }
}
