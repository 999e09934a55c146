//! The treatment of a process whose agent waits for its children after a turn, and needs nothing meanwhile.
//!
//! Kept, it holds some two hundred megabytes and takes its next turn at once. Ended, it holds nothing, and a further process
//! goes on with its session in half a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The treatment of processes that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parking {
    /// Processes are kept for a while, as long as they are few and no run waits for memory.
    #[default]
    Auto,
    /// Processes are kept.
    Keep,
    /// Processes are ended, and their sessions continue in further processes.
    Resume,
}

/// The number of processes that wait at the moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptProcesses(Arc<AtomicUsize>);

/// One that waits. Dropped when it does so no longer.
#[derive(Debug)]
pub(crate) struct KeptProcess<'a> {
    parked: &'a KeptProcesses,
    /// The number of processes that wait, with this one.
    pub(crate) taken: usize,
}

/// The longest that a ruling takes where no child has to be waited for.
pub(crate) const AT_ONCE: Duration = Duration::from_millis(500);

/// Longer than this, `Auto` keeps no process: the half second that another one takes is nothing then.
const A_WHILE: Duration = Duration::from_secs(60);

/// More than these, `Auto` does not keep: together they hold about a gigabyte.
const FEW: usize = 4;

/// So long that it ends with the run.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Parking {
    /// Returns the time for which a process is kept that is one of so many.
    pub(crate) fn keeps(self, taken: usize) -> Duration {
        match self {
            Self::Auto if taken <= FEW => A_WHILE,
            Self::Auto | Self::Resume => AT_ONCE,
            Self::Keep => FOR_EVER,
        }
    }
}

impl KeptProcesses {
    pub(crate) fn park(&self) -> KeptProcess<'_> {
        let taken = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        KeptProcess { parked: self, taken }
    }
}

impl Drop for KeptProcess<'_> {
    fn drop(&mut self) {
        self.parked.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_kept_and_many_are_not() {
        let parked = KeptProcesses::default();
        let places: Vec<_> = (0..=FEW).map(|_| parked.park()).collect();
        let kept: Vec<_> = places.iter().map(|place| Parking::Auto.keeps(place.taken)).collect();
        assert_eq!(kept, [A_WHILE, A_WHILE, A_WHILE, A_WHILE, AT_ONCE]);
        drop(places);
        assert_eq!(parked.park().taken, 1, "places are given back");
        assert_eq!(Parking::Keep.keeps(1000), FOR_EVER);
        assert_eq!(Parking::Resume.keeps(1), AT_ONCE);
    }
}
