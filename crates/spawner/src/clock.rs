//! Time and ids come in through this door, so that tests can hand in their own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use offshoot_model::{RunId, Timestamp};
use uuid::Uuid;

/// Where the engine takes the time and new ids from.
pub trait Clock: Send + Sync + 'static {
    /// Now, by the wall.
    fn now(&self) -> Timestamp;

    /// A run id that was never given before.
    fn mint(&self) -> RunId;
}

/// The machine's clock and random source.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// A clock that follows tokio's, so that a paused test advances both together; ids count up.
#[derive(Debug)]
pub struct TestClock {
    begun: tokio::time::Instant,
    minted: AtomicU64,
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        #[expect(
            clippy::disallowed_methods,
            reason = "this is the door through which time comes in"
        )]
        let now = std::time::SystemTime::now();
        let since = now.duration_since(std::time::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Timestamp::from_micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
    }

    fn mint(&self) -> RunId {
        RunId::from_uuid(Uuid::now_v7())
    }
}

impl TestClock {
    /// Begins at a fixed moment of the calendar.
    pub fn new() -> Self {
        Self { begun: tokio::time::Instant::now(), minted: AtomicU64::new(0) }
    }
}

impl Default for TestClock {
    fn default() -> Self {
        Self::new()
    }
}

/// 2026-01-01T00:00:00Z.
const TEST_EPOCH_SECONDS: u64 = 1_767_225_600;

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(TEST_EPOCH_SECONDS * 1_000_000).plus(self.begun.elapsed())
    }

    fn mint(&self) -> RunId {
        let count = self.minted.fetch_add(1, Ordering::Relaxed) + 1;
        let millis = TEST_EPOCH_SECONDS * 1000;
        let mut bytes = [0_u8; 10];
        bytes[2..].copy_from_slice(&count.to_be_bytes());
        RunId::from_uuid(uuid::Builder::from_unix_timestamp_millis(millis, &bytes).into_uuid())
    }
}
