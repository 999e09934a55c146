//! A service that has too much to do, as all runs of a runtime hear of it.

use std::time::Duration;

use offshoot_model::RunId;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The time before which no run calls a service. When one run is told to slow down, the others would be told the same.
#[derive(Debug, Default)]
pub struct Pressure(Mutex<Option<Instant>>);

impl Pressure {
    /// A run was told to come again after this.
    pub fn rises(&self, after: Duration) {
        let until = Instant::now().checked_add(after);
        let mut held = self.0.lock();
        *held = (*held).max(until);
    }

    /// Returns the time until calls are welcome again; none where they are.
    pub fn left(&self) -> Option<Duration> {
        self.until().map(|until| until.duration_since(Instant::now()))
    }

    /// Returns a number from 0 to 1 that runs do not share. The last bits of an id are random.
    pub fn chance(run: RunId) -> f64 {
        let [.., a, b] = run.as_uuid().into_bytes();
        f64::from(u16::from_be_bytes([a, b])) / f64::from(u16::MAX)
    }

    /// Waits until calls are welcome again, and up to a fifth longer, by a chance from 0 to 1: those who waited together
    /// would be too many again.
    pub async fn passes(&self, chance: f64) {
        while let Some(until) = self.until() {
            let more = until.duration_since(Instant::now()).mul_f64(chance / 5.0);
            tokio::time::sleep_until(until + more).await;
        }
    }

    fn until(&self) -> Option<Instant> {
        self.0.lock().filter(|until| *until > Instant::now())
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
        assert_eq!(pressure.left(), Some(Duration::from_secs(5)));
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
