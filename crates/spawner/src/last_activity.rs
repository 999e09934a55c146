//! The moment at which a run was last seen at work.

use std::sync::atomic::{AtomicU64, Ordering};

use offshoot_model::Timestamp;

/// Marked by the host of a run as often as there is something to see, and read by the supervisor when it judges a
/// silence.
#[derive(Debug, Default)]
pub(crate) struct LastActivity(AtomicU64);

impl LastActivity {
    /// The run is at work at this moment.
    pub(crate) fn mark(&self, now: Timestamp) {
        self.0.fetch_max(now.as_micros(), Ordering::Relaxed);
    }

    /// The last such moment; none where nothing was seen.
    pub(crate) fn last(&self) -> Option<Timestamp> {
        let last = Timestamp::from_micros(self.0.load(Ordering::Relaxed));
        (last > Timestamp::EPOCH).then_some(last)
    }
}
