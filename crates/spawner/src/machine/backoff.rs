//! Calls to a service that failed, and that the runtime of a run makes again after a wait.
//!
//! ```text
//!   a call fails ──▶ recorded, and the pace of the account is halved ──▶ the next one fails ──▶ …
//!                                                                └──▶ it is answered ──▶ recorded
//! ```

use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{EventKind, Timestamp};

use super::Machine;
use super::report::Allowance;
use super::run::{Live, RunIndex};

/// The most bytes that are kept of the words in which a service refused a call.
const LONGEST: usize = 400;

/// The longest wait that is believed.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// The calls of a run that failed and are made again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Backoff {
    /// True from a call that failed until the service answers, in one attempt.
    pub(super) is_open: bool,
    /// The number of them that may still be kept.
    allowance: Allowance,
}

impl Backoff {
    /// Counts a call that failed and is on record.
    pub(super) fn begin(&mut self, now: Timestamp) {
        self.is_open = true;
        self.allowance.count(now);
    }
}

impl Machine {
    /// The service of a run has refused or broken off a call, and is asked again after this wait.
    pub(super) fn backs_off(
        &mut self,
        run: RunIndex,
        why: &str,
        wait: Duration,
        is_pressure: bool,
    ) {
        let Some(live) = self.runs.live(run) else { return };
        // The calls that follow the first meet the same fault, and of a wall the meter has told before.
        let is_news = is_pressure && !live.backs_off() && !live.met_wall();
        let why: Arc<str> = why[..why.floor_char_boundary(LONGEST)].into();
        match live.backoff.as_ref().is_none_or(|backoff| backoff.allowance.has_room(self.now)) {
            true => {
                let until = self.now.plus(wait.min(LONGEST_WAIT));
                self.record(run, EventKind::BacksOff { why, until });
            }
            false => self.show(run, why),
        }
        if is_news {
            self.meets_pressure(run);
        }
    }

    /// The service of a run has answered it.
    pub(super) fn is_answered_again(&mut self, run: RunIndex) {
        if self.runs.live(run).is_some_and(Live::backs_off) {
            self.record(run, EventKind::Answered);
        }
    }
}
