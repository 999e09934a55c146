//! The limit of threads that read for a run at once, and their end when the caller has gone.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use offshoot_door::{CallError, CallerKind};
use offshoot_model::RunId;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::blocking;

/// The number of threads that read files or the record for one run at once: more of them are not faster than a disk.
const AT_ONCE: usize = 4;

/// The turns to read, by the run that asks. All clones share them.
#[derive(Clone, Default)]
pub(super) struct Searches(Arc<Mutex<HashMap<RunId, Weak<Semaphore>>>>);

/// True once the caller has gone. The reader of a long file checks it from time to time.
#[derive(Clone, Default)]
pub(super) struct Gone(Arc<AtomicBool>);

/// Says so when it is dropped.
struct Caller(Gone);

impl Searches {
    /// Reads on a thread that may block, when one is free for the run that asks. Dropped, it is not begun, or told to end.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        caller: CallerKind,
        work: impl FnOnce(&Gone) -> Result<T, CallError> + Send + 'static,
    ) -> Result<T, CallError> {
        let turn = match caller {
            CallerKind::Run(run) => {
                Some(self.turns(run).acquire_owned().await.expect("it is never closed"))
            }
            CallerKind::Operator | CallerKind::OperatorCommand => None,
        };
        let gone = Gone::default();
        let _caller = Caller(gone.clone());
        blocking(move || {
            // Held by the thread and not by the caller: one that has gone still takes a turn until its thread has ended.
            let _turn = turn;
            work(&gone)
        })
        .await
    }

    fn turns(&self, run: RunId) -> Arc<Semaphore> {
        let mut runs = self.0.lock();
        if let Some(turns) = runs.get(&run).and_then(Weak::upgrade) {
            return turns;
        }
        runs.retain(|_, turns| turns.strong_count() > 0);
        let turns = Arc::new(Semaphore::new(AT_ONCE));
        runs.insert(run, Arc::downgrade(&turns));
        turns
    }
}

impl Gone {
    /// Fails where the caller waits no more. No caller receives this error.
    pub(super) fn check(&self) -> std::io::Result<()> {
        if self.0.load(Ordering::Relaxed) {
            return Err(std::io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}
