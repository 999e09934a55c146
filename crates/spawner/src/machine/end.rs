//! The end of a run: the slot comes back, the record is written, and those that wait are told.

use std::time::Duration;

use offshoot_config::OnParentEnd;
use offshoot_model::{
    AgentId, CancelledBy, Cost, DeliveryId, Ending, Envelope, EventKind, Reason, RunId, Timestamp,
    Usage,
};
use offshoot_policy::Terms;
use offshoot_policy::breaker::{BreakerChange, BreakerLimits};
use offshoot_policy::budget::Notice;

use super::apply::Closed;
use super::mail::Mail;
use super::run::{Body, Live, RunIndex, SlotState};
use super::timer::Due;
use super::{Effect, Machine, Reach};

/// A run that came back from its runtime.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The ending, without what the run used.
    pub(crate) ending: Ending,
    /// The usage that its runtime reported with its end.
    pub(crate) usage: Option<Usage>,
    /// The cost that its runtime reported with its end.
    pub(crate) cost: Option<Cost>,
    /// The time after which the service that refused it wants to be asked again.
    pub(crate) retry_after: Option<Duration>,
}

/// An end of which everything is known.
impl From<Ending> for Outcome {
    fn from(ending: Ending) -> Self {
        let (usage, cost) = (Some(ending.usage), Some(ending.cost));
        Self { ending, usage, cost, retry_after: None }
    }
}

impl Machine {
    /// A runtime says that a run is over. What it does not say of its use is what it has told before.
    pub(super) fn came_back(
        &mut self,
        now: Timestamp,
        run: RunIndex,
        outcome: Outcome,
        out: &mut Vec<Effect>,
    ) {
        let Outcome { mut ending, usage, cost, retry_after } = outcome;
        if let Some(live) = self.runs[run.get()].live() {
            // Zeros after a report are no report: nothing spent is ever unspent.
            let told = live.told.is_some();
            let usage = usage.filter(|usage| !told || *usage != Usage::default());
            let cost = cost.filter(|cost| !told || !cost.is_none());
            let (so_far, cost_so_far) = live.so_far(&ending.reason);
            ending.usage = usage.map_or(so_far, Usage::believed);
            ending.cost = cost.unwrap_or(cost_so_far);
        }
        if !self.retry(now, run, &ending, retry_after, out) {
            self.finished(now, run, ending, out);
        }
    }

    /// A run is over, and everything it started is gone.
    pub(super) fn finished(
        &mut self,
        now: Timestamp,
        run: RunIndex,
        mut ending: Ending,
        out: &mut Vec<Effect>,
    ) {
        self.record_refusals(now, run, out);
        self.let_clock_rest(now, run);
        let live = self.runs[run.get()].live();
        let live =
            live.expect("a runtime ends a run once, and what never started is not given to one");
        (ending.usage, ending.cost) = live.in_all(ending.usage, ending.cost);
        // A run that was asked to stop ended for that reason, unless it had done its work by then.
        if let Some(reason) = &live.stopping
            && (live.cut_off || !ending.status().is_success())
        {
            ending.reason = (**reason).clone();
        }
        ending.execution_time_ms =
            live.started_at.map_or(0, |started_at| now.since(started_at).as_millis() as u64);
        let (key, agent) = (live.key.clone(), live.agent.clone());
        let (id, depth) = (self.id(run), self.runs[run.get()].depth());
        let envelope = Envelope::of(&ending, key.clone(), id, agent, depth);
        self.record_overrun(now, run, &ending, out);
        let applied = self.record(now, run, EventKind::Ended(Box::new(ending)), out);
        let Closed { live, is_held } = applied.closed.expect("a run that was over has ended again");
        let Live { terms, waits, watchers, mail, announces, .. } = *live;
        out.push(Effect::Ended { run, envelope: Box::new(envelope) });
        self.apply_notices(now, &applied.notices, out);

        for wait in waits {
            self.resolve(now, wait, out);
        }
        self.return_mail(now, mail.as_deref().map(Mail::held), out);
        // Before the waits that the end satisfies, for these deliver the result.
        match announces {
            true if is_held => {}
            true => self.undelivered(now, run, DeliveryId::new(&key, id), out),
            // The follower of the run is handed the result with the end.
            false => self.clean_up(run, out),
        }
        for wait in watchers {
            self.target_ended(now, wait, out);
        }
        // Also where no child lives: a child that was let finish may have left children of its own.
        if terms.on_parent_end() == OnParentEnd::Cascade {
            self.cancel(now, run, Reach::Below, CancelledBy::ParentEnded, out);
        }
    }

    /// Takes the data of a run that ends, and gives back what the run held; none where the run is over already.
    pub(super) fn close_run(
        &mut self,
        at: Timestamp,
        run: RunIndex,
        ending: &Ending,
    ) -> Option<(Box<Live>, Vec<Notice>)> {
        let entry = &mut self.runs[run.get()];
        entry.live()?;
        let Body::Live(mut live) = std::mem::replace(&mut entry.body, Body::Ended(ending.status()))
        else {
            unreachable!("the run was alive");
        };
        let (id, parent) = (entry.id, entry.parent);
        self.live -= 1;
        match std::mem::replace(&mut live.phase, SlotState::Lent) {
            SlotState::Holding { lease, .. } => self.slots.give_back(lease),
            SlotState::Queued => self.queued -= 1,
            SlotState::Lent | SlotState::Returning { .. } | SlotState::Holder => {}
        }
        if let Some(parent) = parent.and_then(|parent| self.runs[parent.get()].live_mut()) {
            parent.live_children.remove(&run);
        }
        if live.started_at.is_some() {
            self.probed(at, id, &live.agent, &live.under, &ending.reason);
        }
        let notices = self.books.ledger.settle(id, ending);
        Some((live, notices))
    }

    /// A run that had been started tells something about the runtime of its agent.
    fn probed(
        &mut self,
        now: Timestamp,
        run: RunId,
        agent: &AgentId,
        terms: &Terms,
        reason: &Reason,
    ) {
        let limits = BreakerLimits {
            failures: terms.breaker.failures(),
            cooldown: Duration::from_secs(terms.breaker.cooldown_seconds()),
        };
        let turn = self.books.breakers.ended(agent, run, reason, limits, now);
        match turn {
            Some(BreakerChange::Opened { until }) => self.timers.arm(until, Due::Reconsider),
            Some(BreakerChange::Closed | BreakerChange::ProbeAgain) => self.reconsider(),
            None => {}
        }
    }
}
