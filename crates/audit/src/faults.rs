//! Faults of runtimes, counted again: who may begin once more, and what is left alone for a while.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{AgentId, Reason, Rules, RunId, Timestamp};

use crate::Rule;
use crate::run::{Cap, Run, SlotState};

/// The recent faults of each kind of agent.
#[derive(Default)]
pub(crate) struct Breakers(HashMap<AgentId, Breaker>);

#[derive(Default)]
struct Breaker {
    /// Faults in a row.
    faults: u32,
    /// Until when none may start, once there were too many; then one may, and decides.
    until: Option<Timestamp>,
    probe: Option<RunId>,
    /// The runs that were watched and wait for others, or have waited.
    rested: Vec<RunId>,
}

impl Breakers {
    /// A new supervisor knows the faults from the record, and watches no run yet.
    pub(crate) fn interrupt(&mut self) {
        for breaker in self.0.values_mut() {
            breaker.probe = None;
            breaker.rested.clear();
        }
    }

    /// Checks if a run of this agent may be admitted now; in words why not.
    pub(crate) fn check(&self, agent: &AgentId, at: Timestamp) -> Option<String> {
        let until = self.0.get(agent)?.until.filter(|until| at < *until)?;
        Some(format!(
            "`{agent}` had failed too often in a row, and was to be left alone until {until}"
        ))
    }

    /// Checks the same for a run that starts. Where it is the first after the wait, it is watched.
    pub(crate) fn start(&mut self, agent: &AgentId, run: RunId, at: Timestamp) -> Option<String> {
        let broken = self.check(agent, at);
        if let Some(breaker) = self.0.get_mut(agent)
            && breaker.until.is_some()
        {
            breaker.probe.get_or_insert(run);
        }
        broken
    }

    /// A run of this agent waits for others: where it is watched, the next one that starts is watched in its place.
    pub(crate) fn rests(&mut self, agent: &AgentId, run: RunId) {
        if let Some(breaker) = self.0.get_mut(agent) {
            breaker.rested.extend(breaker.probe.take_if(|probe| *probe == run));
        }
    }

    /// A run of this agent has ended that had started.
    pub(crate) fn ended(
        &mut self,
        agent: &AgentId,
        run: RunId,
        reason: &Reason,
        limits: (u32, Duration),
        at: Timestamp,
    ) {
        let (failures, cooldown) = limits;
        let works = matches!(
            reason,
            Reason::Completed { .. } | Reason::ExitCode { .. } | Reason::TurnLimit
        );
        let breaker = self.0.entry(agent.clone()).or_default();
        match (breaker.until, reason.is_runtime_fault()) {
            // Runs from before tell what was: only the one that is watched decides.
            (Some(_), _) if breaker.probe != Some(run) && !breaker.rested.contains(&run) => {}
            (None, true) => {
                breaker.faults = breaker.faults.saturating_add(1);
                if breaker.faults >= failures {
                    breaker.until = Some(at.plus(cooldown));
                }
            }
            (Some(_), true) => {
                *breaker = Breaker { until: Some(at.plus(cooldown)), ..Breaker::default() };
            }
            (_, false) if works => *breaker = Breaker::default(),
            (_, false) => {
                breaker.probe.take_if(|probe| *probe == run);
                breaker.rested.retain(|rested| *rested != run);
            }
        }
    }
}

/// After how many faults in a row an agent is left alone, and for how long: by the rules of the run and of its parent, the
/// more patient of the two. None where one of them says nothing, or that it never is.
pub(crate) fn breaker_limits(
    own: Option<&Rules>,
    above: Option<&Rules>,
) -> Option<(u32, Duration)> {
    let of = |rules: Option<&Rules>| {
        let rules = rules?;
        Some((rules.breaker_failures?, rules.breaker_cooldown_seconds?))
    };
    let (own, above) = (of(own)?, of(above.or(own))?);
    Some((own.0.max(above.0), Duration::from_secs(own.1.min(above.1))))
}

/// A run goes over to another runtime; in words what is wrong with that.
pub(crate) fn fell_back(run: &mut Run, number: u32, runtime: &Arc<str>) -> Option<String> {
    let before = std::mem::replace(&mut run.fallback, number);
    (run.retries, run.is_falling) = (0, true);
    run.admitted.runtime = Some(Arc::clone(runtime));
    if !matches!(run.state, SlotState::Holding | SlotState::Queued) {
        return Some("goes over to another runtime although it waits for no start".to_owned());
    }
    if number <= before {
        return Some(format!("falls back to its runtime {number} after its runtime {before}"));
    }
    let message = "begins anew on another runtime although it had asked for something or answered";
    run.has_acted.then(|| message.to_owned())
}

/// A run stands in line again because a quota of its account is used up, which is no fault; in words what is wrong with that.
pub(crate) fn parked(
    run: &mut Run,
    attempt: u32,
    continues: bool,
    is_parked: bool,
) -> Option<String> {
    // On another runtime it waits for no reset.
    let is_parked = std::mem::take(&mut run.is_falling) || is_parked;
    if attempt != run.attempt + 1 {
        return Some(format!("attempt {attempt} follows attempt {}", run.attempt));
    }
    if run.has_acted && !continues {
        return Some("begins again although it had asked for something or answered".to_owned());
    }
    (!is_parked).then(|| "begins again for a quota that no event says is used up".to_owned())
}

/// A run stands in line again until it has more budget; in words what is wrong with that.
fn capped(run: &mut Run, attempt: u32, continues: bool) -> Option<String> {
    let was = std::mem::replace(&mut run.cap, Cap::Waits);
    if attempt != run.attempt + 1 {
        return Some(format!("attempt {attempt} follows attempt {}", run.attempt));
    }
    if !continues {
        return Some("begins again for its budget, and does not go on where it was".to_owned());
    }
    let held = was == Cap::Held;
    (!held).then(|| "waits for more budget, and no request of it was too much".to_owned())
}

impl Run {
    /// Takes in that a request of the run is more than it has left, and waits for more.
    pub(crate) fn meets_cap(&mut self) -> Option<(Rule, String)> {
        self.cap = Cap::Held;
        None
    }

    /// Takes in that there is more budget, of which the run may have a part.
    pub(crate) fn is_given_more(&mut self) {
        if self.cap == Cap::Waits {
            self.cap = Cap::Below;
        }
    }

    /// Takes in that the run starts. In words what is wrong with that where it was to wait for more budget.
    pub(crate) fn starts_at_cap(&mut self) -> Option<(Rule, String)> {
        let was = std::mem::take(&mut self.cap);
        let too_early = "started although it was to wait for more budget, and none was given";
        (was == Cap::Waits).then(|| (Rule::Budget, too_early.to_owned()))
    }
}

/// A run begins once more after a fault; in words what is wrong with that.
pub(crate) fn retried(
    run: &mut Run,
    above: Option<&Rules>,
    attempt: u32,
    continues: bool,
    after: &Reason,
) -> Option<String> {
    if matches!(after, Reason::Budget { .. }) {
        return capped(run, attempt, continues);
    }
    let most = run.rules.as_deref().and_then(|rules| rules.retries);
    let most = most.max(above.and_then(|rules| rules.retries));
    run.retries += u32::from(!std::mem::take(&mut run.is_falling));
    if attempt != run.attempt + 1 {
        return Some(format!("attempt {attempt} follows attempt {}", run.attempt));
    }
    let rules = above.or(run.rules.as_deref());
    let on = rules.and_then(|rules| rules.retry_on).unwrap_or_default();
    if !after.is_retryable() && !on.includes(after) {
        return Some(format!("begins again after what no further attempt can mend: {after}"));
    }
    // One that continues its session does not do again what it has done.
    if run.has_acted && !continues {
        return Some("begins again although it had asked for something or answered".to_owned());
    }
    match most {
        Some(most) if run.retries > most => {
            Some(format!("begins again {} times, and {most} times it may", run.retries))
        }
        _ => None,
    }
}
