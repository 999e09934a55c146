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
use super::run::RunIndex;

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
        let Some(live) = self.runs[run.get()].live() else { return };
        let backoff = live.backoff.as_deref();
        let is_first = backoff.is_none_or(|backoff| !backoff.is_open);
        // The meter has told of the wall before.
        let is_wall = live.requests.as_ref().is_some_and(|requests| requests.met_wall());
        let why: Arc<str> = why[..why.floor_char_boundary(LONGEST)].into();
        match backoff.is_none_or(|backoff| backoff.allowance.has_room(self.now)) {
            true => {
                let until = self.now.plus(wait.min(LONGEST_WAIT));
                self.record(run, EventKind::BacksOff { why, until });
            }
            false => self.show(run, why),
        }
        // The calls that follow meet the same fault.
        if is_pressure && is_first && !is_wall {
            self.meets_pressure(run);
        }
    }

    /// The service of a run has answered it.
    pub(super) fn is_answered_again(&mut self, run: RunIndex) {
        let live = self.runs[run.get()].live();
        if live.and_then(|live| live.backoff.as_ref()).is_some_and(|backoff| backoff.is_open) {
            self.record(run, EventKind::Answered);
        }
    }
}
