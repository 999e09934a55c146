//! Other runtimes for a run whose own one fails, or whose account has used up a quota.
//!
//! ```text
//!   holding ──fault, no attempt left──▶ fell back ──▶ in line ──▶ holding, on the next runtime, which has all attempts again
//!   in line, its account parked, `onWall: fallback` ──▶ fell back ──▶ in line
//! ```
//!
//! The next runtime knows nothing of what the last one did. So a run that has asked for children, or was written to, never falls back.

use std::sync::Arc;

use offshoot_config::OnWall;
use offshoot_model::{Ending, EventKind, Reason, Refusal};
use offshoot_policy::{Admission, Fallback, RuntimeFacts, check_fallback};

use super::run::{Live, RunIndex};
use super::{Effect, Machine};

/// The runtimes that may take over a run, and those of them that it has left behind.
#[derive(Debug)]
pub(super) struct Fallbacks {
    all: Arc<[Fallback]>,
    /// The number of the first that the run has not fallen back to, counted from 0.
    pub(super) next: usize,
    /// True while the attempt that follows is the first on its runtime: the fault before it is none of that.
    pub(super) is_new: bool,
}

impl Fallbacks {
    /// Returns none where there are none.
    pub(super) fn of(all: Option<&Arc<[Fallback]>>) -> Option<Box<Self>> {
        let all = all.filter(|all| !all.is_empty())?;
        Some(Box::new(Self { all: Arc::clone(all), next: 0, is_new: false }))
    }
}

impl Machine {
    /// Returns the runtime to which a run goes over whose attempt has ended in this way, by its place; none where it does not.
    pub(super) fn falls_back(&self, run: RunIndex, ending: &Ending) -> Option<usize> {
        let live = self.runs.live(run)?;
        let on_wall = live.under.quota.on_wall() == OnWall::Fallback;
        let is_reason = match ending.reason {
            Reason::Quota { .. } => on_wall,
            _ => ending.reason.is_retryable(),
        };
        let may = is_reason && live.stopping.is_none() && self.is_fresh(run);
        self.next_runtime(live).filter(|_| may)
    }

    /// A run that stands in line may not start before the reset of a quota: it goes over to another runtime, where it has one and its terms
    /// say so.
    pub(super) fn falls_back_in_line(&mut self, run: RunIndex) -> bool {
        let Some(live) = self.runs.live(run) else { return false };
        if live.under.quota.on_wall() != OnWall::Fallback || !self.is_fresh(run) {
            return false;
        }
        let Some(place) = self.next_runtime(live) else { return false };
        self.fall_back(run, place);
        true
    }

    /// Records that a run goes over to another runtime.
    pub(super) fn fall_back(&mut self, run: RunIndex, place: usize) {
        self.account_slots.leave(run);
        let fallbacks = self.runs.live(run).and_then(|live| live.fallbacks.as_deref());
        let fallback = fallbacks.map(|fallbacks| fallbacks.all[place].clone());
        let Fallback { facts, model } = fallback.expect("a run falls back to what it has");
        let runtime = Arc::clone(&facts.name);
        let number = u32::try_from(place + 1).expect("a configuration names a few");
        let (name, its) = (Arc::clone(&runtime), model.clone());
        self.record(run, EventKind::FellBack { number, runtime: name, model: its });
        self.run_by(run, &facts);
        self.out.push(Effect::FallBack { run, runtime, model });
    }

    /// A run is on another runtime from here on, in a live step or as the record says: nothing of an attempt on the last one counts.
    pub(super) fn fell_back(&mut self, run: RunIndex, number: u32) {
        // It is the probe of no account that it has left.
        self.probe_is_over(run);
        let Some(live) = self.runs.live_mut(run) else { return };
        live.faults = 0;
        if let Some(fallbacks) = &mut live.fallbacks {
            (fallbacks.next, fallbacks.is_new) = (number as usize, true);
        }
    }

    /// Sets what is known of the runtime of a run.
    pub(super) fn run_by(&mut self, run: RunIndex, facts: &RuntimeFacts) {
        let Some(live) = self.runs.live_mut(run) else { return };
        (live.cost, live.unasked_cost) = (facts.cost, facts.unasked_cost);
        live.costs_nothing = facts.costs_nothing();
        (live.takes_turns, live.resumes) = (facts.turns, facts.resumes);
        (live.memory, live.account) = (facts.memory, Some(Arc::clone(&facts.account)));
        live.prefix = None;
    }

    /// True if nothing that a run has done is lost where it begins anew: it has asked for nothing, and was not written to.
    fn is_fresh(&self, run: RunIndex) -> bool {
        let entry = &self.runs[run];
        entry.live().is_some_and(|live| {
            entry.children.len() == live.earlier_children as usize
                && live.mail.as_ref().is_none_or(|mail| mail.is_empty())
                && live.waits.is_empty()
        })
    }

    /// Returns the first runtime that the run has not left behind, that may take it over, and whose account is not parked.
    fn next_runtime(&self, live: &Live) -> Option<usize> {
        let fallbacks = live.fallbacks.as_deref()?;
        let may = |fallback: &Fallback| {
            let Fallback { facts, .. } = fallback;
            let is_parked = self.books.quotas.wall(&facts.account).is_some();
            let fits = check_fallback(facts, live.costs_nothing, &live.terms, &live.grant).is_ok();
            fits && !is_parked
        };
        let mut rest = fallbacks.all.iter().enumerate().skip(fallbacks.next);
        rest.find(|(_, fallback)| may(fallback)).map(|(place, _)| place)
    }
}

/// Checks that each of these runtimes may take over a run that is admitted so.
pub(super) fn check_fallbacks(
    fallbacks: Option<&Arc<[Fallback]>>,
    was: Option<&RuntimeFacts>,
    admission: &Admission,
) -> Result<(), Refusal> {
    let (Some(fallbacks), Some(was)) = (fallbacks, was) else { return Ok(()) };
    let was_free = was.costs_nothing();
    fallbacks.iter().try_for_each(|fallback| {
        check_fallback(&fallback.facts, was_free, &admission.terms, &admission.grant)
    })
}

/// True if a run may go over to another runtime.
pub(super) fn has_more(live: &Live) -> bool {
    live.fallbacks.as_deref().is_some_and(|fallbacks| fallbacks.next < fallbacks.all.len())
}
