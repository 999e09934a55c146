//! The bounds that a plan meets first, as they stand on this computer before anything runs.

use std::collections::BTreeSet;
use std::sync::Arc;

use offshoot_config::Config;
use offshoot_display::{number, window_left};
use offshoot_host::runtimes::{EXEC, is_metered};
use offshoot_host::{DayBudget, SlotsTaken, known_walls};
use offshoot_model::{Timestamp, Window};
use offshoot_process::HostMemory;
use offshoot_spawner::{Clock, SystemClock};
use serde::Serialize;

use super::dry_run::PlannedAgent;
use super::plan::Plan;
use super::same_prompts::SamePrompt;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;

/// The bounds of a plan.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ahead {
    /// The most agents that run at once.
    at_once: u64,
    /// The setting that keeps the others in line; none where all can run at once.
    bound_by: Option<&'static str>,
    /// The slots that other trees of the user hold, and the most of all trees; none where they are not counted.
    host: Option<Host>,
    /// The amounts of `host.usdPerDay` and `host.tokensPerDay` that are spent today or reserved, a line for each that is set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    day: Vec<String>,
    /// The reason why the tree would not be opened today; none where it would be.
    day_refusal: Option<String>,
    /// The memory of the computer; none where the system does not tell.
    memory: Option<Memory>,
    /// The accounts of which no run starts before a reset.
    walls: Vec<Wall>,
    /// The windows of quotas that have not begun anew since they were last told of, as the newest tree here heard of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    windows: Vec<Window>,
    /// The prompts that one agent sends first, and others after its first answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    same_prompts: Vec<SamePrompt>,
    /// The runtimes whose requests to models are reserved before they leave.
    metered: Vec<Arc<str>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Host {
    max_concurrent: u32,
    taken: u32,
}

/// Amounts of memory, in bytes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Memory {
    available: u64,
    kept: u64,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Wall {
    runtime: Arc<str>,
    window: Option<Arc<str>>,
    #[serde(serialize_with = "offshoot_model::rfc3339")]
    until: Timestamp,
}

/// Returns the windows of the accounts of these runtimes of which the newest tree has heard.
fn windows(
    runtimes: &BTreeSet<Arc<str>>,
    now: Timestamp,
    cx: &Invocation,
) -> Result<Vec<Window>, Failure> {
    let Some(record) = Record::open(cx)? else { return Ok(Vec::new()) };
    let Some(newest) = record.summaries()?.pop() else { return Ok(Vec::new()) };
    let tree = record.tree(newest.root)?;
    let windows = tree.windows(newest.root, now);
    Ok(windows.filter(|window| runtimes.contains(&window.account.runtime)).cloned().collect())
}

impl Ahead {
    /// Looks at the computer and at what other trees of the user have told.
    pub(crate) fn look(
        plan: &Plan,
        agents: &[PlannedAgent],
        config: &Config,
        cx: &Invocation,
    ) -> Self {
        let runtime = |agent: &PlannedAgent| Arc::clone(agent.runtime(plan));
        let runtimes: BTreeSet<Arc<str>> = agents.iter().map(runtime).collect();
        let state_home = cx.environment.state_home.as_deref();
        let most_of_host = config.host().max_concurrent().map(|most| most.get());
        let taken = || SlotsTaken::of_user(state_home).unwrap_or_default().slots;
        let host = most_of_host.map(|max_concurrent| Host { max_concurrent, taken: taken() });
        // Programs have no account. Runs of several ones are bounded each by its own.
        let per_account = config.host().max_concurrent_per_account().map(|most| most.get());
        let is_one = runtimes.len() == 1 && !runtimes.contains(EXEC.name);
        let settings = config.root_settings(&plan.agent);
        // All pieces are on one level.
        let bounds = [
            ("maxConcurrent", Some(settings.max_concurrent())),
            ("maxConcurrentPerLevel", settings.max_concurrent_per_level()),
            ("host.maxConcurrent", most_of_host),
            ("host.maxConcurrentPerAccount", per_account.filter(|_| is_one)),
        ];
        let bounds = bounds.into_iter().filter_map(|(key, most)| Some((key, u64::from(most?))));
        let first = bounds.min_by_key(|(_, most)| *most);
        let all = agents.len() as u64;
        let first = first.filter(|(_, most)| *most < all);
        let memory = HostMemory::read().ok().map(|memory| Memory {
            available: memory.available,
            kept: config.host().memory_keep().of(memory.total),
        });
        let now = SystemClock.now();
        let day = DayBudget::lines(state_home, config.host(), now);
        let refused = DayBudget::refusal(state_home, config.host(), settings.budget.grant(), now);
        let day_refusal = match &refused {
            Ok(refused) => refused.as_ref().map(|error| format!("{error}: {}", error.hint())),
            Err(error) => Some(format!("what all trees spend in a day cannot be read: {error}")),
        };
        let walls = known_walls(state_home).into_iter();
        let walls = walls
            .filter(|wall| wall.until > now && runtimes.contains(&wall.account.runtime))
            .map(|wall| Wall {
                runtime: wall.account.runtime,
                window: wall.window,
                until: wall.until,
            });
        let windows = windows(&runtimes, now, cx).unwrap_or_default();
        let at_once = first.map_or(all, |(_, most)| most);
        Self {
            windows,
            same_prompts: SamePrompt::of(plan, agents, at_once, config),
            at_once,
            bound_by: first.map(|(key, _)| key),
            host,
            day: day.unwrap_or_default(),
            day_refusal,
            memory,
            walls: walls.collect(),
            metered: runtimes.into_iter().filter(|name| is_metered(config, name)).collect(),
        }
    }

    /// Returns a line for each bound, the one that is met first on top.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for Wall { runtime, window, until } in &self.walls {
            let window = window.as_deref().map(|window| format!(" ({window})")).unwrap_or_default();
            let until = number::moment(*until);
            lines.push(format!("quota: no run of {runtime} starts before {until}{window}"));
        }
        lines.extend(self.windows.iter().map(|window| format!("quota: {}", window_left(window))));
        if let Some(key) = self.bound_by {
            lines.push(format!("at once: {}, as many as {key} lets run", self.at_once));
        }
        if let Some(Host { max_concurrent, taken }) = self.host {
            lines.push(format!("host: {taken} of {max_concurrent} slots are taken by other trees"));
        }
        lines.extend(self.day.iter().map(|line| format!("day: {line}")));
        lines.extend(
            self.day_refusal.iter().map(|why| format!("day: refused before it starts: {why}")),
        );
        if let Some(Memory { available, kept }) = self.memory {
            let is_short = if available < kept {
                " (host.memoryKeep), so that only one run works at a time until there is more"
            } else {
                ""
            };
            let [available, kept] = [available, kept].map(number::bytes);
            lines.push(format!("memory: {available} available, {kept} kept{is_short}"));
        }
        lines.extend(self.same_prompts.iter().map(SamePrompt::line));
        if !self.metered.is_empty() {
            let names = self.metered.join(", ");
            lines.push(format!(
                "meter: requests of {names} to models are reserved before they leave"
            ));
        }
        lines
    }
}
