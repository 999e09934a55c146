//! The memory of a run's processes, read by the engine where memory is short.

use std::sync::Arc;

use parking_lot::Mutex;

/// The memory that the processes of one run have at the moment. A runtime that starts none says nothing. Cheap to clone.
#[derive(Clone, Default, derive_more::Debug)]
#[debug("MemoryMeter")]
pub struct MemoryMeter(Arc<Mutex<Option<Source>>>);

type Source = Arc<dyn Fn() -> u64 + Send + Sync>;

impl MemoryMeter {
    /// The runtime has started a process, and this tells the bytes that it and everything below it have in memory. An earlier process
    /// of the run has ended by then. It may block for some milliseconds.
    pub fn measures(&self, process: impl Fn() -> u64 + Send + Sync + 'static) {
        *self.0.lock() = Some(Arc::new(process));
    }

    /// Returns the bytes in memory at the moment; none where there is nothing to measure. It may block for some milliseconds.
    pub fn read(&self) -> Option<u64> {
        // Not under the lock: it reads files.
        let source = self.0.lock().clone();
        Some(source?())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_process_of_a_run_is_measured() {
        let meter = MemoryMeter::default();
        assert_eq!(meter.read(), None);
        meter.measures(|| 2);
        meter.measures(|| 3);
        assert_eq!(meter.read(), Some(3));
    }
}
