//! Time and ids come in through this door, so that tests can hand in their own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use offshoot_model::{RunId, Timestamp};
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use uuid::Uuid;

/// Source of time and of new ids for the engine.
pub trait Clock: Send + Sync + 'static {
    /// Now, by the wall.
    fn now(&self) -> Timestamp;

    /// A run id that was never given before.
    fn mint(&self) -> RunId;
}

/// The machine's clock and random source. The wall is asked once; from then on time only passes, so that a clock that is
/// set back or forward while a tree runs moves no time limit. The time in which the computer sleeps passes too.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// A clock that follows tokio's, so that a paused test advances both together; ids count up.
#[derive(Debug)]
pub struct TestClock {
    begun: tokio::time::Instant,
    minted: AtomicU64,
}

/// Goes on where a record ends, if the wall shows an earlier moment by now: as far ahead of the wall as that takes, and
/// for as long as the tree is held. So the times of one tree never go back.
pub(crate) struct Onward {
    wall: Arc<dyn Clock>,
    ahead: Duration,
}

impl Onward {
    /// Shows this moment now, or a later one.
    pub(crate) fn from(wall: &Arc<dyn Clock>, last: Timestamp) -> Arc<dyn Clock> {
        let ahead = last.since(wall.now());
        Arc::new(Self { wall: Arc::clone(wall), ahead })
    }
}

impl Clock for Onward {
    fn now(&self) -> Timestamp {
        self.wall.now().plus(self.ahead)
    }

    fn mint(&self) -> RunId {
        self.wall.mint()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        static BEGUN: LazyLock<(Timestamp, Duration)> = LazyLock::new(begin);
        let (wall, begun) = *BEGUN;
        wall.plus(since_boot().saturating_sub(begun))
    }

    fn mint(&self) -> RunId {
        static MINT: LazyLock<Mutex<Mint>> = LazyLock::new(|| Mutex::new(Mint::new()));
        let now = self.now();
        RunId::from_uuid(MINT.lock().next(now))
    }
}

/// Returns the time of the wall, and the time since boot at which it was read.
#[expect(clippy::disallowed_methods, reason = "this is the door through which time comes in")]
fn begin() -> (Timestamp, Duration) {
    let (now, begun) = (std::time::SystemTime::now(), since_boot());
    let since = now.duration_since(std::time::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    (Timestamp::from_micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX)), begun)
}

/// Returns the time since boot. `Instant` stands still while the computer sleeps: a tree that is open over a night would count for the
/// day before, and wait too long for a reset.
fn since_boot() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default()
}

/// Makes UUIDs of version 7 that grow from one to the next within this process: the time down to a 4096th of a
/// millisecond, counted up where that stands still, then 62 random bits. These come from a stream with a random seed,
/// because a system call for each id is a good part of what a run costs here.
struct Mint {
    /// 4096ths of a millisecond since the epoch.
    last: u64,
    random: blake3::OutputReader,
}

impl Mint {
    fn new() -> Self {
        let mut seed = blake3::Hasher::new();
        // Each brings some sixty bits of the system's own randomness.
        for _ in 0..8 {
            seed.update(Uuid::now_v7().as_bytes());
        }
        Self { last: 0, random: seed.finalize_xof() }
    }

    fn next(&mut self, now: Timestamp) -> Uuid {
        let (millis, micros) = (now.as_micros() / 1000, now.as_micros() % 1000);
        self.last = ((millis << 12) | ((micros << 12) / 1000)).max(self.last + 1);
        let mut bytes = [0; 10];
        self.random.fill(&mut bytes);
        // The four bits above the fraction are the version's.
        let fraction = (self.last & 0xfff) as u16;
        bytes[..2].copy_from_slice(&fraction.to_be_bytes());
        uuid::Builder::from_unix_timestamp_millis(self.last >> 12, &bytes).into_uuid()
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

/// The first second of 2026 in UTC, 2026-01-01T00:00:00Z.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_grow_and_carry_the_time() {
        let mut mint = Mint::new();
        let at = |micros: u64| Timestamp::from_micros(1_767_225_600_000_000 + micros);
        // Later, at the same moment, within a millisecond, and after the clock was set back.
        let moments = [0, 0, 0, 1, 1, 999, 1_000, 5_000, 0, 0, 5_001].map(at);
        let ids = moments.map(|now| mint.next(now));
        assert!(ids.is_sorted() && ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:?}");
        for id in ids {
            assert_eq!((id.get_version_num(), id.get_variant()), (7, uuid::Variant::RFC4122));
            let (seconds, _) = id.get_timestamp().expect("version 7 has the time").to_unix();
            assert_eq!(seconds, 1_767_225_600);
        }
    }

    #[test]
    fn two_processes_do_not_mint_the_same() {
        let at = Timestamp::from_micros(1_767_225_600_000_000);
        assert_ne!(Mint::new().next(at), Mint::new().next(at));
    }
}
