//! The watch over one attempt of a run: when it was last at work, and the CPU time that its processes use while it waits.
//!
//! ```text
//!   first wait opens ──▶ reading      a wait closes ──▶ reading ──▶ the difference, to the supervisor
//! ```
//!
//! A run that waits lends its slot, and its time limit rests. So what it does meanwhile is measured: once when its first wait
//! opens and once when one closes, never in between. The answer of the wait is held back until that is known, so that what
//! the run does with the answer is not in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use offshoot_model::Timestamp;
use offshoot_runtime::{CpuMeter, MemoryMeter};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use crate::clock::Clock;
use crate::machine::Busy;

/// The watch over one attempt of a run. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct AttemptWatch(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// The moment at which the run was last seen at work, in microseconds; zero before the first.
    seen: AtomicU64,
    meter: CpuMeter,
    memory: MemoryMeter,
    readings: Mutex<Readings>,
}

#[derive(Debug, Default)]
struct Readings {
    /// Waits of the run that are open.
    open: u32,
    /// Counts the times at which the last open wait closed.
    round: u64,
    /// The last reading of this round; none before the first.
    last: Option<Reading>,
    /// True while a reading is being made. There is one at a time: what happens during it is in the next one.
    is_reading: bool,
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    at: Timestamp,
    cpu: Duration,
}

impl Reading {
    /// Returns the use since the reading before; none where nothing was used.
    fn since(self, before: Self) -> Option<Busy> {
        let cpu = self.cpu.saturating_sub(before.cpu);
        (!cpu.is_zero()).then(|| Busy { cpu, wait: self.at.since(before.at) })
    }
}

impl AttemptWatch {
    /// The run is at work at this moment. Marked by its host as often as there is something to see.
    pub(crate) fn mark(&self, now: Timestamp) {
        self.0.seen.fetch_max(now.as_micros(), Ordering::Relaxed);
    }

    /// The moment at which the run was last seen at work, for the supervisor that judges a silence; none where nothing was seen.
    pub(crate) fn last_seen(&self) -> Option<Timestamp> {
        let last = Timestamp::from_micros(self.0.seen.load(Ordering::Relaxed));
        (last > Timestamp::EPOCH).then_some(last)
    }

    /// The side of the runtime.
    pub(crate) fn meter(&self) -> CpuMeter {
        self.0.meter.clone()
    }

    /// The side of the runtime, for the memory of its processes.
    pub(crate) fn memory(&self) -> &MemoryMeter {
        &self.0.memory
    }

    /// A wait of the run opens; none where there is nothing to measure. `told` is called with what was used when it closes.
    pub(crate) fn open(
        &self,
        clock: &Arc<dyn Clock>,
        told: impl FnOnce(Busy) + Send + 'static,
    ) -> Option<OpenWait> {
        if self.0.meter.is_empty() {
            return None;
        }
        if self.0.readings.lock().opens() {
            let (watch, clock) = (self.clone(), Arc::clone(clock));
            spawn_blocking(move || watch.begin(&*clock));
        }
        let (watch, clock) = (self.clone(), Arc::clone(clock));
        Some(OpenWait { watch, clock, told: Some(Box::new(told)) })
    }

    /// The run is over: waits that are open, or whose reading is being made, are measured up to now.
    pub(crate) async fn settle(&self, clock: &Arc<dyn Clock>, told: impl FnOnce(Busy)) {
        // A reading that is being made at this moment finds nothing to compare with, and tells nothing.
        let Some(before) = self.0.readings.lock().last.take() else { return };
        let (watch, clock) = (self.clone(), Arc::clone(clock));
        let now = spawn_blocking(move || watch.reading(&*clock)).await.ok().flatten();
        now.and_then(|now| now.since(before)).map(told);
    }

    /// The first reading of a round.
    fn begin(&self, clock: &dyn Clock) {
        loop {
            let round = self.0.readings.lock().round;
            let reading = self.reading(clock);
            if self.0.readings.lock().begun(round, reading) {
                return;
            }
        }
    }

    /// A further reading, of which `told` learns what was used since the one before.
    fn read(&self, clock: &dyn Clock, told: impl FnOnce(Busy)) {
        let reading = self.reading(clock);
        // Told before another reading can begin, so that the end of the run is not told first.
        let mut readings = self.0.readings.lock();
        readings.has_read(reading).map(told);
    }

    fn reading(&self, clock: &dyn Clock) -> Option<Reading> {
        Some(Reading { cpu: self.0.meter.read()?, at: clock.now() })
    }
}

impl Readings {
    /// Answers whether a first reading has to be made.
    fn opens(&mut self) -> bool {
        self.open += 1;
        let is_first = self.open == 1 && !self.is_reading;
        self.is_reading |= is_first;
        is_first
    }

    /// Takes the first reading of this round. False where the round is over and another has begun.
    fn begun(&mut self, round: u64, reading: Option<Reading>) -> bool {
        let is_late = self.open > 0 && self.round != round;
        if !is_late {
            self.is_reading = false;
            self.last = reading.filter(|_| self.open > 0);
        }
        !is_late
    }

    /// Answers whether a reading has to be made.
    fn closes(&mut self) -> bool {
        let reads = self.last.is_some() && !self.is_reading;
        self.is_reading |= reads;
        self.open -= 1;
        if self.open == 0 {
            self.round += 1;
            // A reading that is being made needs the one before.
            self.last.take_if(|_| !self.is_reading);
        }
        reads
    }

    fn has_read(&mut self, reading: Option<Reading>) -> Option<Busy> {
        self.is_reading = false;
        let before = self.last.take();
        self.last = reading.filter(|_| self.open > 0);
        reading?.since(before?)
    }
}

/// An open wait of a run. Dropped, it closes as well.
pub(crate) struct OpenWait {
    watch: AttemptWatch,
    clock: Arc<dyn Clock>,
    /// Taken when the wait closes.
    told: Option<Box<dyn FnOnce(Busy) + Send>>,
}

impl OpenWait {
    /// The wait closes. The supervisor is told before this answers, and also where nothing waits for that.
    pub(crate) async fn close(mut self) {
        if let Some(read) = self.reader() {
            // A panic in it is told by its thread; there is nothing to measure then.
            let _ = spawn_blocking(read).await;
        }
    }

    /// Returns the function that reads and tells, where that has to be done; at most once.
    fn reader(&mut self) -> Option<impl FnOnce() + Send + 'static> {
        let told = self.told.take()?;
        let (watch, clock) = (self.watch.clone(), Arc::clone(&self.clock));
        let reads = watch.0.readings.lock().closes();
        reads.then_some(move || watch.read(&*clock, told))
    }
}

impl Drop for OpenWait {
    fn drop(&mut self) {
        let Some(read) = self.reader() else { return };
        match Handle::try_current() {
            Ok(handle) => drop(handle.spawn_blocking(read)),
            // A thread outside of the runtime may block.
            Err(_) => read(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at: u64, cpu: u64) -> Option<Reading> {
        let at = Timestamp::from_micros(at * 1_000_000);
        Some(Reading { at, cpu: Duration::from_secs(cpu) })
    }

    fn busy(cpu: u64, wait: u64) -> Option<Busy> {
        Some(Busy { cpu: Duration::from_secs(cpu), wait: Duration::from_secs(wait) })
    }

    #[test]
    fn each_close_tells_what_was_used_since_the_reading_before() {
        let mut readings = Readings::default();
        assert!(readings.opens(), "the first wait");
        assert!(!readings.opens(), "another one meanwhile");
        assert!(readings.begun(0, reading(10, 1)));
        assert!(readings.closes());
        assert_eq!(readings.has_read(reading(20, 6)), busy(5, 10), "one is still open");
        assert!(readings.closes());
        assert_eq!(readings.has_read(reading(30, 8)), busy(2, 10));
        // CPU time between two waits does not count.
        assert!(readings.opens());
        assert!(readings.begun(1, reading(100, 50)));
        assert!(readings.closes());
        assert!(readings.last.take().is_some(), "its run is over before that is read");
        assert_eq!(readings.has_read(reading(101, 51)), None);
    }

    #[test]
    fn waits_that_close_during_a_reading_are_in_it() {
        let mut readings = Readings::default();
        assert!(readings.opens() && !readings.opens());
        assert!(readings.begun(0, reading(10, 1)));
        assert!(readings.closes());
        assert!(!readings.closes(), "it is being read");
        assert_eq!(readings.has_read(reading(20, 6)), busy(5, 10));
        assert!(readings.last.is_none(), "none is open");
        // One that is over before the first reading is not measured, and the next one has a reading of its own.
        assert!(readings.opens());
        assert!(!readings.closes());
        assert!(!readings.opens(), "it is being read");
        assert!(!readings.begun(1, reading(30, 7)), "that was another round");
        assert!(readings.begun(2, reading(40, 9)));
        assert!(readings.closes());
        assert_eq!(readings.has_read(reading(41, 9)), None);
    }
}
