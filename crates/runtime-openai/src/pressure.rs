//! A service that has too much to do, as all its runs hear of it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Until when nobody calls. When one run is told to slow down, the others would be told the same.
#[derive(Debug, Default)]
pub(crate) struct Pressure(Mutex<Option<Instant>>);

impl Pressure {
    /// A run was told to come again after this.
    pub(crate) fn rises(&self, after: Duration) {
        let until = Instant::now().checked_add(after);
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *held = (*held).max(until);
    }

    /// Waits until calls are welcome again.
    pub(crate) async fn passes(&self) {
        while let Some(until) = self.until() {
            tokio::time::sleep_until(until).await;
        }
    }

    fn until(&self) -> Option<Instant> {
        let held = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
        pressure.passes().await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        pressure.rises(Duration::from_secs(5));
        pressure.rises(Duration::from_secs(2));
        pressure.passes().await;
        assert_eq!(begun.elapsed().as_secs(), 5);
    }
}
