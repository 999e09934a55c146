//! `agents.defaults.subagents` and `agents.list[n].subagents`: the limits of a tree.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};

use offshoot_model::MicroUsd;

use crate::built_in;
use crate::ceiling::{agents, count, permission, tools, zero_is_endless};
use crate::origin::Valued;
use crate::section::section;
use crate::setting::{
    AllowAgents, Cleanup, Fraction, MaxChildren, MaxDepth, ModelChoice, OnInterrupt, OnParentEnd,
    ToolList,
};

section! {
    /// One agent's explicit values: `None` where nobody has said anything. What holds then is in
    /// [`built_in`](crate::built_in); what holds over a chain of agents is for the policy to say.
    pub struct SubagentSettings, foreign crate::foreign::SUBAGENTS => {
        /// Whether a sub-agent may spawn.
        pub allow_recursive_spawn: Option<Valued<bool>> = "allowRecursiveSpawn",
            built_in built_in::ALLOW_RECURSIVE_SPAWN, bound permission();
        /// Levels below the root, which is depth 0.
        pub max_depth: Option<Valued<MaxDepth>> = "maxDepth",
            built_in built_in::MAX_DEPTH, bound count();
        /// Running agents at all depths that are not blocked in a wait; the rest queue. The root's value counts the whole tree,
        /// that of an agent deeper in it what is below that agent.
        pub max_concurrent: Option<Valued<NonZeroU32>> = "maxConcurrent",
            built_in built_in::MAX_CONCURRENT, bound count();
        /// Running agents at each depth, counted like `maxConcurrent`.
        pub max_concurrent_per_level: Option<Valued<NonZeroU32>> = "maxConcurrentPerLevel",
            bound count();
        /// Live children of one session, queued ones included.
        pub max_children_per_agent: Option<Valued<MaxChildren>> = "maxChildrenPerAgent",
            bound count();
        /// Spawns asked for by agents over the life of the tree.
        pub max_spawns: Option<Valued<NonZeroU32>> = "maxSpawns",
            built_in built_in::MAX_SPAWNS, bound count();
        /// Spawns asked for by agents within a minute.
        pub max_spawns_per_minute: Option<Valued<NonZeroU32>> = "maxSpawnsPerMinute",
            bound count();
        /// Whether a chain may return to an agent with another in between.
        pub allow_cycles: Option<Valued<bool>> = "allowCycles",
            built_in built_in::ALLOW_CYCLES, bound permission();
        /// How often the same delegation may stand in one chain.
        pub max_identical_delegations: Option<Valued<NonZeroU32>> = "maxIdenticalDelegations",
            built_in built_in::MAX_IDENTICAL_DELEGATIONS, bound count();
        /// Ids of the agents that may be spawned, or `*` for any; unset is the agent itself.
        pub allow_agents: Option<Valued<AllowAgents>> = "allowAgents", bound agents();
        /// The model of sub-agents; unset inherits.
        pub model: Option<Valued<ModelChoice>> = "model";
        /// How hard sub-agents think, in the words of their runtime; unset inherits.
        pub thinking: Option<Valued<String>> = "thinking", such_as "low";
        /// Seconds a run may take, starting and running, and of CPU time while it waits; 0 is no limit.
        pub run_timeout_seconds: Option<Valued<u64>> = "runTimeoutSeconds",
            built_in built_in::RUN_TIMEOUT_SECONDS, bound zero_is_endless();
        /// Seconds without any sign of life while running; 0 is no limit.
        pub idle_timeout_seconds: Option<Valued<u64>> = "idleTimeoutSeconds",
            built_in built_in::IDLE_TIMEOUT_SECONDS, bound zero_is_endless();
        /// Seconds between the request to stop and the kill.
        pub grace_seconds: Option<Valued<u64>> = "graceSeconds",
            built_in built_in::GRACE_SECONDS, bound count();
        /// Bytes that a run may answer with; one that exceeds them is ended. 0 is no limit.
        pub max_output_bytes: Option<Valued<u64>> = "maxOutputBytes",
            built_in built_in::MAX_OUTPUT_BYTES, bound zero_is_endless();
        /// Minutes until an ended run is hidden; 0 is never.
        pub archive_after_minutes: Option<Valued<u64>> = "archiveAfterMinutes",
            built_in built_in::ARCHIVE_AFTER_MINUTES, bound zero_is_endless();
        /// Milliseconds for one attempt to deliver a result.
        pub announce_timeout_ms: Option<Valued<NonZeroU64>> = "announceTimeoutMs",
            built_in built_in::ANNOUNCE_TIMEOUT_MS, bound count();
        /// Bytes of a result that a parent gets whole; larger ones arrive as head, tail and reference.
        pub result_inline_bytes: Option<Valued<u64>> = "resultInlineBytes",
            built_in built_in::RESULT_INLINE_BYTES, bound count();
        /// What becomes of a session after delivery.
        pub cleanup: Option<Valued<Cleanup>> = "cleanup", built_in built_in::CLEANUP;
        /// What a parent's end means for its children.
        pub on_parent_end: Option<Valued<OnParentEnd>> = "onParentEnd",
            built_in built_in::ON_PARENT_END;
        /// What becomes of a run whose supervisor died; pieces of a map or fanout are run again.
        pub on_interrupt: Option<Valued<OnInterrupt>> = "onInterrupt",
            built_in built_in::ON_INTERRUPT;
        /// Rights of sub-agents.
        pub tools: Option<Valued<ToolList>> = "tools",
            built_in ToolList::default(), bound tools();
        /// Rights by depth, on top of `tools`.
        pub tools_by_depth: BTreeMap<u8, Valued<ToolList>> = "toolsByDepth", bound tools();
        /// What the tree may use up.
        pub budget: BudgetSettings = "budget";
        /// Seconds for the whole tree, queueing included; 0 or unset is no limit. The value of an agent deeper in the tree
        /// counts for what is below that agent, from its first child on.
        pub deadline_seconds: Option<Valued<u64>> = "deadlineSeconds", bound zero_is_endless();
        /// When an agent that cannot run is no longer tried.
        pub breaker: BreakerSettings = "breaker";
        /// How a run that failed for a passing reason is repeated.
        pub retries: RetrySettings = "retries";
    }
}

section! {
    /// What a tree may use up, and how spawns divide it.
    pub struct BudgetSettings, foreign &[] => {
        /// Tokens of all four kinds together; 0 is none at all.
        pub tokens: Option<Valued<u64>> = "tokens", bound count();
        /// Dollars; 0 is none at all.
        pub usd: Option<Valued<MicroUsd>> = "usd", bound count();
        /// The share of what is left that a spawn reserves when it asks for no amount.
        pub share: Option<Valued<Fraction>> = "share",
            built_in built_in::BUDGET_SHARE, bound count();
        /// The share that many children at once leave to their parent.
        pub keep: Option<Valued<Fraction>> = "keep", built_in built_in::BUDGET_KEEP;
        /// Whether a runtime whose cost nobody knows may run under a budget in dollars.
        pub allow_unknown_cost: Option<Valued<bool>> = "allowUnknownCost",
            built_in built_in::BUDGET_ALLOW_UNKNOWN_COST, bound permission();
    }
}

section! {
    /// When an agent that cannot run is no longer tried.
    pub struct BreakerSettings, foreign &[] => {
        /// Faults of the runtime in a row; 0 switches the breaker off.
        pub failures: Option<Valued<u32>> = "failures",
            built_in built_in::BREAKER_FAILURES, bound zero_is_endless();
        /// Seconds until one is tried again.
        pub cooldown_seconds: Option<Valued<u64>> = "cooldownSeconds",
            built_in built_in::BREAKER_COOLDOWN_SECONDS;
    }
}

section! {
    /// How a run that failed for a passing reason is repeated.
    pub struct RetrySettings, foreign &[] => {
        /// Attempts after the first. The built-in number holds where the runtime goes on where the run was, as Claude Code
        /// does; elsewhere it is 0.
        pub count: Option<Valued<u32>> = "count", built_in built_in::RETRIES_COUNT, bound count();
        /// Seconds before the first repetition; each further one waits twice as long.
        pub backoff_seconds: Option<Valued<u64>> = "backoffSeconds",
            built_in built_in::RETRIES_BACKOFF_SECONDS;
        /// How far a wait is moved at random, as a share of it.
        pub jitter: Option<Valued<Fraction>> = "jitter", built_in built_in::RETRIES_JITTER;
    }
}
