//! Timers: moments at which the machine wants to be asked again.

use std::collections::BTreeSet;

use offshoot_model::Timestamp;

use super::run::RunIndex;
use super::wait::WaitId;

/// The purpose of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// A run's own time limit.
    Timeout(RunIndex),
    /// A run's silence.
    Idle(RunIndex),
    /// The next attempt of a run.
    Again(RunIndex),
    /// The end of a wait's patience.
    Wait(WaitId),
    /// The end of the time to take the answer of a wait.
    Delivery(WaitId),
    /// Holders may have been silent for too long.
    Stall,
    /// The next look at the memory of the computer, for which a run waits.
    Memory,
    /// The longest wait for the reset of a quota.
    Park,
    /// The deadline of what is below a run, or of the whole tree.
    Deadline(RunIndex),
    /// Runs may have waited for a first answer for too long.
    FirstAnswer,
    /// A slot of an account may have been kept from other trees for long enough.
    AccountSlot,
    /// Nothing may have been recorded for a while.
    Alive,
    /// Breakers and quotas may be probed, rates may have room again.
    Reconsider,
}

/// The timers of one tree. Entries may be stale: the taker of an entry checks that it still means something.
#[derive(Debug, Default)]
pub(crate) struct Timers(BTreeSet<(Timestamp, Due)>);

impl Timers {
    pub(crate) fn arm(&mut self, at: Timestamp, due: Due) {
        self.0.insert((at, due));
    }

    pub(crate) fn disarm(&mut self, at: Timestamp, due: Due) {
        self.0.remove(&(at, due));
    }

    /// The next moment that matters.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.0.first().map(|&(at, _)| at)
    }

    /// The next moment at which something may change: not one at which a supervisor only says that it lives.
    #[cfg(test)]
    pub(crate) fn next_change(&self) -> Option<Timestamp> {
        self.0.iter().find(|(_, due)| *due != Due::Alive).map(|&(at, _)| at)
    }

    /// Returns what is due, the oldest first.
    pub(crate) fn due(&self, now: Timestamp) -> impl Iterator<Item = Due> {
        self.0.iter().take_while(move |&&(at, _)| at <= now).map(|&(_, due)| due)
    }

    /// Takes one that is due.
    pub(crate) fn pop(&mut self, now: Timestamp) -> Option<Due> {
        let &(at, due) = self.0.first()?;
        (at <= now).then(|| {
            self.0.pop_first();
            due
        })
    }
}
