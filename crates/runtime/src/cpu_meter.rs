//! The CPU time of a run's processes, read by the engine when the run has waited.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

/// The CPU time that the processes of one run have used so far. A runtime that starts none says nothing, and its runs are not
/// measured. Cheap to clone.
#[derive(Clone, Default, derive_more::Debug)]
#[debug("CpuMeter")]
pub struct CpuMeter(Arc<Mutex<Sources>>);

type Source = Arc<dyn Fn() -> Duration + Send + Sync>;

#[derive(Clone, Default)]
struct Sources {
    /// The time that earlier processes have used.
    earlier: Duration,
    now: Option<Source>,
}

impl CpuMeter {
    /// The runtime has started a process, and this tells what that and everything below it has used, also once it has ended.
    /// An earlier process of the run has ended by then. It may block for some milliseconds.
    pub fn measures(&self, process: impl Fn() -> Duration + Send + Sync + 'static) {
        let earlier = self.read().unwrap_or_default();
        let mut sources = self.0.lock();
        *sources = Sources { earlier, now: Some(Arc::new(process)) };
    }

    /// Returns the time used until now; none where there is nothing to measure. It may block for some milliseconds.
    pub fn read(&self) -> Option<Duration> {
        // Not under the lock: it reads files.
        let Sources { earlier, now } = self.sources();
        Some(earlier + now?())
    }

    /// True if there is nothing to measure.
    pub fn is_empty(&self) -> bool {
        self.sources().now.is_none()
    }

    fn sources(&self) -> Sources {
        self.0.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_one_run_add_up() {
        let meter = CpuMeter::default();
        assert!(meter.is_empty());
        assert_eq!(meter.read(), None);
        meter.measures(|| Duration::from_secs(2));
        assert_eq!(meter.read(), Some(Duration::from_secs(2)));
        meter.measures(|| Duration::from_secs(3));
        assert_eq!(meter.read(), Some(Duration::from_secs(5)));
    }
}
