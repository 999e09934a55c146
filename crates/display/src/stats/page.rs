//! The numbers of many runs on a page.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use offshoot_model::{Cost, RunId, RunStatus, Usage};
use serde::Serialize;

use super::cause::Cause;
use super::held::HeldTree;
use crate::opportunities::Opportunities;
use crate::{neutral, number, status_words, used};

/// The numbers, for people and programs. Shown as a page of text, without a newline at its end.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatsPage {
    /// Trees that were looked at.
    pub trees: u64,
    /// Runs, those in line and those that are not over among them; without those whose place another run has taken.
    pub runs: u64,
    /// Runs by status.
    pub statuses: BTreeMap<RunStatus, u64>,
    /// Runs that failed and whose place another has taken. Their time and money count, their failure does not.
    pub ran_again: u64,
    /// Attempts that were cut off with their supervisor, and followed by another one. Absent where there is none.
    #[serde(skip_serializing_if = "is_zero")]
    pub cut_off: u64,
    /// Trees that are held back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<HeldTree>,
    /// Requests of runs for children that were refused, by the code of the refusal.
    pub refusals: BTreeMap<String, u64>,
    /// Failures by cause, the most frequent first.
    pub causes: Vec<Cause>,
    /// The run at work that has taken longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest: Option<Longest>,
    /// From the admission to the first slot.
    pub queue: Percentiles,
    /// From the first slot to the end, without waits for children.
    pub run: Percentiles,
    /// The waits for children.
    pub wait: Percentiles,
    /// The waits for a service, from a call that it refused or broke off to its next answer, or to the end of the attempt. Absent where there
    /// is none.
    #[serde(skip_serializing_if = "Percentiles::is_empty")]
    pub back_off: Percentiles,
    /// Runs at once.
    pub parallelism: Parallelism,
    /// Usage and cost by agent.
    pub agents: BTreeMap<String, Spent>,
    /// The same by model. What the meter has counted is under the model of each request, and a run counts for each model that it has asked. Other runs are
    /// under the model that answered last, or was asked for; those with the configured one are under `configured`.
    pub models: BTreeMap<String, Spent>,
    /// The same by depth.
    pub depths: BTreeMap<u32, Spent>,
    /// Opportunities, where one whole tree was looked at: where its time went and what would change that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opportunities: Option<Opportunities>,
}

pub(super) fn is_zero<N: Default + PartialEq>(count: &N) -> bool {
    *count == N::default()
}

/// A run at work.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Longest {
    /// The run.
    pub run_id: RunId,
    /// The name of that run for people.
    pub name: String,
    /// Milliseconds since its first slot, without waits for children.
    pub ms: u64,
}

/// Times of many runs, in milliseconds. Absent where there is none.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Percentiles {
    /// The number of times.
    pub count: u64,
    /// Half took no longer.
    pub p50: Option<u64>,
    /// 95 of 100 took no longer.
    pub p95: Option<u64>,
    /// 99 of 100 took no longer.
    pub p99: Option<u64>,
}

/// The number of runs that worked at once, on average, and the number that could have.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Parallelism {
    /// The time that all runs held slots, by the time from the first start to the last end of each tree.
    pub achieved: f64,
    /// The slots of the trees, by the same time.
    pub possible: f64,
}

/// The usage and cost of runs.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Spent {
    /// The number of runs.
    pub runs: u64,
    /// The tokens.
    pub usage: Usage,
    /// The money.
    pub cost: Cost,
}

impl Spent {
    /// Counts a run that has used so much.
    pub(super) fn add(&mut self, used: (Usage, Cost)) {
        self.runs += 1;
        (self.usage, self.cost) = (self.usage + used.0, self.cost + used.1);
    }
}

impl Percentiles {
    /// The value below which so many of a hundred lie is the smallest that at least so many do not exceed.
    pub(super) fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |percent: usize| {
            let rank = (times.len() * percent).div_ceil(100).max(1);
            times.get(rank - 1).map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
        };
        Self { count: times.len() as u64, p50: at(50), p95: at(95), p99: at(99) }
    }

    const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl fmt::Display for Percentiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(p50), Some(p95), Some(p99)) = (self.p50, self.p95, self.p99) else {
            return f.write_str("none");
        };
        let [p50, p95, p99] = [p50, p95, p99].map(number::milliseconds);
        write!(f, "p50 {p50}, p95 {p95}, p99 {p99}")
    }
}

impl fmt::Display for StatsPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = |(status, count): (&RunStatus, &u64)| {
            format!("{} {}", number::count(*count), status_words(*status))
        };
        let statuses: Vec<String> = self.statuses.iter().map(status).collect();
        let trees = number::many(self.trees, "tree");
        write!(f, "runs         {} in {trees}", number::count(self.runs))?;
        if !statuses.is_empty() {
            write!(f, ": {}", statuses.join(", "))?;
        }
        if self.ran_again > 0 {
            let before = number::count(self.ran_again);
            write!(f, "; {before} had no answer before and ran again")?;
        }
        if self.cut_off > 0 {
            let attempts = number::many(self.cut_off, "attempt");
            write!(f, "\ncut off      {attempts} by the end of a supervisor, and made again")?;
        }
        for (at, line) in self.held.iter().flat_map(HeldTree::lines).enumerate() {
            let word = if at == 0 { "held" } else { "" };
            write!(f, "\n{word:11}  {line}")?;
        }
        write!(f, "\nqueued for   {}", self.queue)?;
        write!(f, "\nworked for   {}", self.run)?;
        if let Some(Longest { run_id, name, ms }) = &self.longest {
            let time = number::milliseconds(*ms);
            write!(f, "\nat work      longest: {name} for {time} ({run_id})")?;
        }
        if self.wait.count > 0 {
            write!(f, "\nwaited for   {}", self.wait)?;
        }
        if self.back_off.count > 0 {
            let times = number::many(self.back_off.count, "time");
            write!(f, "\nheld up      {times} by a service: {}", self.back_off)?;
        }
        let Parallelism { achieved, possible } = self.parallelism;
        // Nothing is known of it before a run has ended.
        if possible > 0.0 {
            write!(f, "\nat once      {achieved} on average, of {possible} possible")?;
        }
        if let Some(opportunities) = &self.opportunities {
            write!(f, "\n{opportunities}")?;
        }
        let (usage, cost) =
            self.agents.values().fold((Usage::default(), Cost::NONE), |(usage, cost), spent| {
                (usage + spent.usage, cost + spent.cost)
            });
        // A reader who looks for the cost learns that there is none.
        let used = used(&usage, &cost).unwrap_or_else(|| "no tokens, no cost".to_owned());
        write!(f, "\nused         {used}")?;
        let agents = self.agents.iter().map(|(agent, spent)| (agent.clone(), spent));
        spent(f, "by agent", agents)?;
        let known = self.models.keys().any(|model| model != "configured");
        let models = self.models.iter().filter(|_| known);
        spent(
            f,
            "by model",
            models.map(|(model, spent)| (neutral::line(model).into_owned(), spent)),
        )?;
        let depths = self.depths.iter().map(|(depth, spent)| (format!("depth {depth}"), spent));
        spent(f, "by depth", depths.filter(|_| self.depths.len() > 1))?;
        for (at, (code, times)) in self.refusals.iter().enumerate() {
            let word = if at == 0 { "refused" } else { "" };
            write!(f, "\n{word:11}  {} × {code}", number::count(*times))?;
        }
        for (at, cause) in self.causes.iter().enumerate() {
            let word = if at == 0 { "failures" } else { "" };
            let Cause { runs, example, words, run_id, name, .. } = cause;
            write!(f, "\n{word:11}  {} × {words}", number::count(*runs))?;
            write!(f, "\n{:11}      e.g. {run_id}  {name}", "")?;
            if words != example {
                write!(f, ": {example}")?;
            }
        }
        Ok(())
    }
}

fn spent<'a>(
    f: &mut fmt::Formatter<'_>,
    word: &str,
    rows: impl Iterator<Item = (String, &'a Spent)>,
) -> fmt::Result {
    for (at, (name, spent)) in rows.enumerate() {
        let word = if at == 0 { word } else { "" };
        write!(f, "\n{word:11}  {name}: {}", number::many(spent.runs, "run"))?;
        if let Some(used) = used(&spent.usage, &spent.cost) {
            write!(f, "  {used}")?;
        }
    }
    Ok(())
}
