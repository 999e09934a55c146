//! The slots of one account, as far as one tree has them, and the runs of the tree that wait for one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use offshoot_model::Timestamp;

use super::queue::{Next, Queue, Turn};
use super::run::RunIndex;
use super::share::Share;
use super::slots::Slots;

/// The longest time for which a tree that is full keeps a slot for which another tree waits.
const PATIENCE: Duration = Duration::from_secs(60);

/// The times after which that is not halved any more.
const MOST_IN_VAIN: u32 = 3;

/// The slots of one account.
#[derive(Debug, Default)]
pub(super) struct Pool {
    pub(super) share: Share,
    /// The runs that hold one.
    pub(super) holders: BTreeSet<RunIndex>,
    /// The order in which runs that wait for one get it: that of the queue of the tree.
    pub(super) line: Queue,
    /// Parents in the line, whose waits have succeeded.
    pub(super) returning: BTreeSet<RunIndex>,
    /// Runs in the line that have not started, with their turns in the queue of the tree.
    pub(super) new: BTreeMap<RunIndex, Turn>,
    /// Parents that were put back into the queue, to go on with one that no run holds.
    pub(super) going_on: BTreeSet<RunIndex>,
    /// The run in the queue that starts with one that no run holds, unless another one of the tree comes before it.
    pub(super) first: Option<RunIndex>,
    /// Runs in the queue that were first, and could not start: they are so again before those in the line.
    pub(super) were_first: BTreeSet<RunIndex>,
    /// The number of slots that no run held at the end of the last step.
    pub(super) kept: u32,
    /// The time since which the tree keeps one for which another tree waits.
    pub(super) kept_since: Option<Timestamp>,
    /// True if it is kept because the next run of the tree waits for the host.
    pub(super) waits_for_host: bool,
    /// True if the tree has started another run meanwhile.
    pub(super) is_passed: bool,
    /// The number of times in a row that a slot was kept in vain.
    pub(super) in_vain: u32,
    /// The reason why its slots cannot be counted.
    pub(super) fault: Option<String>,
}

impl Pool {
    pub(super) fn live(&self) -> u32 {
        u32::try_from(self.holders.len()).expect("there are fewer runs than 2^32")
    }

    /// The number of slots that no run holds.
    pub(super) fn unused(&self) -> usize {
        self.share.unused(self.live()) as usize
    }

    /// Returns true if runs wait in its line.
    pub(super) fn has_line(&self) -> bool {
        !self.returning.is_empty() || !self.new.is_empty()
    }

    /// A run stands in no line any more, and no slot is meant for it.
    pub(super) fn leave(&mut self, run: RunIndex) {
        self.going_on.remove(&run);
        self.first.take_if(|first| *first == run);
        self.were_first.remove(&run);
        self.returning.remove(&run);
        self.new.remove(&run);
    }

    /// Gives back what is due to other trees and no run holds. Of that one is kept for a while where no run of the tree holds any, but no more than
    /// `most`.
    pub(super) fn give_back_due(&mut self, most: u32, now: Timestamp) {
        if self.share.is_due_to_others() {
            let live = self.live();
            let is_over = self.kept_until().is_some_and(|until| until <= now);
            if is_over {
                self.in_vain = (self.in_vain + 1).min(MOST_IN_VAIN);
                self.kept_since = None;
            }
            let keeps = if live > 0 || is_over { 0 } else { most.min(1) };
            self.share.give_back_due(live, keeps);
        }
        let unused = self.unused();
        self.is_first_no_more(|_| unused == 0);
    }

    /// Returns true if each slot that was given is held by a run, and no run of the queue or of the line wants another one: nothing is to be
    /// claimed or told.
    pub(super) fn is_settled(&self) -> bool {
        let is_kept = self.kept > 0 || self.kept_since.is_some() || self.is_passed;
        let is_meant = self.first.is_some() || !self.were_first.is_empty();
        let is_wanted = self.has_line() || is_meant || !self.going_on.is_empty();
        !is_kept && !is_wanted && self.share.is_settled(self.live())
    }

    /// Returns the moment until which the tree keeps one for which another tree waits; none where it keeps none, or waits for the host.
    pub(super) fn kept_until(&self) -> Option<Timestamp> {
        let is_bounded = self.is_passed || !self.waits_for_host;
        let since = self.kept_since.filter(|_| is_bounded)?;
        Some(since.plus(PATIENCE / 2_u32.pow(self.in_vain)))
    }

    /// The first run gets nothing, where it cannot start.
    pub(super) fn is_first_no_more(&mut self, cannot_start: impl Fn(RunIndex) -> bool) {
        self.were_first.extend(self.first.take_if(|first| cannot_start(*first)));
    }

    /// Takes the next parent from the line that has room in the tree.
    pub(super) fn next_parent(&mut self, slots: &Slots) -> Option<RunIndex> {
        // Some have left the line meanwhile.
        std::iter::from_fn(|| self.line.pop_returning(slots)).find(|run| self.returning.remove(run))
    }

    /// Takes the next run that has not started from the line and that has room in the tree, with its turn in the queue of the tree.
    pub(super) fn next_new(&mut self, slots: &Slots) -> Option<(RunIndex, Turn)> {
        loop {
            match self.line.pop(slots)? {
                Next::New(run, _) => {
                    if let Some(turn) = self.new.remove(&run) {
                        return Some((run, turn));
                    }
                }
                Next::Returning(run) if self.returning.contains(&run) => {
                    unreachable!("parents with room were taken before")
                }
                Next::Returning(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_slots::HostGrant;

    #[test]
    fn a_run_is_first_as_long_as_there_is_a_slot_for_it() {
        let (run, now) = (RunIndex::new(1), Timestamp::EPOCH);
        let mut pool = Pool { first: Some(run), ..Pool::default() };
        pool.share.take(HostGrant { more: 1, due: 1, claim: 0 });
        pool.give_back_due(0, now);
        assert_eq!((pool.unused(), pool.first), (1, Some(run)));
        pool.share.take(HostGrant { more: 0, due: 0, claim: 0 });
        pool.give_back_due(0, now);
        assert_eq!((pool.unused(), pool.first), (0, None));
        assert!(pool.were_first.contains(&run), "before others once there is one again");
    }
}
