//! Handing out slots: the end of every step.

use std::collections::BTreeSet;

use offshoot_model::{BudgetGrant, EventKind};
use offshoot_policy::breaker::Gate;
use offshoot_policy::budget::Draw;

use super::queue::{Next, Place, Turn};
use super::run::{RunIndex, SlotState};
use super::slots::{Lease, Part};
use super::timer::Due;
use super::{Effect, Machine};

/// The reason why no further run starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Halt {
    /// No run is left in line that has a slot, but for runs that were set aside.
    AllTried,
    /// The next piece waits because of the budget that it shares, and what stands behind it was not tried.
    Pool,
    /// No slot is free, or what comes next is held back for another reason.
    Held,
}

impl Machine {
    /// Starts what may start, and claims what more could.
    pub(super) fn schedule(&mut self) {
        self.reconsider_walls();
        self.reconsider_paces();
        self.reconsider_first_answers();
        self.give_back_host_slots();
        self.give_back_account_slots();
        let (halt, short_pools) = loop {
            let (halt, short_pools) = self.hand_out_slots();
            // Runs in the lines of accounts are tried once memory is short for no other run.
            if !self.memory_wait_over(halt == Halt::AllTried) {
                break (halt, short_pools);
            }
        };
        self.tell_of_pools(halt, short_pools);
        self.end_paces();
        self.give_back_probe_turns();
        self.claim_account_slots();
        self.claim_host_slots();
        self.watch_for_silence();
    }

    /// Gives free slots to the next in line, until no slot is free or no run is left. Returns why no further run starts, and the runs whose
    /// next piece waits because of the budget that their pieces share.
    fn hand_out_slots(&mut self) -> (Halt, BTreeSet<RunIndex>) {
        let (mut halt, mut is_tried) = (Halt::Held, false);
        let (mut aside, mut short_pools) = (BTreeSet::new(), BTreeSet::new());
        while self.slots.any_free() {
            self.offer_account_slots();
            if !self.has_host_slot() && self.queue.has_returning(&self.slots) {
                self.waits_for_host_slot();
                break;
            }
            let may_start = !self.paused && !self.held;
            let may_start = may_start && !self.is_known_to_wait_for_memory();
            if may_start && self.asks_for_host_slots() && self.queue.has_new(Part::TREE) {
                // Each admission of a large request would try anew which of its runs could. A run that would end without a slot, at a wall or for
                // its budget, ends when the host has answered.
                self.waits_for_host_slot();
                break;
            }
            let next = match may_start {
                true => self.queue.pop(&self.slots),
                false => self.queue.pop_returning(&self.slots).map(Next::Returning),
            };
            let Some(next) = next else {
                if may_start {
                    (halt, is_tried) = (Halt::AllTried, true);
                }
                break;
            };
            let (run, turn) = match next {
                Next::Returning(run) if self.waits_to_return(run) => continue,
                Next::Returning(run) => {
                    self.give_back_slot(run);
                    continue;
                }
                Next::New(run, turn) => (run, turn),
            };
            is_tried = true;
            if !self.is_in_line(run)
                || self.waits_at_wall(run)
                || self.waits_at_cap(run)
                || self.waits_for_pace(run, turn)
                || self.waits_for_first_answer(run, turn)
            {
                self.account_slots.pass_on(run);
                continue;
            }
            if self.waits_for_memory(run) {
                // Those behind it wait as well, so that a large run is not passed by small ones for ever.
                self.put_back_in_turn(run, turn);
                break;
            }
            let drawn = match self.draw(run) {
                Draw::Nothing => BudgetGrant::default(),
                Draw::Take(amounts) => amounts,
                // Runs behind it of its parent mostly draw from the same pool, and wait as well; those of other parents do not.
                Draw::Wait => {
                    short_pools.extend(self.runs[run].parent);
                    self.set_aside(run, turn, &mut aside);
                    // Pieces that wait for a slot of their account would all be moved from the line of the account to the queue in this step.
                    if self.account_slots.are_counted() {
                        self.is_held_up_by_budget();
                        self.account_slots.pass_on(run);
                        halt = Halt::Pool;
                        break;
                    }
                    continue;
                }
                Draw::Never(shortage) => {
                    self.cannot_pay(run, shortage);
                    continue;
                }
            };
            // Asked last of all: what waits for its account, or for the host, alone could start.
            if self.waits_for_first_grant(run) {
                self.set_aside(run, turn, &mut aside);
                continue;
            }
            if self.waits_for_account_slot(run, turn) {
                continue;
            }
            if !self.has_host_slot() {
                self.put_back_in_turn(run, turn);
                self.waits_for_host_slot();
                break;
            }
            if self.breaker_lets(run) {
                self.take_from_pool(run, drawn);
                self.start(run);
            } else {
                self.account_slots.pass_on(run);
                self.held_back.push(run);
            }
        }
        let mut count = 0;
        for place in aside {
            self.queue.give_turn_back(&self.slots, place);
            count += self.queue.new_of(place.parent);
        }
        if is_tried {
            self.host_slots.could_not_start(count);
        }
        (halt, short_pools)
    }

    /// A run that was taken from its line cannot start now, and neither can those behind it of its parent.
    fn set_aside(&mut self, run: RunIndex, turn: Turn, aside: &mut BTreeSet<Place>) {
        let place = self.runs[run].place();
        self.queue.set_aside(&self.slots, place, run, turn);
        aside.insert(place);
    }

    /// A run that was taken from its line, and cannot start now, gets its place back.
    pub(super) fn put_back_in_turn(&mut self, run: RunIndex, turn: Turn) {
        self.queue.put_back(&self.slots, self.runs[run].place(), run, turn);
    }

    /// A run takes the place at the head of its line, as one that was there already.
    pub(super) fn put_back(&mut self, run: RunIndex) {
        self.queue.push_front(&self.slots, self.runs[run].place(), run);
    }

    /// A run takes its place in line for its first slot.
    pub(super) fn stand_in_line(&mut self, run: RunIndex) {
        self.take_place(run);
        self.queued += 1;
    }

    /// A run that is counted among those in line takes its place there.
    pub(super) fn take_place(&mut self, run: RunIndex) {
        self.queue.push(&self.slots, self.runs[run].place(), run);
    }

    /// Puts the runs that a breaker or a quota held back into their lines again, since it has changed.
    pub(super) fn reconsider(&mut self) {
        for run in std::mem::take(&mut self.held_back).into_iter().rev() {
            self.put_back(run);
        }
    }

    /// Returns true if the breaker of its agent lets a run start. A run that is held back is looked at again when the
    /// cool-down is over or the probe has ended.
    fn breaker_lets(&mut self, run: RunIndex) -> bool {
        let entry = &self.runs[run];
        match self.books.breakers.start(&entry.agent, entry.id, self.now) {
            Gate::Closed | Gate::HalfOpen => true,
            Gate::Open { until } => {
                // Set already, unless it has rung and the clock was set back since.
                self.timers.arm(until, Due::Reconsider);
                false
            }
            Gate::Probing { .. } => false,
        }
    }

    fn start(&mut self, run: RunIndex) {
        let lease = self.take_slot(run);
        self.queued -= 1;
        self.record(run, EventKind::Starting);
        self.hold(run, lease, false);
        self.reserve_memory(run);
        self.goes_first(run);
        let live = self.runs.live(run).expect("a run that was given a slot is over");
        // A supervisor that dies before this is on record leaves a run that stands in line, and is started by the next one.
        let ahead = live.may_repeat().then(|| self.answers_recorded_at(run));
        self.out.push(Effect::Start { run, ahead });
    }

    /// A parent whose wait has succeeded goes on, and hears the answer.
    fn give_back_slot(&mut self, run: RunIndex) {
        let Some(live) = self.runs.live_mut(run) else { return };
        let SlotState::Returning { waits } = &mut live.phase else { return };
        let waits = std::mem::take(waits);
        let lease = self.take_slot(run);
        self.hold_again(run, lease);
        for wait in waits {
            self.resolve(wait);
        }
        // The run may have begun another wait meanwhile.
        if self.is_waiting(run) {
            self.lend(run);
        }
    }

    fn take_slot(&mut self, run: RunIndex) -> Lease {
        let lease = self.slots.take(run, self.runs[run].position);
        lease.expect("the queue chose a run without a free slot")
    }

    /// A run that had lent its slot goes on, whether or not one is free.
    pub(super) fn hold_in_debt(&mut self, run: RunIndex) {
        let lease = self.slots.take_in_debt(run, self.runs[run].position);
        self.hold_again(run, lease);
    }

    /// A run that had lent its slot holds one again.
    fn hold_again(&mut self, run: RunIndex, lease: Lease) {
        self.record(run, EventKind::Returned);
        self.hold(run, lease, true);
    }

    /// Lends the slot of a run that is blocked on its children.
    pub(super) fn lend(&mut self, run: RunIndex) {
        let live = self.runs.live_mut(run).expect("only a live run waits");
        match std::mem::replace(&mut live.phase, SlotState::Lent) {
            SlotState::Holding { lease, .. } => {
                self.take_back(run, lease);
                self.let_clock_rest(run);
            }
            // Lent already, in its silence: self.now it says that it waits.
            SlotState::Lent => self.let_clock_rest(run),
            other => live.phase = other,
        }
    }

    /// Lends the slot of a run that is blocked without saying so. Its clock runs on.
    pub(super) fn lend_in_silence(&mut self, run: RunIndex) {
        let live = self.runs.live_mut(run).expect("a holder is live");
        match std::mem::replace(&mut live.phase, SlotState::Lent) {
            SlotState::Holding { lease, .. } => self.take_back(run, lease),
            other => unreachable!("a holder holds, and this one is {other:?}"),
        }
    }

    fn take_back(&mut self, run: RunIndex, lease: Lease) {
        self.let_go(run, lease);
        let is_probe = self.books.breakers.is_probe(&self.runs[run].agent, self.id(run));
        self.record(run, EventKind::Waiting);
        if is_probe {
            self.reconsider();
        }
    }

    fn hold(&mut self, run: RunIndex, lease: Lease, started: bool) {
        self.hold_account_slot(run);
        let live = self.runs.live_mut(run).expect("only a live run is given a slot");
        live.phase = SlotState::Holding { lease, started };
        live.clock.resume(self.now);
        if let Some(at) = live.clock.timeout_at(live.grant.run_timeout_seconds) {
            self.timers.arm(at, Due::Timeout(run));
        }
        if let Some(at) = live.clock.idle_at(live.grant.idle_timeout_seconds) {
            live.idle_armed = Some(at);
            self.timers.arm(at, Due::Idle(run));
        }
    }

    /// Stops counting a run's time, and takes back the timers that counted it.
    pub(super) fn let_clock_rest(&mut self, run: RunIndex) {
        let Some(live) = self.runs.live_mut(run) else { return };
        if let Some(at) = live.clock.timeout_at(live.grant.run_timeout_seconds) {
            self.timers.disarm(at, Due::Timeout(run));
        }
        if let Some(at) = live.idle_armed.take() {
            self.timers.disarm(at, Due::Idle(run));
        }
        live.clock.pause(self.now);
    }
}
