//! `agents.defaults.subagents` and `agents.list[n].subagents`: the limits of a tree.
//!
//! One row declares a limit: its key, its type, what it means, what holds where nothing is set, and which of two values is the
//! stricter. From it come the reading, the merging, the schema, the template, the listings, the ceilings, the fold over a chain
//! of agents, and the function of its name, which returns what holds.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};

use offshoot_model::{BudgetGrant, Cleanup, MicroUsd, RetryOn};
use serde_json::Value;

use crate::built_in;
use crate::ceiling::{
    agents, count, greater_is_stricter, permission, smaller_is_stricter, the_first_holds, tools,
    zero_is_endless,
};
use crate::field::{Difference, Field, Listing, Row, Unset};
use crate::origin::Valued;
use crate::section::section;
use crate::setting::{
    AllowAgents, Fraction, MaxChildren, MaxDepth, ModelChoice, OnCap, OnInterrupt, OnParentEnd,
    OnRepeat, OnWall, PrimeCache, Share, ToolList,
};

section! {
    /// One agent's explicit values: `None` where no layer sets one. The value that holds then is in
    /// [`built_in`](crate::built_in); the policy computes what holds over a chain of agents.
    pub struct SubagentSettings, foreign crate::foreign::SUBAGENTS => {
        /// True if a sub-agent may spawn.
        pub allow_recursive_spawn: Option<Valued<bool>> = "allowRecursiveSpawn",
            built_in built_in::ALLOW_RECURSIVE_SPAWN, limit permission();
        /// Levels below the root, which is depth 0.
        pub max_depth: Option<Valued<MaxDepth>> = "maxDepth",
            built_in built_in::MAX_DEPTH, limit count();
        /// Running agents at all depths that are not blocked in a wait; the rest queue. The root's value counts the whole tree,
        /// that of an agent deeper in it what is below that agent.
        pub max_concurrent: Option<Valued<NonZeroU32>> = "maxConcurrent",
            built_in built_in::MAX_CONCURRENT, limit count();
        /// Running agents at each depth, counted like `maxConcurrent`.
        pub max_concurrent_per_level: Option<Valued<NonZeroU32>> = "maxConcurrentPerLevel",
            limit count();
        /// Live children of one session, queued ones included.
        pub max_children_per_agent: Option<Valued<MaxChildren>> = "maxChildrenPerAgent",
            limit count();
        /// Spawns asked for by agents over the life of the tree.
        pub max_spawns: Option<Valued<NonZeroU32>> = "maxSpawns",
            built_in built_in::MAX_SPAWNS, limit count();
        /// Spawns asked for by agents within a minute.
        pub max_spawns_per_minute: Option<Valued<NonZeroU32>> = "maxSpawnsPerMinute",
            limit count();
        /// True if a chain may return to an agent with another in between.
        pub allow_cycles: Option<Valued<bool>> = "allowCycles",
            built_in built_in::ALLOW_CYCLES, limit permission();
        /// The number of times that the same delegation may stand in one chain.
        pub max_identical_delegations: Option<Valued<NonZeroU32>> = "maxIdenticalDelegations",
            built_in built_in::MAX_IDENTICAL_DELEGATIONS, limit count();
        /// True if a task with a type that is handed on goes by how earlier tasks of the type went, once there are ten that were done
        /// directly and ten that were delegated.
        pub learn_delegation: Option<Valued<bool>> = "learnDelegation",
            built_in built_in::LEARN_DELEGATION, limit permission();
        /// Ids of the agents that may be spawned, or `*` for any; unset is the agent itself.
        pub allow_agents: Option<Valued<AllowAgents>> = "allowAgents", bound agents();
        /// The model of sub-agents; unset inherits.
        pub model: Option<Valued<ModelChoice>> = "model";
        /// The effort of sub-agents' thinking, in the words of their runtime; unset inherits.
        pub thinking: Option<Valued<String>> = "thinking", such_as "low";
        /// The most seconds that a run may take from its start to its end. While it waits for children, the CPU time that it uses counts, and
        /// nothing else. 0 is no limit.
        pub run_timeout_seconds: Option<Valued<u64>> = "runTimeoutSeconds",
            built_in built_in::RUN_TIMEOUT_SECONDS, limit zero_is_endless();
        /// Seconds without any sign of life while running; 0 is no limit.
        pub idle_timeout_seconds: Option<Valued<u64>> = "idleTimeoutSeconds",
            built_in built_in::IDLE_TIMEOUT_SECONDS, limit zero_is_endless();
        /// The seconds that a run has for its end after it was asked to stop. Then its processes are killed.
        pub grace_seconds: Option<Valued<u64>> = "graceSeconds",
            built_in built_in::GRACE_SECONDS, limit count();
        /// Bytes that a run may answer with; one that exceeds them is ended. 0 is no limit.
        pub max_output_bytes: Option<Valued<u64>> = "maxOutputBytes",
            built_in built_in::MAX_OUTPUT_BYTES, limit zero_is_endless();
        /// Bytes of memory of a run: of the address space of each of its processes. A process that wants more is refused it. 0 or unset is
        /// no limit.
        pub max_memory_bytes: Option<Valued<u64>> = "maxMemoryBytes", limit zero_is_endless();
        /// Files that each process of a run may have open at once; 0 or unset is no limit.
        pub max_open_files: Option<Valued<u64>> = "maxOpenFiles", limit zero_is_endless();
        /// Seconds of CPU time that each process of a run may use; one that has used them is ended, and its run where it is the program of that. 0 or unset is no limit.
        pub max_cpu_seconds: Option<Valued<u64>> = "maxCpuSeconds", limit zero_is_endless();
        /// Minutes until an ended run is hidden; 0 is never.
        pub archive_after_minutes: Option<Valued<u64>> = "archiveAfterMinutes",
            built_in built_in::ARCHIVE_AFTER_MINUTES, bound zero_is_endless();
        /// Milliseconds for one attempt to deliver a result; one that its receiver has not taken by then comes again.
        pub announce_timeout_ms: Option<Valued<NonZeroU64>> = "announceTimeoutMs",
            built_in built_in::ANNOUNCE_TIMEOUT_MS, limit count();
        /// Bytes of a result that a parent gets whole; larger ones arrive as head, tail and reference.
        pub result_inline_bytes: Option<Valued<u64>> = "resultInlineBytes",
            built_in built_in::RESULT_INLINE_BYTES, limit count();
        /// The treatment of a session after delivery.
        pub cleanup: Option<Valued<Cleanup>> = "cleanup", built_in built_in::CLEANUP, limit smaller_is_stricter();
        /// The effect of a parent's end on its children.
        pub on_parent_end: Option<Valued<OnParentEnd>> = "onParentEnd",
            built_in built_in::ON_PARENT_END, limit greater_is_stricter();
        /// The treatment of a run whose supervisor died; pieces of a map or fanout are run again.
        pub on_interrupt: Option<Valued<OnInterrupt>> = "onInterrupt",
            built_in built_in::ON_INTERRUPT, limit greater_is_stricter();
        /// The treatment of a run that uses one tool with the same input ten times in a row.
        pub on_repeat: Option<Valued<OnRepeat>> = "onRepeat",
            built_in built_in::ON_REPEAT, limit greater_is_stricter();
        /// The order in which runs begin that send the same prompt of 4,096 tokens or more first. `auto`: one begins, and the others when its
        /// service has begun to answer it, after half a minute at the latest; `off`: all at once.
        pub prime_cache: Option<Valued<PrimeCache>> = "primeCache",
            built_in built_in::PRIME_CACHE, limit the_first_holds();
        /// Rights of sub-agents.
        pub tools: Option<Valued<ToolList>> = "tools",
            built_in ToolList::default(), bound tools();
        /// Rights by depth, on top of `tools`.
        pub tools_by_depth: BTreeMap<u8, Valued<ToolList>> = "toolsByDepth", bound tools();
        /// The amounts that the tree may use up.
        pub budget: BudgetSettings = "budget";
        /// The most seconds that the whole tree may take, with the time in line. Of an agent below the root: the most seconds that everything
        /// below that agent may take, from its first child on. 0 or unset is no limit.
        pub deadline_seconds: Option<Valued<u64>> = "deadlineSeconds", limit zero_is_endless();
        /// The limits at which an agent that cannot run is no longer started.
        pub breaker: BreakerSettings = "breaker";
        /// The repetition of a run that failed for a passing reason.
        pub retries: RetrySettings = "retries";
        /// The treatment of runs whose account has used up a quota of its service.
        pub quota: QuotaSettings = "quota";
    }
}

impl SubagentSettings {
    /// Narrows the limits by what an agent further down a chain has set, and returns the keys of the values that it took.
    pub fn narrow(&mut self, below: &Self) -> Vec<String> {
        let mut taken = Vec::new();
        Field::narrow(self, below, &Row::WHOLE, "", &mut |key| taken.push(key));
        taken
    }

    /// Returns the limits that are not those of `now`, with the stricter of the two. What is not set is what is built in.
    pub fn differences(&self, now: &Self) -> Vec<Difference> {
        let mut differences = Vec::new();
        self.differ(now, &Row::WHOLE, "", &mut differences);
        differences
    }

    /// Returns the keys of the limits.
    pub fn limits() -> Vec<String> {
        let mut keys = Vec::new();
        <Self as Field>::limits(&Row::WHOLE, "", &mut keys);
        keys
    }

    /// Returns whether these set a key, to the value and from the place that the others have.
    pub fn sets(&self, key: &str, others: &Self) -> bool {
        let value = |settings: &Self| settings.listed(key, Unset::Omitted);
        value(self).is_some_and(|own| value(others) == Some(own))
    }

    /// Returns the value behind a key, or what is built in. None where neither is there.
    pub fn value(&self, key: &str) -> Option<Valued<Value>> {
        self.listed(key, Unset::BuiltIn)
    }

    fn listed(&self, key: &str, unset: Unset) -> Option<Valued<Value>> {
        let mut listed = Listing::of(self, "", unset).into_iter();
        listed.find(|(name, _)| name == key).map(|(_, value)| value)
    }
}

impl BudgetSettings {
    /// Returns the amounts that are set.
    pub fn grant(&self) -> BudgetGrant {
        BudgetGrant { tokens: self.tokens(), usd: self.usd() }
    }
}

section! {
    /// The amounts that a tree may use up, and how spawns divide them.
    pub struct BudgetSettings, foreign &[] => {
        /// Tokens of all four kinds together. 0 permits nothing that uses any; not set, there is no limit.
        pub tokens: Option<Valued<u64>> = "tokens", limit count();
        /// Dollars. 0 permits nothing that costs; not set, there is no limit.
        pub usd: Option<Valued<MicroUsd>> = "usd", limit count();
        /// The part of the budget of its parent that a child gets when it asks for no amount: with 0.5 the half of what is left. `pool`: the
        /// children have no parts of their own, and each takes as much as it uses. Where it is not set, the pieces of a map or a fanout
        /// draw from a pool.
        pub share: Option<Valued<Share>> = "share",
            built_in built_in::BUDGET_SHARE, limit count();
        /// The part of a budget that stays with the parent where it is divided among many children at once.
        pub keep: Option<Valued<Fraction>> = "keep", built_in built_in::BUDGET_KEEP, limit greater_is_stricter();
        /// True if a runtime of unknown cost may run under a budget in dollars.
        pub allow_unknown_cost: Option<Valued<bool>> = "allowUnknownCost",
            built_in built_in::BUDGET_ALLOW_UNKNOWN_COST, limit permission();
        /// The treatment of a request to a model that costs more than its run has left. `stop`: the meter refuses it. `pause`: it waits for the
        /// operator, who gives more with `offshoot budget`; after 280 s (Gemini: 50 s) it is refused.
        pub on_cap: Option<Valued<OnCap>> = "onCap", built_in built_in::BUDGET_ON_CAP, limit greater_is_stricter();
    }
}

section! {
    /// The limits at which an agent that cannot run is no longer started.
    pub struct BreakerSettings, foreign &[] => {
        /// Faults of the runtime in a row; 0 switches the breaker off.
        pub failures: Option<Valued<u32>> = "failures",
            built_in built_in::BREAKER_FAILURES, limit zero_is_endless();
        /// Seconds until one is tried again.
        pub cooldown_seconds: Option<Valued<u64>> = "cooldownSeconds",
            built_in built_in::BREAKER_COOLDOWN_SECONDS, limit greater_is_stricter();
    }
}

section! {
    /// The repetition of a run that failed for a passing reason.
    pub struct RetrySettings, foreign &[] => {
        /// The most further attempts of a run whose attempt failed by a fault that may pass. The built-in number is for runtimes that go on
        /// where the attempt has ended, as Claude Code does; for all others it is 0.
        pub count: Option<Valued<u32>> = "count", built_in built_in::RETRIES_COUNT, limit count();
        /// Endings after which a run begins again, besides faults of its runtime that another attempt can mend: `exit:75`, `exit`
        /// for any code, `signal`, `timeout`, `idle`.
        pub on: Option<Valued<RetryOn>> = "on", limit the_first_holds();
        /// Seconds before the first repetition; each further one waits twice as long.
        pub backoff_seconds: Option<Valued<u64>> = "backoffSeconds",
            built_in built_in::RETRIES_BACKOFF_SECONDS, limit greater_is_stricter();
        /// The part of a wait by which it is moved at random, as a share of it.
        pub jitter: Option<Valued<Fraction>> = "jitter", built_in built_in::RETRIES_JITTER, limit the_first_holds();
    }
}

section! {
    /// The treatment of runs whose account has used up a quota of its service.
    pub struct QuotaSettings, foreign &[] => {
        /// `park`: a run that is refused waits in line until the reset, where it can be continued or may be repeated. `fail`: it
        /// fails. `fallback`: it goes over to another runtime of `model.fallbacks`, and waits where none is left. No other run of the
        /// account starts before the reset in all cases.
        pub on_wall: Option<Valued<OnWall>> = "onWall", built_in built_in::QUOTA_ON_WALL, limit greater_is_stricter();
        /// The part of each quota that is left alone: no run of an account starts before the reset while less than that is left. 0 starts
        /// runs until the service refuses them.
        pub keep: Option<Valued<Fraction>> = "keep", built_in built_in::QUOTA_KEEP, limit greater_is_stricter();
        /// Seconds for which the tree waits for the reset of a quota; then it is stopped, and can be resumed. 0 is no limit.
        pub max_park_seconds: Option<Valued<u64>> = "maxParkSeconds",
            built_in built_in::QUOTA_MAX_PARK_SECONDS, limit zero_is_endless();
        /// False if the time until a reset does not count for the deadlines of a tree. It never counts for the time of a run.
        pub deadline_counts_parked: Option<Valued<bool>> = "deadlineCountsParked",
            built_in built_in::QUOTA_DEADLINE_COUNTS_PARKED, limit greater_is_stricter();
    }
}
