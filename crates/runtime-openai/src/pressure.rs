//! A service that has too much to do, as all its runs hear of it.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The time before which no run calls. When one run is told to slow down, the others would be told the same.
#[derive(Debug, Default)]
pub(crate) struct Pressure(Mutex<Option<Instant>>);

impl Pressure {
    /// A run was told to come again after this.
    pub(crate) fn rises(&self, after: Duration) {
        let until = Instant::now().checked_add(after);
        let mut held = self.0.lock();
        *held = (*held).max(until);
    }

    /// Waits until calls are welcome again, and up to a fifth longer, by a chance from 0 to 1: those who waited together
    /// would be too many again.
    pub(crate) async fn passes(&self, chance: f64) {
        while let Some(until) = self.until() {
            let more = until.duration_since(Instant::now()).mul_f64(chance / 5.0);
            tokio::time::sleep_until(until + more).await;
        }
    }

    fn until(&self) -> Option<Instant> {
        let held = *self.0.lock();
        held.filter(|until| *until > Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_longest_request_counts() {
        let pressure = Pressure::default();
        let begun = Instant::now();
        pressure.passes(1.0).await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        pressure.rises(Duration::from_secs(5));
        pressure.rises(Duration::from_secs(2));
        tokio::join!(
            async {
                pressure.passes(0.0).await;
                assert_eq!(begun.elapsed().as_secs(), 5);
            },
            async {
                pressure.passes(1.0).await;
                assert_eq!(begun.elapsed().as_secs(), 6);
            },
        );
    }
}
