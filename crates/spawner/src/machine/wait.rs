//! Waits: who is blocked on which runs, and what satisfies it.
//!
//! A run may have several waits open at once. It counts as blocked for as long as one of them is open, and lends its slot
//! again after it was told of another: it is unknown if the run is blocked on all of them or on any, and a slot kept by
//! one that is blocked on a child in line for that very slot would never come free.

use std::collections::HashMap;
use std::time::Duration;

use offshoot_model::{RunId, Timestamp};
use offshoot_runtime::WaitMode;
use thin_vec::thin_vec;

use super::run::{RunIndex, SlotState};
use super::timer::Due;
use super::{Effect, Machine};

/// The id of one wait of one run, minted by its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct WaitId(pub(crate) u64);

/// A wait as it is asked for.
#[derive(Debug)]
pub(crate) struct NewWait {
    pub(crate) id: WaitId,
    pub(crate) caller: RunIndex,
    /// Empty for all children of the caller.
    pub(crate) runs: Vec<RunId>,
    pub(crate) mode: WaitMode,
    /// The end of its patience.
    pub(crate) until: Option<Timestamp>,
}

/// An open wait.
#[derive(Debug)]
pub(super) struct Wait {
    caller: RunIndex,
    targets: Vec<RunIndex>,
    mode: WaitMode,
    /// The number of targets that are not over.
    pending: usize,
    until: Option<Timestamp>,
}

/// All waits of a tree of which something is still to be heard.
#[derive(Debug, Default)]
pub(super) struct Waits {
    open: HashMap<WaitId, Wait>,
    /// Waits whose answer brings a result, until it is known whether their caller took it.
    answered: HashMap<WaitId, Answered>,
}

/// An answer on its way.
#[derive(Debug)]
struct Answered {
    caller: RunIndex,
    /// The end of the time in which its caller must take it.
    until: Timestamp,
}

/// The outcome of a wait that is over.
struct Outcome {
    caller: RunIndex,
    over: Vec<RunIndex>,
    pending: Vec<RunId>,
}

impl Machine {
    /// A run waits for runs below it. Anything else it names is answered as if it were not there, and so is all that is
    /// named by what is left of an attempt that is over.
    pub(super) fn wait(&mut self, wait: NewWait) {
        let NewWait { id, caller, runs, mode, until } = wait;
        self.shows_success(caller);
        let targets: Vec<RunIndex> = if self.runs.running(caller).is_none() {
            Vec::new()
        } else if runs.is_empty() {
            self.unnamed(caller)
        } else {
            runs.iter()
                .filter_map(|run| self.find(*run))
                .filter(|&run| self.runs.above(run).any(|above| above == caller))
                .collect()
        };
        self.open_wait(id, Wait { caller, targets, mode, pending: 0, until });
    }

    /// All children of a run, in the order in which its present attempt, or one that it continues, asked for them.
    pub(crate) fn children_runs(&self, run: RunIndex) -> Vec<RunId> {
        self.own_children(run).iter().map(|child| self.id(*child)).collect()
    }

    /// The runs that a wait is for which names none.
    pub(crate) fn unnamed_runs(&self, caller: RunIndex) -> Vec<RunId> {
        self.unnamed(caller).into_iter().map(|run| self.id(run)).collect()
    }

    /// Returns the runs of a wait that names none: the children of which its caller has not heard yet. Where it has heard
    /// of all, it is told of all again. A root that runs nothing itself is told with each wait of all that it has.
    fn unnamed(&self, caller: RunIndex) -> Vec<RunIndex> {
        let live = self.runs.live(caller);
        if live.is_some_and(|live| live.phase != SlotState::Holder) {
            let unheard = self.children_to_hear_of(caller);
            if !unheard.is_empty() {
                return unheard;
            }
        }
        self.own_children(caller).to_vec()
    }

    /// Opens a wait, or answers it at once. Its caller lends its slot meanwhile.
    pub(super) fn open_wait(&mut self, id: WaitId, mut wait: Wait) {
        let Wait { caller, until, .. } = wait;
        for target in &wait.targets {
            if let Some(live) = self.runs.live_mut(*target) {
                live.watchers.push(id);
                wait.pending += 1;
            }
        }
        let satisfied = wait.is_satisfied();
        let before = self.waits.open.insert(id, wait);
        assert!(before.is_none(), "wait ids are minted once");
        if satisfied {
            self.wake(caller);
        }
        let Some(live) = self.runs.live_mut(caller) else {
            return self.resolve(id);
        };
        live.waits.push(id);
        if satisfied {
            return self.resolve(id);
        }
        if let Some(until) = until {
            self.timers.arm(until, Due::Wait(id));
        }
        self.lend(caller);
    }

    /// One of the runs that a wait is for is over.
    pub(super) fn target_ended(&mut self, id: WaitId) {
        if self.waits.target_ended(id) {
            self.satisfy(id);
        }
    }

    /// A wait has what it waited for. Its caller gets the answer once it has a slot again.
    pub(super) fn satisfy(&mut self, id: WaitId) {
        let Some(caller) = self.waits.caller(id) else { return };
        let position = self.runs[caller].position;
        let Some(live) = self.runs.live_mut(caller) else { return self.resolve(id) };
        match &mut live.phase {
            phase @ SlotState::Lent => {
                *phase = SlotState::Returning { waits: thin_vec![id] };
                self.queue.push_returning(&self.slots, position, caller);
            }
            SlotState::Returning { waits } if waits.contains(&id) => {}
            SlotState::Returning { waits } => waits.push(id),
            // The answer of the wait needs no slot.
            SlotState::Holding { .. } | SlotState::Holder | SlotState::Queued => self.resolve(id),
        }
    }

    /// The patience of a wait is over: its caller goes on with what there is.
    pub(super) fn wait_timed_out(&mut self, id: WaitId) {
        self.go_on_without(id);
        self.resolve(id);
    }

    /// The caller of this wait has gone, and is told nothing; so nothing is delivered.
    pub(super) fn wait_dropped(&mut self, id: WaitId) {
        if let Some(run) = self.delivery_over(id) {
            return self.not_taken(run, id);
        }
        self.go_on_without(id);
        if let Some(Outcome { caller, .. }) = self.close_wait(id) {
            self.turn_is_over(caller, id);
        }
    }

    /// The answer of a wait is on its way with results. Its caller has a time to take it.
    pub(super) fn delivery_begins(&mut self, id: WaitId, caller: RunIndex) {
        let Some(live) = self.runs.live(caller) else { return };
        let time = Duration::from_millis(live.terms.announce_timeout_ms());
        let until = self.now.plus(time);
        self.waits.answered.insert(id, Answered { caller, until });
        self.timers.arm(until, Due::Delivery(id));
    }

    /// Forgets the answer of a wait of which it is known what became of it. Returns the run that waited, where results were on their way.
    pub(super) fn delivery_over(&mut self, id: WaitId) -> Option<RunIndex> {
        let Answered { caller, until } = self.waits.answered.remove(&id)?;
        self.timers.disarm(until, Due::Delivery(id));
        Some(caller)
    }

    /// The caller of a wait has not taken the answer in time, as if it had gone.
    pub(super) fn delivery_timed_out(&mut self, id: WaitId) {
        if let Some(caller) = self.delivery_over(id) {
            self.not_taken(caller, id);
        }
    }

    /// A wait ends without success: its caller goes on, in debt where no slot is free.
    fn go_on_without(&mut self, id: WaitId) {
        let Some(caller) = self.waits.caller(id) else { return };
        let goes_on = self.runs.live_mut(caller).is_some_and(|live| {
            let is_last = live.waits.len() == 1;
            match &mut live.phase {
                SlotState::Lent => is_last,
                SlotState::Returning { waits } => {
                    waits.retain(|&answered| answered != id);
                    let was_alone = waits.is_empty();
                    if was_alone && !is_last {
                        self.account_slots.leave(caller);
                        live.phase = SlotState::Lent;
                    }
                    was_alone && is_last
                }
                SlotState::Queued | SlotState::Holding { .. } | SlotState::Holder => false,
            }
        });
        if goes_on {
            self.hold_in_debt(caller);
        }
    }

    /// Answers a wait with what has come of it.
    pub(super) fn resolve(&mut self, id: WaitId) {
        let Some(Outcome { caller, over, pending }) = self.close_wait(id) else { return };
        let repeated = self.deliver(id, caller, &over);
        let ended = over.into_iter().map(|run| self.id(run)).collect();
        self.out.push(Effect::Resolve { wait: id, ended, repeated, pending });
    }

    fn close_wait(&mut self, id: WaitId) -> Option<Outcome> {
        let Wait { caller, targets, until, .. } = self.waits.open.remove(&id)?;
        if let Some(until) = until {
            self.timers.disarm(until, Due::Wait(id));
        }
        if let Some(live) = self.runs.live_mut(caller) {
            live.waits.retain(|&open| open != id);
        }
        let (mut over, mut pending) = (Vec::new(), Vec::new());
        for target in targets {
            let run = &mut self.runs[target];
            match run.live_mut() {
                Some(live) => {
                    live.watchers.retain(|&watcher| watcher != id);
                    pending.push(run.id);
                }
                None => over.push(target),
            }
        }
        Some(Outcome { caller, over, pending })
    }

    /// The children that this attempt of a run has asked for.
    pub(super) fn own_children(&self, run: RunIndex) -> &[RunIndex] {
        let entry = &self.runs[run];
        let earlier = entry.live().map_or(0, |live| live.earlier_children);
        &entry.children[earlier as usize..]
    }

    /// Returns true if a run is blocked on others.
    pub(super) fn is_waiting(&self, run: RunIndex) -> bool {
        self.runs.live(run).is_some_and(|live| !live.waits.is_empty())
    }
}

impl Wait {
    /// A wait of this run for all of these, without an end to its patience.
    pub(super) fn for_all(caller: RunIndex, targets: Vec<RunIndex>) -> Self {
        Self { caller, targets, mode: WaitMode::All, pending: 0, until: None }
    }

    /// Returns true if there is nothing left to wait for.
    fn is_satisfied(&self) -> bool {
        match self.mode {
            WaitMode::All => self.pending == 0,
            WaitMode::Any => self.pending < self.targets.len() || self.targets.is_empty(),
        }
    }
}

impl Waits {
    fn caller(&self, id: WaitId) -> Option<RunIndex> {
        self.open.get(&id).map(|wait| wait.caller)
    }

    /// One of its targets is over; answers whether that satisfied it just now.
    fn target_ended(&mut self, id: WaitId) -> bool {
        let Some(wait) = self.open.get_mut(&id) else { return false };
        let before = wait.is_satisfied();
        wait.pending -= 1;
        !before && wait.is_satisfied()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.answered.is_empty()
    }
}
