//! The limits of a tree, as the configuration of a test.

use offshoot_config::{Config, Loader, OnInterrupt, Source, SourceKind};
use offshoot_model::Cleanup;

use super::seed::Seed;

/// The agents that a session may name, each with limits of its own.
pub(super) const AGENTS: [&str; 3] = ["a", "b", "c"];

/// The limits that one agent sets for the runs below it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Own {
    pub(super) max_concurrent: Option<u32>,
    pub(super) per_level: Option<u32>,
    pub(super) deadline_seconds: Option<u64>,
    pub(super) budget_tokens: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The limits that [`AGENTS`] set.
    pub(super) agents: [Own; 3],
    pub(super) max_concurrent: u32,
    pub(super) per_level: Option<u32>,
    pub(super) max_depth: u32,
    pub(super) max_spawns: u32,
    pub(super) run_timeout_seconds: u64,
    pub(super) idle_timeout_seconds: u64,
    pub(super) grace_seconds: u64,
    pub(super) deadline_seconds: u64,
    pub(super) cascade: bool,
    pub(super) budget_tokens: Option<u64>,
    pub(super) budget_usd: Option<u64>,
    /// True if pieces draw from one pool as they start; false if each gets its part as it is admitted.
    pub(super) pools: bool,
    pub(super) breaker_failures: u32,
    pub(super) cleanup: Option<Cleanup>,
    pub(super) retries: u32,
    /// Endings after which a run begins again.
    pub(super) retry_on: &'static str,
    /// The fate of interrupted runs, where it is configured.
    pub(super) on_interrupt: Option<OnInterrupt>,
    /// True if a run that uses one tool again and again is stopped.
    pub(super) stops_repeats: bool,
    /// True if the runtime can go on where it was.
    pub(super) resumes: bool,
    /// True if runs that meet the wall of a quota, and those behind it, fail.
    pub(super) fails_at_walls: bool,
    /// True if a request that is more than its run has left waits for more.
    pub(super) pauses_at_cap: bool,
    /// True if another runtime may take runs over, at a wall too where runs do not fail there.
    pub(super) falls_back: bool,
    /// The time for which the tree waits for a reset.
    pub(super) max_park_seconds: u64,
    /// True if the time until a reset does not count for deadlines.
    pub(super) spares_parked: bool,
    /// The part of each quota that is left alone, in percent.
    pub(super) keeps_percent: u8,
    /// True if what runs use goes through the meter.
    pub(super) metered: bool,
    /// The part of the memory that stays available, in percent.
    pub(super) memory_percent: u8,
    /// True if the tree takes turns with others in probing an account.
    pub(super) shares_probes: bool,
    /// True if runs of one agent send a long prompt first.
    pub(super) long_prompts: bool,
    /// The slots that all trees of the user share; 0 where the tree counts alone.
    pub(super) host_slots: u32,
    /// The most tokens that a tree may be given.
    pub(super) ceiling_tokens: Option<u64>,
    /// The slots that the runs of one account share over all trees of the user; 0 where the tree counts alone.
    pub(super) account_slots: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            agents: [Own::default(); 3],
            max_concurrent: 8,
            per_level: None,
            max_depth: 5,
            max_spawns: 64,
            run_timeout_seconds: 0,
            idle_timeout_seconds: 0,
            grace_seconds: 5,
            deadline_seconds: 0,
            cascade: false,
            budget_tokens: None,
            budget_usd: None,
            pools: false,
            breaker_failures: 3,
            cleanup: None,
            retries: 0,
            retry_on: "",
            on_interrupt: None,
            stops_repeats: false,
            resumes: false,
            fails_at_walls: false,
            falls_back: false,
            pauses_at_cap: false,
            max_park_seconds: 0,
            spares_parked: false,
            keeps_percent: 0,
            metered: false,
            memory_percent: 0,
            shares_probes: false,
            long_prompts: false,
            host_slots: 0,
            ceiling_tokens: None,
            account_slots: 0,
        }
    }
}

impl Limits {
    pub(super) fn random(dice: &mut Seed) -> Self {
        let mut own = || Own {
            max_concurrent: dice.one_in(2).then(|| 1 + dice.below(3) as u32),
            per_level: dice.one_in(4).then(|| 1 + dice.below(2) as u32),
            deadline_seconds: dice.one_in(3).then(|| 5 + dice.below(60)),
            budget_tokens: None,
        };
        Self {
            agents: [own(), own(), own()],
            max_concurrent: 1 + dice.below(4) as u32,
            per_level: dice.one_in(3).then(|| 1 + dice.below(3) as u32),
            max_depth: 1 + dice.below(5) as u32,
            max_spawns: 1 + dice.below(40) as u32,
            run_timeout_seconds: if dice.one_in(2) { 1 + dice.below(30) } else { 0 },
            idle_timeout_seconds: if dice.one_in(3) { 1 + dice.below(20) } else { 0 },
            grace_seconds: dice.below(5),
            deadline_seconds: if dice.one_in(5) { 10 + dice.below(300) } else { 0 },
            cascade: dice.one_in(4),
            budget_usd: None,
            budget_tokens: dice.one_in(2).then(|| 100 + dice.below(5_000)),
            pools: dice.one_in(2),
            breaker_failures: 1 + dice.below(3) as u32,
            cleanup: None,
            retries: dice.below(3) as u32,
            retry_on: dice.pick(&["", "", "exit:7,timeout", "exit,signal,timeout,idle"]),
            stops_repeats: dice.one_in(4),
            on_interrupt: dice.pick(&[None, Some(OnInterrupt::Lost), Some(OnInterrupt::Rerun)]),
            resumes: dice.one_in(2),
            fails_at_walls: dice.one_in(4),
            falls_back: false,
            pauses_at_cap: false,
            max_park_seconds: if dice.one_in(4) { 5 + dice.below(100) } else { 0 },
            spares_parked: dice.one_in(2),
            keeps_percent: 0,
            metered: dice.one_in(5),
            memory_percent: 0,
            shares_probes: false,
            long_prompts: false,
            host_slots: 0,
            ceiling_tokens: None,
            account_slots: 0,
        }
    }

    /// Returns the limits that an agent sets for the runs below it.
    pub(super) fn own(&self, agent: &str) -> Own {
        let mut said = AGENTS.into_iter().zip(self.agents);
        said.find(|(id, _)| *id == agent).map(|(_, own)| own).unwrap_or_default()
    }

    pub(super) fn config(self) -> Config {
        let on_wall = match (self.fails_at_walls, self.falls_back) {
            (true, _) => "fail",
            (false, true) => "fallback",
            (false, false) => "park",
        };
        let mut settings = vec![
            ("allowRecursiveSpawn", "true".to_owned()),
            ("maxConcurrent", self.max_concurrent.to_string()),
            ("maxDepth", self.max_depth.to_string()),
            ("maxSpawns", self.max_spawns.to_string()),
            ("runTimeoutSeconds", self.run_timeout_seconds.to_string()),
            ("idleTimeoutSeconds", self.idle_timeout_seconds.to_string()),
            ("graceSeconds", self.grace_seconds.to_string()),
            ("deadlineSeconds", self.deadline_seconds.to_string()),
            ("onParentEnd", if self.cascade { "cascade" } else { "letFinish" }.to_owned()),
            ("onRepeat", if self.stops_repeats { "stop" } else { "warn" }.to_owned()),
            ("budget.share", if self.pools { "pool" } else { "0.5" }.to_owned()),
            ("budget.onCap", if self.pauses_at_cap { "pause" } else { "stop" }.to_owned()),
            ("breaker.failures", self.breaker_failures.to_string()),
            ("quota.onWall", on_wall.to_owned()),
            ("quota.maxParkSeconds", self.max_park_seconds.to_string()),
            ("quota.keep", format!("0.{:02}", self.keeps_percent)),
            ("quota.deadlineCountsParked", (!self.spares_parked).to_string()),
            ("breaker.cooldownSeconds", "5".to_owned()),
            ("retries.count", self.retries.to_string()),
            ("retries.on", self.retry_on.to_owned()),
            ("retries.backoffSeconds", "2".to_owned()),
        ];
        settings.extend(self.per_level.map(|cap| ("maxConcurrentPerLevel", cap.to_string())));
        settings.extend(self.budget_tokens.map(|tokens| ("budget.tokens", tokens.to_string())));
        settings.extend(self.budget_usd.map(|usd| ("budget.usd", usd.to_string())));
        let word = |cleanup: Cleanup| if cleanup.is_keep() { "keep" } else { "delete" };
        settings.extend(self.cleanup.map(|cleanup| ("cleanup", word(cleanup).to_owned())));
        let word = |fate: OnInterrupt| if fate == OnInterrupt::Lost { "lost" } else { "rerun" };
        settings.extend(self.on_interrupt.map(|fate| ("onInterrupt", word(fate).to_owned())));
        let own = |settings: &mut String, (id, own): (&str, Own)| {
            *settings += &format!("[[agents.list]]\nid = \"{id}\"\n[agents.list.subagents]\n");
            let values = [
                ("maxConcurrent", own.max_concurrent.map(u64::from)),
                ("maxConcurrentPerLevel", own.per_level.map(u64::from)),
                ("deadlineSeconds", own.deadline_seconds),
                ("budget.tokens", own.budget_tokens),
            ];
            for (key, value) in values {
                *settings += &value.map(|value| format!("{key} = {value}\n")).unwrap_or_default();
            }
        };
        let mut text = "[agents.defaults.subagents]\nallowAgents = [\"*\"]\n".to_owned();
        AGENTS.into_iter().zip(self.agents).for_each(|agent| own(&mut text, agent));
        text += &format!("[host]\nmemoryKeep = 0.{:02}\n", self.memory_percent);
        let shared = Some(self.host_slots).filter(|slots| *slots > 0);
        text += &shared.map(|slots| format!("maxConcurrent = {slots}\n")).unwrap_or_default();
        let shared = Some(self.account_slots).filter(|slots| *slots > 0);
        let line = |slots| format!("maxConcurrentPerAccount = {slots}\n");
        text += &shared.map(line).unwrap_or_default();
        let ceiling = |tokens| format!("[ceiling]\nbudget.tokens = {tokens}\n");
        text += &self.ceiling_tokens.map(ceiling).unwrap_or_default();
        let source = Source::new(SourceKind::User, "test.toml", text);
        let set = |loader: Loader, (key, value): (&str, String)| {
            loader.flag(format!("agents.defaults.subagents.{key}"), value, "test")
        };
        let loader = settings.into_iter().fold(Loader::new().file(source), set);
        loader.load().expect("the limits of a test are within bounds")
    }
}
