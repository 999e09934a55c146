//! Observations of tasks with a type, from the record of a tree.
//!
//! ```text
//!   admitted with a type ──▶ ended                                 delegated
//!   observation_opened   ──▶ observation_closed, turn_ended, ended  done directly by the caller
//! ```

use std::collections::HashMap;
use std::time::Duration;

use offshoot_model::{
    Admitted, AgentId, Cost, Event, EventKind, MicroUsd, RunId, RunStatus, TaskType, Timestamp,
};
use serde::Serialize;

/// The way in which a task was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// The agent that had the task did it itself.
    Directly,
    /// A child did it.
    Delegated,
}

/// A task with a type that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The type of the task.
    pub task_type: TaskType,
    /// The agent that did it.
    pub agent: AgentId,
    /// The way in which it was done.
    pub way: Way,
    /// True if it was done.
    pub success: bool,
    /// The time from the request to the end. Time in line counts: the agent that asks waits for it too.
    pub time: Duration,
    /// The cost, with that of children that were started for it.
    pub cost: Cost,
}

/// The observations of one tree. Takes its events in their order.
///
/// A run that never started, was interrupted or cancelled, or whose end is not known says nothing about its task, and is no observation;
/// neither is what such a run was doing itself at that time.
#[derive(Clone, Debug, Default)]
pub struct TreeObservations {
    runs: Vec<Seen>,
    index: HashMap<RunId, usize>,
    direct: Vec<Direct>,
}

/// A run, as far as observations need it.
#[derive(Clone, Debug)]
struct Seen {
    parent: Option<usize>,
    agent: AgentId,
    task_type: Option<TaskType>,
    admitted: Timestamp,
    started: bool,
    interrupted: bool,
    /// The last report of its cost.
    reported: Option<Cost>,
    ended: Option<(Timestamp, RunStatus, Cost)>,
}

/// A task that a run does itself.
#[derive(Clone, Debug)]
struct Direct {
    run: usize,
    number: u32,
    task_type: TaskType,
    from: Mark,
    /// The end, and whether the task was done; none while it is open, and for what says nothing.
    until: Option<(Mark, bool)>,
}

/// A moment in the life of a run.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Timestamp,
    reported: Option<Cost>,
    /// The number of runs that the tree had.
    runs: usize,
}

impl TreeObservations {
    /// Takes in one event.
    pub fn apply(&mut self, event: &Event) {
        if let EventKind::Admitted(admitted) = &event.kind {
            return self.admit(event, admitted);
        }
        let Some(&run) = self.index.get(&event.run) else { return };
        let seen = &mut self.runs[run];
        match &event.kind {
            EventKind::Starting => seen.started = true,
            EventKind::Used { cost, .. } => seen.reported = Some(*cost),
            EventKind::RequestSettled { cost, .. } => {
                let before = seen.reported.unwrap_or(Cost::NONE);
                seen.reported = Some(before.with_request(*cost));
            }
            EventKind::Resumed { after, .. } => {
                seen.interrupted |= after.is_none();
                self.direct.retain(|direct| direct.run != run || direct.until.is_some());
            }
            EventKind::ObservationOpened { number, task_type } => {
                let (number, task_type) = (*number, task_type.clone());
                let from = self.mark(run, event.at);
                self.direct.push(Direct { run, number, task_type, from, until: None });
            }
            EventKind::ObservationClosed { number, success } => {
                self.close(run, Some(*number), event.at, *success);
            }
            EventKind::TurnEnded { .. } => self.close(run, None, event.at, true),
            EventKind::Ended(ending) => {
                let status = ending.status();
                seen.ended = Some((event.at, status, ending.cost));
                seen.reported = Some(ending.cost);
                if tells(status) {
                    self.close(run, None, event.at, status.is_success());
                }
            }
            _ => {}
        }
    }

    /// Returns the observations that are over, those of delegated tasks first.
    pub fn into_observations(self) -> Vec<Observation> {
        let costs = self.costs_with_children();
        let delegated = self.runs.iter().enumerate().filter_map(|(run, seen)| {
            let (at, status, _) = seen.ended?;
            if !seen.started || seen.interrupted || !tells(status) {
                return None;
            }
            Some(Observation {
                task_type: seen.task_type.clone()?,
                agent: seen.agent.clone(),
                way: Way::Delegated,
                success: status.is_success(),
                time: at.since(seen.admitted),
                cost: costs[run],
            })
        });
        let direct = self.direct.iter().filter_map(|direct| {
            let (until, success) = direct.until?;
            let children = self.runs[..until.runs].iter().enumerate().skip(direct.from.runs);
            let children = children.filter(|(_, child)| child.parent == Some(direct.run));
            let cost = self.own_cost(direct, &until);
            Some(Observation {
                task_type: direct.task_type.clone(),
                agent: self.runs[direct.run].agent.clone(),
                way: Way::Directly,
                success,
                time: until.at.since(direct.from.at),
                cost: children.fold(cost, |sum, (child, _)| sum + costs[child]),
            })
        });
        delegated.chain(direct).collect()
    }

    fn admit(&mut self, event: &Event, admitted: &Admitted) {
        self.index.insert(event.run, self.runs.len());
        self.runs.push(Seen {
            parent: admitted.parent.and_then(|parent| self.index.get(&parent).copied()),
            agent: admitted.agent.clone(),
            task_type: admitted.task_type().cloned(),
            admitted: event.at,
            started: false,
            interrupted: false,
            reported: None,
            ended: None,
        });
    }

    /// Closes one direct observation of a run, or all that are open.
    fn close(&mut self, run: usize, number: Option<u32>, at: Timestamp, success: bool) {
        let until = (self.mark(run, at), success);
        let is_meant = |direct: &&mut Direct| {
            let is_it = number.is_none_or(|number| direct.number == number);
            direct.run == run && direct.until.is_none() && is_it
        };
        for direct in self.direct.iter_mut().filter(is_meant) {
            direct.until = Some(until);
        }
    }

    fn mark(&self, run: usize, at: Timestamp) -> Mark {
        Mark { at, reported: self.runs[run].reported, runs: self.runs.len() }
    }

    /// Returns the cost of each run with all below it.
    fn costs_with_children(&self) -> Vec<Cost> {
        let known = |seen: &Seen| match (seen.ended, seen.reported) {
            (Some((_, _, cost)), _) => cost,
            (None, Some(cost)) => cost.cut_off(),
            (None, None) => Cost::unknown(),
        };
        let mut costs: Vec<Cost> = self.runs.iter().map(known).collect();
        // A child stands behind its parent.
        for (run, seen) in self.runs.iter().enumerate().rev() {
            if let Some(parent) = seen.parent {
                costs[parent] = costs[parent] + costs[run];
            }
        }
        costs
    }

    /// Returns what a run itself has used between the two marks, as far as it was reported.
    fn own_cost(&self, direct: &Direct, until: &Mark) -> Cost {
        // An agent that costs nothing reports nothing.
        let costs_nothing = |(_, _, cost): (Timestamp, RunStatus, Cost)| cost.is_none();
        if self.runs[direct.run].ended.is_some_and(costs_nothing) {
            return Cost::NONE;
        }
        let Some(after) = until.reported else { return Cost::unknown() };
        let before = direct.from.reported.unwrap_or_default();
        let less = |after: MicroUsd, before: MicroUsd| {
            MicroUsd::from_micros(after.as_micros().saturating_sub(before.as_micros()))
        };
        Cost {
            metered_usd: less(after.metered_usd, before.metered_usd),
            known_usd: less(after.known_usd, before.known_usd),
            estimated_usd: less(after.estimated_usd, before.estimated_usd),
            unknown_runs: after.unknown_runs.min(1),
        }
    }
}

/// True if the end of a run tells how its task went.
const fn tells(status: RunStatus) -> bool {
    matches!(status, RunStatus::Completed | RunStatus::Failed | RunStatus::TimedOut)
}
