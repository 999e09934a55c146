//! Stop, grace, kill: which signal is due, as a pure machine. Time is handed in.

use std::time::Duration;

use tokio::time::Instant;

use super::{Rung, Stop};

/// The state of a child that is being stopped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ladder {
    state: LadderState,
    /// The time in which a killed child has to end.
    end_limit: Duration,
}

#[derive(Clone, Copy, Debug)]
enum LadderState {
    Running,
    Asked { kill_at: Option<Instant> },
    Killed { lost_at: Option<Instant> },
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    Ask,
    Kill,
    /// Killing did not help: no more is waited for.
    GiveUp,
}

impl Ladder {
    pub(crate) fn new(end_limit: Duration) -> Self {
        Self { state: LadderState::Running, end_limit }
    }

    /// Takes a request to stop. A request never makes an earlier one softer.
    pub(crate) fn request(&mut self, stop: Stop, now: Instant) -> Option<Move> {
        match (self.state, stop) {
            (LadderState::Killed { .. }, _) => None,
            (_, Stop::Firm) => Some(self.kill(now)),
            (LadderState::Running, Stop::Soft { grace }) => {
                self.state = LadderState::Asked { kill_at: now.checked_add(grace) };
                Some(Move::Ask)
            }
            (LadderState::Asked { kill_at }, Stop::Soft { grace }) => {
                let kill_at = match (kill_at, now.checked_add(grace)) {
                    (Some(old), Some(new)) => Some(old.min(new)),
                    (old, new) => old.or(new),
                };
                self.state = LadderState::Asked { kill_at };
                None
            }
        }
    }

    /// Returns the moment at which [`due`](Self::due) is to be called. None: only a request or the child's end can change
    /// anything, which is also so for a grace that reaches beyond what an instant can say.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.state {
            LadderState::Running => None,
            LadderState::Asked { kill_at } => kill_at,
            LadderState::Killed { lost_at } => lost_at,
        }
    }

    /// The deadline has come.
    pub(crate) fn due(&mut self, now: Instant) -> Move {
        match self.state {
            LadderState::Running | LadderState::Asked { .. } => self.kill(now),
            LadderState::Killed { .. } => Move::GiveUp,
        }
    }

    /// The furthest rung so far.
    pub(crate) fn rung(&self) -> Option<Rung> {
        match self.state {
            LadderState::Running => None,
            LadderState::Asked { .. } => Some(Rung::Asked),
            LadderState::Killed { .. } => Some(Rung::Killed),
        }
    }

    fn kill(&mut self, now: Instant) -> Move {
        self.state = LadderState::Killed { lost_at: now.checked_add(self.end_limit) };
        Move::Kill
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    fn soft(seconds: u64) -> Stop {
        Stop::Soft { grace: Duration::from_secs(seconds) }
    }

    /// Requests at seconds since the start → the moves, and when and what the deadline is.
    fn check(requests: &[(u64, Stop)], moves: &[Option<Move>], deadline: Option<u64>, rung: Rung) {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut ladder = Ladder::new(LIMIT);
        let made: Vec<_> =
            requests.iter().map(|(when, stop)| ladder.request(*stop, at(*when))).collect();
        assert_eq!(made, moves, "{requests:?}");
        assert_eq!(ladder.deadline(), deadline.map(at), "{requests:?}");
        assert_eq!(ladder.rung(), Some(rung), "{requests:?}");
    }

    #[tokio::test]
    async fn soft_then_firm() {
        use Move::{Ask, Kill};
        check(&[(0, soft(5))], &[Some(Ask)], Some(5), Rung::Asked);
        check(&[(0, Stop::Firm)], &[Some(Kill)], Some(10), Rung::Killed);
        check(&[(0, soft(5)), (1, soft(2))], &[Some(Ask), None], Some(3), Rung::Asked);
        check(&[(0, soft(5)), (1, soft(60))], &[Some(Ask), None], Some(5), Rung::Asked);
        check(&[(0, soft(5)), (1, Stop::Firm)], &[Some(Ask), Some(Kill)], Some(11), Rung::Killed);
        check(&[(0, Stop::Firm), (1, soft(1))], &[Some(Kill), None], Some(10), Rung::Killed);
        check(&[(0, soft(u64::MAX))], &[Some(Ask)], None, Rung::Asked);
        check(&[(0, soft(u64::MAX)), (1, soft(1))], &[Some(Ask), None], Some(2), Rung::Asked);
    }

    #[tokio::test]
    async fn the_deadline_kills_and_then_gives_up() {
        let now = Instant::now();
        let mut ladder = Ladder::new(LIMIT);
        assert_eq!(ladder.deadline(), None);
        ladder.request(soft(5), now);
        assert_eq!(ladder.due(now), Move::Kill);
        assert_eq!(ladder.due(now + LIMIT), Move::GiveUp);
    }

    proptest! {
        /// Property: a step is never taken back and a deadline for killing never moves away, for all requests in all orders.
        #[test]
        fn nothing_makes_a_stop_softer(requests in prop::collection::vec((0u64..100, 0u64..100, any::<bool>()), 1..20)) {
            let start = Instant::now();
            let mut now = start;
            let mut ladder = Ladder::new(LIMIT);
            for (pause, grace, firm) in requests {
                now += Duration::from_secs(pause);
                let before = (ladder.rung(), ladder.deadline());
                ladder.request(if firm { Stop::Firm } else { soft(grace) }, now);
                prop_assert!(ladder.rung() >= before.0);
                if ladder.rung() == before.0 {
                    prop_assert!(ladder.deadline() <= before.1);
                }
            }
        }
    }
}
