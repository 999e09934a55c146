//! A tree as it was at a moment, and the way through its time.

use std::time::Duration;

use offshoot_model::{Timestamp, Tree};

use crate::history::History;

/// The place in the time of all trees that are shown.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    /// All trees, as they were.
    pub(crate) tree: Tree,
    /// All events by their moments.
    order: Vec<(Timestamp, u32)>,
    /// The number of events that the tree has taken in.
    taken: usize,
    /// The moment that is shown.
    pub(crate) at: Timestamp,
    /// True while time goes on by itself.
    pub(crate) is_playing: bool,
    /// The seconds of the record that pass in one second.
    pub(crate) speed: u32,
}

/// A replay takes so many seconds unless the speed is changed.
const USUAL_SECONDS: u64 = 30;

impl Replay {
    /// At the end of what was told; none where nothing was.
    pub(crate) fn new(history: &History) -> Option<Self> {
        let order = history.by_moment();
        let (first, last) = (order.first()?.0, order.last()?.0);
        let speed = last.since(first).as_secs() / USUAL_SECONDS;
        let mut replay = Self {
            tree: Tree::new(),
            order,
            taken: 0,
            at: first,
            is_playing: false,
            speed: u32::try_from(speed).unwrap_or(u32::MAX).max(1),
        };
        replay.seek(last, history);
        Some(replay)
    }

    pub(crate) fn first(&self) -> Timestamp {
        self.order.first().map_or(self.at, |first| first.0)
    }

    pub(crate) fn last(&self) -> Timestamp {
        self.order.last().map_or(self.at, |last| last.0)
    }

    /// The time from the first event to the last.
    pub(crate) fn length(&self) -> Duration {
        self.last().since(self.first())
    }

    /// Goes to a moment.
    pub(crate) fn seek(&mut self, at: Timestamp, history: &History) {
        let at = at.clamp(self.first(), self.last());
        let taken = self.order.partition_point(|(moment, _)| *moment <= at);
        self.take(taken, history);
        self.at = at;
    }

    /// Goes a part of the whole time forth or back: a hundredth, so many times.
    pub(crate) fn hundredths(&mut self, steps: i32, history: &History) {
        let step = self.length() * steps.unsigned_abs() / 100;
        self.seek(moved(self.at, step, steps >= 0), history);
    }

    /// Goes to the next moment at which something happened, or to the one before.
    pub(crate) fn event(&mut self, forward: bool, history: &History) {
        let next = match forward {
            true => self.order.get(self.taken),
            false => {
                let before = self.order[..self.taken].partition_point(|(at, _)| *at < self.at);
                before.checked_sub(1).and_then(|at| self.order.get(at))
            }
        };
        if let Some((at, _)) = next.copied() {
            self.seek(at, history);
        }
    }

    /// Lets time pass, if it goes on by itself. It stops at the end.
    pub(crate) fn pass(&mut self, time: Duration, history: &History) {
        if self.is_playing {
            self.seek(self.at.plus(time.saturating_mul(self.speed)), history);
            self.is_playing = self.at < self.last();
        }
    }

    /// Begins to let time pass, at the beginning where it was at its end; or stops.
    pub(crate) fn play(&mut self, history: &History) {
        if !self.is_playing && self.at >= self.last() {
            self.seek(self.first(), history);
        }
        self.is_playing = !self.is_playing;
    }

    fn take(&mut self, taken: usize, history: &History) {
        if taken < self.taken {
            (self.tree, self.taken) = (Tree::new(), 0);
        }
        for (_, at) in &self.order[self.taken..taken] {
            self.tree.apply(history.get(*at));
        }
        self.taken = taken;
    }
}

fn moved(at: Timestamp, by: Duration, forward: bool) -> Timestamp {
    let micros = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
    match forward {
        true => at.plus(by),
        false => Timestamp::from_micros(at.as_micros().saturating_sub(micros)),
    }
}
