//! Applying an event to the machine: one function, for the step that records the event and for reading it back.
//!
//! A live step decides, and records what it has decided. What later steps have to know of that is changed here, so that a machine
//! that was read back knows the same. Slots, queues, timers and waits exist only while a supervisor lives, and are changed by the
//! live step itself. So is the clock of a run that lends its slot: it rests in a wait and runs on in a silence, and both record
//! `waiting`. Three things are left to the caller of this: [`Machine::admit`], without which there is no run to which an
//! event could belong, [`Machine::reopened`], which wants to know when the last supervisor was gone, and
//! [`Machine::revive`], which wants what the root was when it ended.

use std::time::Duration;

use offshoot_model::{
    BudgetGrant, CostKnowledge, EventKind, Reason, RefusalCode, RequestEnding, Timestamp,
};
use offshoot_policy::budget::Notice;

use super::Machine;
use super::run::{Live, Run, RunClock, RunIndex};

/// The consequences of an event for the step that records it. A reader of the record finds them among the next events.
#[derive(Debug, Default)]
pub(super) struct Applied {
    /// Budgets that have come near their limit, or have reached it.
    pub(super) notices: Vec<Notice>,
    /// The event that says that a breaker has opened or closed.
    pub(super) breaker: Option<EventKind>,
    /// The data of the run that the event has ended.
    pub(super) closed: Option<Closed>,
}

/// The data that is left of a run that is over.
#[derive(Debug)]
pub(super) struct Closed {
    pub(super) live: Box<Live>,
    /// True if the result is held for the parent.
    pub(super) is_held: bool,
    /// The runs that need it.
    pub(super) needed_by: Vec<RunIndex>,
}

impl Machine {
    /// Applies an event.
    pub(super) fn apply(&mut self, run: RunIndex, kind: &EventKind) -> Applied {
        let mut applied = Applied::default();
        self.acknowledge(run, kind);
        let id = self.id(run);
        let live = self.runs.live_mut(run);
        match kind {
            EventKind::Starting => {
                if let Some(live) = live {
                    if let Some(account) = &live.account {
                        self.books.quotas.started(account, id);
                    }
                    live.again_at = None;
                    if let Some(fallbacks) = &mut live.fallbacks {
                        fallbacks.is_new = false;
                    }
                    // A further attempt does not make the run younger.
                    live.started_at.get_or_insert(self.now);
                    live.clock.resume(self.now);
                }
            }
            EventKind::Returned => {
                if let Some(live) = live {
                    live.clock.resume(self.now);
                }
                self.books.memory.rests(id, false);
            }
            EventKind::Resumed { attempt, continues, after, wait_ms, changes: _ } => {
                if let Some(live) = live {
                    self.books.memory.ended(id);
                    live.clock.pause(self.now);
                    // Its time was over: the next attempt has all of it.
                    if live.stopping.take().is_some() {
                        live.clock = RunClock::default();
                    }
                    live.again_at = wait_ms.map(|wait| self.now.plus(Duration::from_millis(wait)));
                }
                self.books.ledger.return_to_pool(id);
                self.observation_closed(run, None);
                if matches!(after.as_deref(), Some(Reason::Budget { .. })) {
                    self.at_cap.insert(run);
                }
                let is_no_fault = |it: &Reason| matches!(it, Reason::Quota { .. } | Reason::Budget { .. });
                let is_fault = after.as_deref().is_some_and(|it| !is_no_fault(it));
                let live = self.runs.live_mut(run);
                let fallbacks = live.and_then(|live| live.fallbacks.as_mut());
                let is_new = fallbacks.is_some_and(|it| std::mem::take(&mut it.is_new));
                let is_fault = is_fault && !is_new;
                self.another_attempt(run, *attempt, *continues, is_fault);
                self.probe_is_over(run);
            }
            EventKind::FellBack { number, .. } => self.fell_back(run, *number),
            EventKind::Used { usage, cost } => {
                applied.notices = self.books.ledger.charge(id, usage, cost);
            }
            EventKind::RequestReserved { request, model, tokens, micro_usd } => {
                let held = BudgetGrant::new(Some(*tokens), *micro_usd);
                if let Some(live) = live {
                    live.requests.get_or_insert_default().reserved(*request, model, held);
                    self.books.ledger.hold(id, held);
                }
            }
            EventKind::RequestRefused { code, .. } => {
                if let Some(live) = live
                    && **code == *RefusalCode::BudgetExhausted.as_ref()
                {
                    live.requests.get_or_insert_default().has_asked = true;
                }
            }
            EventKind::RequestHeld { for_others, .. } => {
                if let Some(live) = live {
                    live.requests.get_or_insert_default().has_asked = true;
                }
                if *for_others {
                    self.books.ledger.return_unused(id);
                }
            }
            EventKind::RequestSettled { request, ending, usage, cost, .. } => {
                if let Some(live) = live {
                    // The meter knows the bound of each of its own requests.
                    let is_guess =
                        *ending == RequestEnding::Lost && live.cost != CostKnowledge::Metered;
                    let requests = live.requests.get_or_insert_default();
                    let held = requests.settled(*request, *usage, *cost);
                    self.books.ledger.release(id, held);
                    applied.notices = self.books.ledger.charge_more(id, usage, cost, is_guess);
                    self.books.ledger.return_unused(id);
                }
            }
            EventKind::BudgetDrawn { tokens, micro_usd } => {
                self.books.ledger.take(id, BudgetGrant::new(Some(*tokens), Some(*micro_usd)));
            }
            EventKind::BudgetRaised { tokens, micro_usd } => {
                self.books.ledger.raise(id, BudgetGrant::new(Some(*tokens), Some(*micro_usd)));
                self.at_cap.clear();
            }
            EventKind::BusyWaiting { cpu_ms, wait_ms: _ } => self.has_worked(run, *cpu_ms),
            EventKind::Stopping { reason } => {
                if let Some(live) = live {
                    live.stopping = Some(reason.clone());
                }
            }
            EventKind::Parked { account, window, until, left: _ } => {
                self.books.quotas.parked(account, window.clone(), *until, self.now);
                self.rest_at_walls();
            }
            EventKind::QuotaSeen { account, window, left, until } => {
                self.books.quotas.saw(account, window, *left, *until);
            }
            EventKind::Paced { account, most } => self.paced(account, *most),
            EventKind::Unparked { account } => {
                self.books.quotas.unparked(account);
                self.walls_changed = true;
                self.rest_at_walls();
            }
            EventKind::Ended(ending) => {
                self.books.memory.ended(id);
                self.probe_is_over(run);
                applied = self.close_run(run, ending).unwrap_or_default();
            }
            EventKind::Delivered { .. } => self.handed_over(run),
            EventKind::Undelivered { delivery } => self.was_undelivered(run, delivery),
            EventKind::Reported { .. } => {
                if let Some(live) = live {
                    live.reports.count(self.now);
                }
            }
            EventKind::ToolUsed(_) | EventKind::ModelChanged { .. } => {
                if let Some(live) = live {
                    live.tool_uses.count(self.now);
                }
            }
            EventKind::BacksOff { until, .. } => {
                if let Some(live) = live {
                    live.clock.waits_until(*until, self.now);
                    live.backoff.get_or_insert_default().begin(self.now);
                }
            }
            EventKind::Answered => {
                if let Some(live) = live {
                    live.clock.waits_no_more(self.now);
                    if let Some(backoff) = &mut live.backoff {
                        backoff.is_open = false;
                    }
                }
            }
            EventKind::Letter { .. } => {
                if let Some(live) = live {
                    live.mail.get_or_insert_default().letters += 1;
                }
            }
            EventKind::TurnEnded { letters_taken, .. } => {
                if let Some(mail) = live.and_then(|live| live.mail.as_mut()) {
                    mail.turn_recorded(*letters_taken);
                }
                self.observation_closed(run, None);
            }
            EventKind::ObservationOpened { number, .. } => self.observation_opened(run, *number),
            EventKind::ObservationClosed { number, .. } => {
                self.observation_closed(run, Some(*number));
            }
            EventKind::Removal { error } => self.runs[run].not_removed = error.is_some(),
            EventKind::Refused { times: None, .. } => self.refusal_recorded(run),
            EventKind::MemoryShort(_) => self.memory_wait.is_short = true,
            EventKind::MemoryEnough => self.memory_wait.is_short = false,
            EventKind::PoolShort { run } => self.short_pools.extend(self.find(*run)),
            EventKind::PoolEnough { run } => {
                if let Some(run) = self.find(*run) {
                    self.short_pools.remove(&run);
                }
            }
            EventKind::HostFull => self.host_slots.is_full = true,
            EventKind::HostFree => self.host_slots.is_full = false,
            EventKind::AccountFull { account } => self.account_slots.recorded(account, true),
            EventKind::AccountFree { account } => self.account_slots.recorded(account, false),
            EventKind::Paused => self.paused = true,
            // A new supervisor goes on.
            EventKind::Unpaused => self.paused = false,
            EventKind::Reopened => {
                self.paused = false;
                self.short_pools.clear();
            }
            EventKind::Waiting => {
                let entry = &self.runs[run];
                self.books.breakers.rests(&entry.agent, entry.id);
                self.books.memory.rests(id, true);
            }
            EventKind::Admitted(_)
            | EventKind::RootReopened(_)
            | EventKind::Refused { times: Some(_), .. }
            | EventKind::Started { .. }
            | EventKind::Progress { .. }
            | EventKind::BudgetNotice
            | EventKind::Overrun { .. }
            | EventKind::StallLent
            | EventKind::Alive
            // What services keep is not known to another supervisor.
            | EventKind::Priming { .. }
            | EventKind::Primed { .. }
            | EventKind::HostBound { .. }
            | EventKind::AccountBound { .. }
            // The ends of runs tell.
            | EventKind::BreakerOpened { .. }
            | EventKind::BreakerClosed { .. }
            | EventKind::Kept { .. }
            | EventKind::Merged(_)
            | EventKind::StrayEnded { .. }
            | EventKind::Repeats { .. }
            | EventKind::KeeperFailed { .. } => {}
        }
        applied
    }

    /// Applies that another supervisor has taken the tree, which the last one held until `until`: the time between the two counts
    /// for nothing.
    pub(super) fn reopened(&mut self, until: Timestamp) {
        self.deadlines.age.go_on(until, self.now);
        self.books.breakers.interrupt();
        self.books.quotas.interrupt(self.now);
        self.books.paces.interrupt();
        self.books.prefixes.interrupt();
        for live in self.runs.iter_mut().filter_map(Run::live_mut) {
            live.clock.pause(until);
        }
    }
}
