//! Applying an event to the machine: one function, for the step that records the event and for reading it back.
//!
//! A live step decides, and records what it has decided. What later steps have to know of that is changed here, so that a machine
//! that was read back knows the same. Slots, queues, timers and waits exist only while a supervisor lives, and are changed by the
//! live step itself. So is the clock of a run that lends its slot: it rests in a wait and runs on in a silence, and both record
//! `waiting`. Two things are left to the caller of this: [`Machine::admit`], without which there is no run to which an
//! event could belong, and [`Machine::reopened`], which wants to know when the last supervisor was gone.

use std::time::Duration;

use offshoot_model::{BudgetGrant, EventKind, MicroUsd, Timestamp};
use offshoot_policy::budget::Notice;

use super::Machine;
use super::run::{Live, Run, RunIndex};

/// The consequences of an event for the step that records it. A reader of the record finds them among the next events.
#[derive(Debug, Default)]
pub(super) struct Applied {
    /// Budgets that have come near their limit, or have reached it.
    pub(super) notices: Vec<Notice>,
    /// The data of the run that the event has ended.
    pub(super) closed: Option<Closed>,
}

/// The data that is left of a run that is over.
#[derive(Debug)]
pub(super) struct Closed {
    pub(super) live: Box<Live>,
    /// True if the result is held for the parent.
    pub(super) is_held: bool,
}

impl Machine {
    /// Applies an event.
    pub(super) fn apply(&mut self, at: Timestamp, run: RunIndex, kind: &EventKind) -> Applied {
        let mut applied = Applied::default();
        self.acknowledge(run, kind);
        let id = self.id(run);
        let live = self.runs[run.get()].live_mut();
        match kind {
            EventKind::Starting => {
                if let Some(live) = live {
                    live.again_at = None;
                    // A further attempt does not make the run younger.
                    live.started_at.get_or_insert(at);
                    live.clock.resume(at);
                }
            }
            EventKind::Returned => {
                if let Some(live) = live {
                    live.clock.resume(at);
                }
            }
            EventKind::Resumed { attempt, continues, after, wait_ms } => {
                if let Some(live) = live {
                    live.clock.pause(at);
                    live.again_at = wait_ms.map(|wait| at.plus(Duration::from_millis(wait)));
                }
                self.another_attempt(run, *attempt, *continues, after.is_some());
            }
            EventKind::Used { usage, cost } => {
                applied.notices = self.books.ledger.charge(id, usage, cost);
            }
            EventKind::BudgetRaised { tokens, micro_usd } => {
                let usd = MicroUsd::from_micros(*micro_usd);
                let more = BudgetGrant { tokens: Some(*tokens), usd: Some(usd) };
                self.books.ledger.raise(id, more);
            }
            EventKind::BusyWaiting { cpu_ms, wait_ms: _ } => self.has_worked(run, *cpu_ms),
            EventKind::Stopping { reason } => {
                if let Some(live) = live {
                    live.stopping = Some(reason.clone());
                }
            }
            EventKind::Ended(ending) => {
                if let Some((live, notices)) = self.close_run(at, run, ending) {
                    let is_held = live.announces && self.remember_result(run, &live.key);
                    applied = Applied { notices, closed: Some(Closed { live, is_held }) };
                }
            }
            EventKind::Delivered { .. } => self.handed_over(run),
            EventKind::Undelivered { delivery } => self.was_undelivered(run, delivery),
            EventKind::Reported { .. } => {
                if let Some(live) = live {
                    live.reports.count(at);
                }
            }
            EventKind::ToolUsed(_) => {
                if let Some(live) = live {
                    live.tool_uses.count(at);
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
            }
            EventKind::Removal { error } => self.runs[run.get()].not_removed = error.is_some(),
            EventKind::Refused { times: None, .. } => self.refusal_recorded(run),
            EventKind::Admitted(_)
            | EventKind::Reopened
            | EventKind::Waiting
            | EventKind::Refused { times: Some(_), .. }
            | EventKind::Started { .. }
            | EventKind::Progress { .. }
            | EventKind::BudgetNotice
            | EventKind::Overrun { .. }
            | EventKind::StallLent
            | EventKind::Kept { .. }
            | EventKind::Merged(_)
            | EventKind::StrayEnded { .. }
            | EventKind::KeeperFailed { .. } => {}
        }
        applied
    }

    /// Applies that another supervisor has taken the tree, which the last one held until `until`: the time between the two counts
    /// for nothing.
    pub(super) fn reopened(&mut self, until: Timestamp, at: Timestamp) {
        self.deadlines.age.go_on(until, at);
        self.books.breakers.interrupt();
        for live in self.runs.iter_mut().filter_map(Run::live_mut) {
            live.clock.pause(until);
        }
    }
}
