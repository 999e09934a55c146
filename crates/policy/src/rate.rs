//! The number of spawns within the last minute.

use std::collections::VecDeque;
use std::time::Duration;

use offshoot_model::Timestamp;

/// The spawns of the last minute. Moments come in with each call; there is no clock here.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// Oldest first, unless a clock was set back.
    spawns: VecDeque<Timestamp>,
}

impl Window {
    /// The length of the window.
    pub const LENGTH: Duration = Duration::from_secs(60);

    /// A spawn at this moment.
    pub fn record(&mut self, now: Timestamp) {
        while self.spawns.front().is_some_and(|&first| now.since(first) >= Self::LENGTH) {
            self.spawns.pop_front();
        }
        self.spawns.push_back(now);
    }

    /// Returns the number of spawns in the minute before this moment.
    pub fn count(&self, now: Timestamp) -> u32 {
        let recent = self.recent(now).count();
        u32::try_from(recent).expect("four billion spawns do not fit in a minute")
    }

    /// Returns the moment at which so many fit again; at once if they fit now.
    pub fn free_at(&self, limit: u32, now: Timestamp) -> Timestamp {
        let excess = (u64::from(self.count(now)) + 1).saturating_sub(limit.into());
        let Some(last) = usize::try_from(excess).ok().and_then(|excess| excess.checked_sub(1))
        else {
            return now;
        };
        self.recent(now).nth(last).map_or(now, |at| at.plus(Self::LENGTH))
    }

    /// A moment in the future, left by a clock that was set back, counts as now.
    fn recent(&self, now: Timestamp) -> impl Iterator<Item = Timestamp> {
        self.spawns.iter().copied().filter(move |&at| now.since(at) < Self::LENGTH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::EPOCH.plus(Duration::from_secs(seconds))
    }

    #[test]
    fn a_minute_is_sixty_seconds_and_no_more() {
        let mut window = Window::default();
        for second in [0, 10, 20] {
            window.record(at(second));
        }
        let check = |now: u64, count: u32, free_at: u64| {
            assert_eq!(window.count(at(now)), count, "count at {now}");
            assert_eq!(window.free_at(3, at(now)), at(free_at), "free at {now}");
        };
        check(20, 3, 60);
        check(59, 3, 60);
        check(60, 2, 60);
        check(70, 1, 70);
        check(80, 0, 80);
        assert_eq!(window.free_at(1, at(20)), at(80));
    }

    #[test]
    fn a_clock_that_was_set_back_frees_nothing() {
        let mut window = Window::default();
        window.record(at(1000));
        assert_eq!(window.count(at(10)), 1);
        window.record(at(10));
        assert_eq!(window.count(at(10)), 2);
    }

    #[test]
    fn old_spawns_are_forgotten() {
        let mut window = Window::default();
        (0..10_000).for_each(|second| window.record(at(second)));
        assert_eq!(window.spawns.len(), 60);
    }
}
