//! The breaker: an agent whose runtime fails again and again is left alone for a while.
//!
//! ```text
//!            faults in a row                     the cool-down is over
//!  Closed ────────────────────▶ Open ───────────────────────────────▶ half open: one probe starts
//!    ▲                            ▲                                        │
//!    │                            └────────── the probe fails ─────────────┤
//!    └────────────────────────────────────── the probe works ──────────────┘
//! ```
//!
//! Only faults of the runtime count: a task that exits with 1, runs out of time or is cancelled says nothing about
//! whether the next one can run. A run that was stopped from outside proves nothing either way: after such a probe the
//! next one probes. So it does while a probe waits for others, which may be held back themselves.

use std::collections::HashMap;
use std::time::Duration;

use offshoot_config::AgentId;
use offshoot_model::{Reason, RunId, Timestamp};

/// The breakers of one tree, one for each kind of agent that has failed.
#[derive(Clone, Debug, Default)]
pub struct Breakers {
    by_agent: HashMap<AgentId, Breaker>,
}

/// The breaker of one kind of agent.
#[derive(Clone, Debug, Default)]
pub struct Breaker {
    faults: u32,
    state: State,
}

/// The limits at which a breaker opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerLimits {
    /// Faults in a row; 0 switches it off.
    pub failures: u32,
    /// Until one is let through.
    pub cooldown: Duration,
}

/// The answer of a breaker to a run that wants to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// The run may start.
    Closed,
    /// Go, and be watched.
    HalfOpen,
    /// Not before this moment.
    Open {
        /// The end of the cool-down.
        until: Timestamp,
    },
    /// Not before the probe has ended.
    Probing {
        /// The one that is watched.
        probe: RunId,
    },
}

/// The effect of an end on a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerChange {
    /// The breaker opened, or opened again.
    Opened {
        /// The faults in a row.
        faults: u32,
        /// The end of the cool-down: runs that wait can be looked at again then.
        until: Timestamp,
    },
    /// The breaker closed.
    Closed,
    /// A probe ended without telling anything: the next one may probe now.
    ProbeAgain,
}

#[derive(Clone, Debug, Default)]
enum State {
    #[default]
    Closed,
    Open {
        until: Timestamp,
        /// After the cool-down.
        probe: Option<RunId>,
        /// Probes that wait for others, or have waited. The end of each decides as well.
        rested: Vec<RunId>,
    },
}

/// The evidence that an end gives about the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Evidence {
    Fault,
    Works,
    Nothing,
}

impl Breakers {
    /// Returns the answer to an agent of this kind that is to be admitted or started.
    pub fn gate(&self, agent: &AgentId, now: Timestamp) -> Gate {
        self.by_agent.get(agent).map_or(Gate::Closed, |breaker| breaker.gate(now))
    }

    /// A run of this kind wants to start. Where it may, and is to be watched, it is the probe from now on.
    pub fn start(&mut self, agent: &AgentId, run: RunId, now: Timestamp) -> Gate {
        self.by_agent.get_mut(agent).map_or(Gate::Closed, |breaker| breaker.start(run, now))
    }

    /// Takes in that a run of this kind gives up its slot to wait for others. Where it is the probe, another one may probe: it may wait for a run
    /// that the breaker holds back.
    pub fn rests(&mut self, agent: &AgentId, run: RunId) {
        if let Some(breaker) = self.by_agent.get_mut(agent) {
            breaker.rests(run);
        }
    }

    /// Returns true if a run of this kind is the probe.
    pub fn is_probe(&self, agent: &AgentId, run: RunId) -> bool {
        self.by_agent.get(agent).is_some_and(|breaker| breaker.is_probe(run))
    }

    /// Takes in that nothing runs any more: the run that was the probe has told nothing.
    pub fn interrupt(&mut self) {
        for breaker in self.by_agent.values_mut() {
            breaker.interrupt();
        }
    }

    /// A run of this kind has ended. To be called for every run that was started.
    pub fn ended(
        &mut self,
        agent: &AgentId,
        run: RunId,
        reason: &Reason,
        limits: BreakerLimits,
        now: Timestamp,
    ) -> Option<BreakerChange> {
        if let Some(breaker) = self.by_agent.get_mut(agent) {
            return breaker.ended(run, reason, limits, now);
        }
        // Most agents never fail, so only a fault is worth an entry.
        if !reason.is_runtime_fault() {
            return None;
        }
        self.by_agent.entry(agent.clone()).or_default().ended(run, reason, limits, now)
    }
}

impl Breaker {
    /// Returns the answer to a run that wants to start.
    pub fn gate(&self, now: Timestamp) -> Gate {
        match self.state {
            State::Closed => Gate::Closed,
            State::Open { until, .. } if now < until => Gate::Open { until },
            State::Open { probe: Some(probe), .. } => Gate::Probing { probe },
            State::Open { probe: None, .. } => Gate::HalfOpen,
        }
    }

    /// Starts a run, which becomes the probe where one is due. The probe may start again: it has not ended.
    pub fn start(&mut self, run: RunId, now: Timestamp) -> Gate {
        match (self.gate(now), &mut self.state) {
            (Gate::HalfOpen, State::Open { probe, .. }) => {
                *probe = Some(run);
                Gate::HalfOpen
            }
            (Gate::Probing { probe }, _) if probe == run => Gate::HalfOpen,
            (gate, _) => gate,
        }
    }

    fn interrupt(&mut self) {
        if let State::Open { probe, rested, .. } = &mut self.state {
            *probe = None;
            rested.clear();
        }
    }

    fn rests(&mut self, run: RunId) {
        if let State::Open { probe, rested, .. } = &mut self.state {
            rested.extend(probe.take_if(|probe| *probe == run));
        }
    }

    fn is_probe(&self, run: RunId) -> bool {
        matches!(&self.state, State::Open { probe: Some(probe), .. } if *probe == run)
    }

    /// Takes the end of a run that was started.
    pub fn ended(
        &mut self,
        run: RunId,
        reason: &Reason,
        limits: BreakerLimits,
        now: Timestamp,
    ) -> Option<BreakerChange> {
        let evidence = Evidence::of(reason);
        match &mut self.state {
            State::Closed => match evidence {
                Evidence::Fault => {
                    self.faults = self.faults.saturating_add(1);
                    let opens = limits.failures > 0 && self.faults >= limits.failures;
                    opens.then(|| self.open(limits, now))
                }
                Evidence::Works => {
                    self.faults = 0;
                    None
                }
                Evidence::Nothing => None,
            },
            // Runs from before it opened tell what was, not what is: only the probe decides.
            State::Open { probe, rested, .. } if *probe != Some(run) && !rested.contains(&run) => {
                None
            }
            State::Open { probe, rested, .. } => Some(match evidence {
                Evidence::Fault => {
                    self.faults = self.faults.saturating_add(1);
                    self.open(limits, now)
                }
                Evidence::Works => {
                    *self = Self::default();
                    BreakerChange::Closed
                }
                Evidence::Nothing => {
                    probe.take_if(|probe| *probe == run);
                    rested.retain(|rested| *rested != run);
                    BreakerChange::ProbeAgain
                }
            }),
        }
    }

    fn open(&mut self, limits: BreakerLimits, now: Timestamp) -> BreakerChange {
        let until = now.plus(limits.cooldown);
        self.state = State::Open { until, probe: None, rested: Vec::new() };
        BreakerChange::Opened { faults: self.faults, until }
    }
}

impl Evidence {
    fn of(reason: &Reason) -> Self {
        if reason.is_runtime_fault() {
            return Self::Fault;
        }
        match reason {
            // The runtime has brought it to an end of its own, whatever the task's verdict.
            Reason::Completed { .. } | Reason::ExitCode { .. } | Reason::TurnLimit => Self::Works,
            _ => Self::Nothing,
        }
    }
}

#[cfg(test)]
mod tests;
