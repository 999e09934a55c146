//! A service that has too much to do, as all runs of a runtime hear of it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use offshoot_model::RunId;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The time before which no run calls a service. When one run is told to slow down, the others would be told the same: those of this tree,
/// and, with a board, those of all trees that use the account.
#[derive(Debug, Default)]
pub struct Pressure {
    held: Mutex<Option<Instant>>,
    board: Option<Arc<dyn PressureBoard>>,
}

/// The place where the trees of a user tell each other that the service of an account has too much to do.
pub trait PressureBoard: fmt::Debug + Send + Sync + 'static {
    /// Tells the others that calls are welcome again after this time. May write a file.
    fn tell(&self, after: Duration);

    /// Returns the time until calls are welcome again, by all that was told; none where they are. May read a file.
    fn left(&self) -> Option<Duration>;
}

impl Pressure {
    /// The pressure of an account, which is shared with other trees.
    pub fn shared(board: Arc<dyn PressureBoard>) -> Self {
        Self { held: Mutex::default(), board: Some(board) }
    }

    /// A run was told to come again after this.
    pub fn rises(&self, after: Duration) {
        let until = Instant::now().checked_add(after);
        {
            let mut held = self.held.lock();
            *held = (*held).max(until);
        }
        if let Some(board) = &self.board {
            board.tell(after);
        }
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
    /// would be too many again. `told` hears of each wait before it begins: others may be refused meanwhile, and a further one follows.
    pub async fn passes(&self, chance: f64, mut told: impl FnMut(Duration)) {
        while let Some(until) = self.until() {
            let now = Instant::now();
            let until = until + until.duration_since(now).mul_f64(chance / 5.0);
            told(until.duration_since(now));
            tokio::time::sleep_until(until).await;
        }
    }

    fn until(&self) -> Option<Instant> {
        let now = Instant::now();
        let own = self.held.lock().filter(|until| *until > now);
        let left = self.board.as_ref().and_then(|board| board.left());
        own.max(left.filter(|left| !left.is_zero()).and_then(|left| now.checked_add(left)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A board that is kept in memory.
    #[derive(Debug, Default)]
    struct Told(Mutex<Option<Instant>>);

    impl PressureBoard for Told {
        fn tell(&self, after: Duration) {
            *self.0.lock() = Some(Instant::now() + after);
        }

        fn left(&self) -> Option<Duration> {
            self.0.lock().map(|until| until.saturating_duration_since(Instant::now()))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn trees_of_one_account_wait_together() {
        let board = Arc::new(Told::default());
        let [one, other] = [(); 2].map(|()| Pressure::shared(board.clone()));
        let alone = Pressure::default();
        one.rises(Duration::from_secs(5));
        assert_eq!((other.left(), alone.left()), (Some(Duration::from_secs(5)), None));
        let begun = Instant::now();
        other.passes(0.0, |_| ()).await;
        assert_eq!(begun.elapsed().as_secs(), 5);
        assert_eq!((one.left(), other.left()), (None, None));
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_request_counts() {
        let pressure = Pressure::default();
        let begun = Instant::now();
        pressure.passes(1.0, |_| ()).await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        pressure.rises(Duration::from_secs(5));
        pressure.rises(Duration::from_secs(2));
        assert_eq!(pressure.left(), Some(Duration::from_secs(5)));
        tokio::join!(
            async {
                pressure.passes(0.0, |_| ()).await;
                assert_eq!(begun.elapsed().as_secs(), 5);
            },
            async {
                pressure.passes(1.0, |_| ()).await;
                assert_eq!(begun.elapsed().as_secs(), 6);
            },
        );
    }
}
