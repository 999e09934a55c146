//! Experience with types of tasks: the numbers of all observations, and what they recommend.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use offshoot_model::{AgentId, MicroUsd, TaskType, number};
use serde::Serialize;

use crate::observation::{Observation, Way};

/// The number of observations that a recommendation needs, of tasks that were done directly and of delegated ones.
pub const ENOUGH: u64 = 10;

/// Shares of success that differ by less, in hundredths, are no reason.
const SAME_SUCCESS: u128 = 10;

/// Observations, by type, agent and way.
#[derive(Clone, Debug, Default)]
pub struct Experience(BTreeMap<TaskType, BTreeMap<(AgentId, Way), Vec<Outcome>>>);

#[derive(Clone, Copy, Debug)]
struct Outcome {
    success: bool,
    time: Duration,
    /// The cost in dollars; absent where it is not known.
    usd: Option<MicroUsd>,
}

/// The numbers of one type of tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TypeSummary {
    /// The type.
    #[serde(rename = "type")]
    pub task_type: TaskType,
    /// The numbers of the tasks that were done directly.
    pub directly: Side,
    /// The numbers of those that were delegated.
    pub delegated: Side,
    /// The recommendation.
    pub advice: Advice,
    /// The same by the agent that did them.
    pub agents: Vec<AgentSide>,
}

/// The numbers of one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentSide {
    /// The agent that did the tasks.
    pub agent: AgentId,
    /// The way in which they were done.
    pub way: Way,
    /// The numbers.
    #[serde(flatten)]
    pub side: Side,
}

/// The numbers of tasks that were done in one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Side {
    /// The number of observations.
    pub observations: u64,
    /// The number of tasks that were done.
    pub succeeded: u64,
    /// Half of them took no longer, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median_ms: Option<u64>,
    /// Half of those of known cost cost no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median_usd: Option<MicroUsd>,
}

/// The recommendation for a type of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Advice {
    /// There are too few observations.
    Unknown {
        /// So many more are needed of tasks that are done directly.
        directly_missing: u64,
        /// So many more are needed of delegated tasks.
        delegated_missing: u64,
    },
    /// Tasks of this type are to be done in this way.
    Prefer {
        /// The way.
        way: Way,
        /// The number that decides.
        because: Because,
    },
}

/// The number by which a way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Because {
    /// More of the tasks were done.
    Success,
    /// The tasks took less time.
    Time,
    /// The tasks cost less.
    Cost,
    /// Nothing: the ways are equal, and a child is no use.
    Equal,
}

impl Experience {
    /// Adds an observation.
    pub fn add(&mut self, observation: Observation) {
        let Observation { task_type, agent, way, success, time, cost } = observation;
        let usd = (cost.unknown_runs == 0).then(|| cost.dollars());
        let of_type = self.0.entry(task_type).or_default();
        of_type.entry((agent, way)).or_default().push(Outcome { success, time, usd });
    }

    /// Returns the numbers of all types, in alphabetical order.
    pub fn types(&self) -> impl Iterator<Item = TypeSummary> {
        self.0.iter().map(|(task_type, of_type)| summary(task_type, of_type))
    }

    /// Returns the numbers of a type; none of one without observations.
    pub fn of_type(&self, task_type: &TaskType) -> Option<TypeSummary> {
        self.0.get_key_value(task_type).map(|(task_type, of_type)| summary(task_type, of_type))
    }

    /// Returns the numbers of a type together with further observations; zeros where there is neither.
    pub fn with(
        &self,
        task_type: &TaskType,
        more: impl IntoIterator<Item = Observation>,
    ) -> TypeSummary {
        let own = self.0.get(task_type).cloned().unwrap_or_default();
        let mut both = Self(BTreeMap::from([(task_type.clone(), own)]));
        both.extend(more.into_iter().filter(|it| it.task_type == *task_type));
        summary(task_type, &both.0[task_type])
    }
}

impl Extend<Observation> for Experience {
    fn extend<I: IntoIterator<Item = Observation>>(&mut self, observations: I) {
        observations.into_iter().for_each(|observation| self.add(observation));
    }
}

fn summary(task_type: &TaskType, of_type: &BTreeMap<(AgentId, Way), Vec<Outcome>>) -> TypeSummary {
    let of_way = |wanted| {
        let of_way = of_type.iter().filter(|((_, way), _)| *way == wanted);
        Side::of(of_way.flat_map(|(_, outcomes)| outcomes))
    };
    let (directly, delegated) = (of_way(Way::Directly), of_way(Way::Delegated));
    let agent = |((agent, way), outcomes): (&(AgentId, Way), &Vec<Outcome>)| AgentSide {
        agent: agent.clone(),
        way: *way,
        side: Side::of(outcomes),
    };
    TypeSummary {
        task_type: task_type.clone(),
        directly,
        delegated,
        advice: Advice::of(&directly, &delegated),
        agents: of_type.iter().map(agent).collect(),
    }
}

impl Side {
    fn of<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Self {
        let (mut times, mut costs) = (Vec::new(), Vec::new());
        let mut succeeded = 0;
        for outcome in outcomes {
            succeeded += u64::from(outcome.success);
            times.push(outcome.time);
            costs.extend(outcome.usd);
        }
        let median_ms = median(&mut times);
        Self {
            observations: times.len() as u64,
            succeeded,
            median_ms: median_ms.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            median_usd: median(&mut costs),
        }
    }
}

/// The smallest value that at least half do not exceed.
fn median<T: Ord + Copy>(values: &mut [T]) -> Option<T> {
    values.sort_unstable();
    values.get(values.len().div_ceil(2).checked_sub(1)?).copied()
}

impl Advice {
    /// Compares what was done directly with what was delegated: by the share of success where these differ by a tenth or more, then by
    /// the median time, then by the median cost where both are known. Where all are equal, no child is worth its process.
    pub fn of(directly: &Side, delegated: &Side) -> Self {
        let missing = |side: &Side| ENOUGH.saturating_sub(side.observations);
        if missing(directly) + missing(delegated) > 0 {
            return Self::Unknown {
                directly_missing: missing(directly),
                delegated_missing: missing(delegated),
            };
        }
        let better = |delegate: bool| if delegate { Way::Delegated } else { Way::Directly };
        // Shares of the same whole, so that nothing is rounded.
        let share = |side: &Side, other: &Side| {
            u128::from(side.succeeded) * u128::from(other.observations) * 100
        };
        let (here, there) = (share(directly, delegated), share(delegated, directly));
        let whole = u128::from(directly.observations) * u128::from(delegated.observations);
        let (way, because) = if here.abs_diff(there) >= whole * SAME_SUCCESS {
            (better(there > here), Because::Success)
        } else if directly.median_ms != delegated.median_ms {
            (better(delegated.median_ms < directly.median_ms), Because::Time)
        } else {
            match (directly.median_usd, delegated.median_usd) {
                (Some(here), Some(there)) if here != there => (better(there < here), Because::Cost),
                _ => (Way::Directly, Because::Equal),
            }
        };
        Self::Prefer { way, because }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (succeeded, all) = (number::count(self.succeeded), number::count(self.observations));
        write!(f, "{succeeded} of {all} succeeded")?;
        if let Some(median) = self.median_ms {
            write!(f, ", half within {}", number::milliseconds(median))?;
        }
        if let Some(median) = self.median_usd.filter(|median| *median > MicroUsd::default()) {
            write!(f, ", half for at most {}", number::dollars(median))?;
        }
        Ok(())
    }
}

impl TypeSummary {
    /// The number that decides, in a sentence with the numbers of both sides; what is missing where nothing decides yet.
    pub fn reason(&self) -> String {
        let Self { task_type, directly, delegated, advice, .. } = self;
        let why = match advice {
            Advice::Unknown { directly_missing, delegated_missing } => {
                return format!(
                    "{directly_missing} more done directly and {delegated_missing} more delegated are needed"
                );
            }
            Advice::Prefer { because, .. } => match because {
                Because::Success => "more of them succeed",
                Because::Time => "it takes less time",
                Because::Cost => "it costs less",
                Because::Equal => "there is no difference",
            },
        };
        format!("of the type `{task_type}` {why} (directly {directly}; delegated {delegated})")
    }
}

impl fmt::Display for TypeSummary {
    /// The recommendation in a sentence, with the numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.reason();
        match self.advice {
            Advice::Unknown { .. } => {
                write!(f, "no recommendation for `{}` yet: {reason}", self.task_type)
            }
            Advice::Prefer { way: Way::Directly, .. } => write!(f, "do it directly: {reason}"),
            Advice::Prefer { way: Way::Delegated, .. } => write!(f, "delegate it: {reason}"),
        }
    }
}
