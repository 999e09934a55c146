//! The end of a run: the slot comes back, the record is written, and those that wait are told.

use std::time::Duration;

use offshoot_config::OnParentEnd;
use offshoot_model::{
    AgentId, CancelledBy, Cost, DeliveryId, Ending, Envelope, EventKind, Reason, RunId, Usage,
    last_line,
};
use offshoot_policy::Terms;
use offshoot_policy::breaker::{BreakerChange, BreakerLimits};

use super::apply::{Applied, Closed};
use super::mail::Mail;
use super::pace::is_pressure;
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
    /// The line that it said last.
    pub(crate) last_words: Option<String>,
}

/// An end of which everything is known.
impl From<Ending> for Outcome {
    fn from(ending: Ending) -> Self {
        let (usage, cost) = (Some(ending.usage), Some(ending.cost));
        Self { ending, usage, cost, retry_after: None, last_words: None }
    }
}

impl Machine {
    /// A runtime says that a run is over. What it does not say of its use is what it has told before.
    pub(super) fn came_back(&mut self, run: RunIndex, outcome: Outcome) {
        let Outcome { mut ending, usage, cost, retry_after, last_words } = outcome;
        self.lose_requests(run);
        let reported = usage.zip(cost);
        if let Some(metered) = self.metered_use(run, &ending.reason, reported) {
            (ending.usage, ending.cost) = metered;
        } else if let Some(live) = self.runs.live(run) {
            // Zeros after a report are no report: nothing spent is ever unspent.
            let told = live.told.is_some();
            let usage = usage.filter(|usage| !told || *usage != Usage::default());
            let cost = cost.filter(|cost| !told || !cost.is_none());
            let (so_far, cost_so_far) = live.so_far(&ending.reason);
            ending.usage = usage.map_or(so_far, Usage::believed);
            ending.cost = cost.unwrap_or(cost_so_far);
        }
        if let Some(reason) = self.gave_up_for(run, &ending) {
            ending.reason = reason;
        }
        self.meets_wall(run, &mut ending, retry_after);
        let backs_off = self.runs.live(run).is_some_and(Live::backs_off);
        // Calls that failed before it gave up have told of the same.
        if is_pressure(&ending.reason) && !backs_off {
            self.meets_pressure(run);
        }
        if let Some(last_words) = last_words {
            self.say_last(run, &mut ending, last_words);
        }
        self.ended_well(run, &ending);
        self.is_no_longer_first(run);
        if !self.retry(run, &ending, retry_after) {
            self.finished(run, ending);
        }
    }

    /// Keeps what a run said last, where something else ended it.
    fn say_last(&self, run: RunIndex, ending: &mut Ending, last_words: String) {
        let live = self.runs.live(run);
        let stopping = live.and_then(|live| live.stopping.as_deref());
        let reason = stopping.unwrap_or(&ending.reason);
        if ending.status().is_success() || !reason.is_from_outside() {
            return;
        }
        let said = ending.diagnostics.get_or_insert_default();
        if last_line(said) != Some(&*last_words) {
            let line_break = if said.is_empty() { "" } else { "\n" };
            said.push_str(line_break);
            said.push_str(&last_words);
        }
    }

    /// A run is over, and everything it started is gone.
    pub(super) fn finished(&mut self, run: RunIndex, mut ending: Ending) {
        self.record_refusals(run);
        self.is_no_longer_first(run);
        self.let_clock_rest(run);
        let live = self.runs.live(run);
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
            live.started_at.map_or(0, |started_at| self.now.since(started_at).as_millis() as u64);
        let key = live.key.clone();
        let entry = &self.runs[run];
        let (id, agent, depth) = (entry.id, entry.agent.clone(), entry.depth());
        let envelope = Envelope::of(&ending, key.clone(), id, agent, depth);
        self.cover(run, &ending);
        self.record_overrun(run, &ending);
        let reason = ending.reason.clone();
        let applied = self.record(run, EventKind::Ended(Box::new(ending)));
        let closed = applied.closed.expect("a run that was over has ended again");
        let Closed { live, is_held, needed_by } = closed;
        self.over_for(run, reason, needed_by);
        let Live { terms, waits, watchers, mail, announces, .. } = *live;
        self.out.push(Effect::Ended { run, envelope: Box::new(envelope) });
        self.apply_notices(&applied.notices);
        if let Some(change) = applied.breaker {
            self.record_of_tree(change);
        }

        for wait in waits {
            self.resolve(wait);
        }
        self.return_mail(mail.as_deref().map(Mail::held));
        // Before the waits that the end satisfies, for these deliver the result.
        match announces {
            true if is_held => {}
            true => self.undelivered(run, DeliveryId::new(&key, id)),
            // The follower of the run is handed the result with the end.
            false => self.clean_up(run),
        }
        for wait in watchers {
            self.target_ended(wait);
        }
        // Also where no child lives: a child that was let finish may have left children of its own.
        if terms.on_parent_end() == OnParentEnd::Cascade {
            self.cancel(run, Reach::Below, CancelledBy::ParentEnded);
        }
    }

    /// Takes the data of a run that ends, and gives back what the run held; none where the run is over already.
    pub(super) fn close_run(&mut self, run: RunIndex, ending: &Ending) -> Option<Applied> {
        let entry = &mut self.runs[run];
        entry.live()?;
        let Body::Live(mut live) = std::mem::replace(&mut entry.body, Body::Ended(ending.status()))
        else {
            unreachable!("the run was alive");
        };
        let (id, agent, parent) = (entry.id, entry.agent.clone(), entry.parent);
        self.live -= 1;
        self.at_cap.remove(&run);
        self.account_slots.leave(run);
        let phase = std::mem::replace(&mut live.phase, SlotState::Lent);
        // A run that only holds pieces has no runtime of which it could tell.
        let has_run = live.started_at.is_some() && phase != SlotState::Holder;
        match phase {
            SlotState::Holding { lease, .. } => self.let_go(run, lease),
            SlotState::Queued => self.queued -= 1,
            SlotState::Lent | SlotState::Returning { .. } | SlotState::Holder => {}
        }
        if let Some(parent) = parent.and_then(|parent| self.runs.live_mut(parent)) {
            parent.live_children.remove(&run);
        }
        let breaker = match has_run {
            true => self.probed(id, &agent, &live.under, &ending.reason),
            false => None,
        };
        let notices = self.books.ledger.settle(id, ending);
        let needed_by = self.no_longer_needed(run, live.may_repeat());
        let is_held = live.announces && self.remember_result(run, &live.key);
        Some(Applied { notices, breaker, closed: Some(Closed { live, is_held, needed_by }) })
    }

    /// A run that had been started tells something about the runtime of its agent. Returns what is to be recorded of that.
    fn probed(
        &mut self,
        run: RunId,
        agent: &AgentId,
        terms: &Terms,
        reason: &Reason,
    ) -> Option<EventKind> {
        let limits = BreakerLimits {
            failures: terms.breaker.failures(),
            cooldown: Duration::from_secs(terms.breaker.cooldown_seconds()),
        };
        let turn = self.books.breakers.ended(agent, run, reason, limits, self.now);
        let agent = agent.clone();
        match turn? {
            BreakerChange::Opened { faults, until } => {
                self.timers.arm(until, Due::Reconsider);
                let wait_ms = limits.cooldown.as_millis() as u64;
                Some(EventKind::BreakerOpened { agent, faults, wait_ms })
            }
            BreakerChange::Closed => {
                self.reconsider();
                Some(EventKind::BreakerClosed { agent })
            }
            BreakerChange::ProbeAgain => {
                self.reconsider();
                None
            }
        }
    }
}
