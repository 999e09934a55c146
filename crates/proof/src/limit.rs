//! The limits, with what happens at each and how it is proved.

use offshoot_audit::Rule;
use offshoot_model::RefusalCode;

use self::AtLimit::{Ended, Manner, Refused, Waits};
use crate::probes::{Tried, faults, money, numbers, slots, times};
use crate::trial::Trial;

/// A limit of a tree.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// The key below `agents.defaults.subagents`; one that begins with `host.` is a key of the whole configuration.
    pub key: &'static str,
    /// The effect on a run that asks for more, or reaches it.
    pub at: AtLimit,
    /// The rule of the audit that counts it again from the record; none where a record does not say it.
    pub audited: Option<Rule>,
    /// The way in which it is proved.
    pub proof: Proof,
}

/// The effect of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtLimit {
    /// The request is refused with this code.
    Refused(RefusalCode),
    /// The run stands in line.
    Waits,
    /// The run ends with this code.
    Ended(&'static str),
    /// A setting that limits no amount, but says how something is done.
    Manner(&'static str),
}

/// The proof of a limit, besides the audit.
#[derive(Clone, Copy, Debug)]
pub enum Proof {
    /// A probe of this crate.
    Probe(Try),
    /// A probe with two trees of a user, which the crate `host` makes.
    Trees,
    /// A test of this name.
    Test(&'static str),
}

/// The way to try one limit.
#[derive(Clone, Copy, derive_more::Debug)]
#[debug("Try")]
pub struct Try(pub(crate) for<'a> fn(&'a Trial, &'static str) -> Tried<'a>);

/// All limits, in the order of the configuration. A test asks for each key of it.
pub const LIMITS: &[Limit] = &[
    tried(
        limit("allowRecursiveSpawn", Refused(RefusalCode::RecursionDisabled), Some(Rule::Depth)),
        numbers::recursion,
    ),
    tried(limit("maxDepth", Refused(RefusalCode::DepthLimit), Some(Rule::Depth)), numbers::depth),
    tried(limit("maxConcurrent", Waits, Some(Rule::Concurrency)), slots::in_all),
    tried(limit("maxConcurrentPerLevel", Waits, Some(Rule::Concurrency)), slots::per_level),
    tried(
        limit("maxChildrenPerAgent", Refused(RefusalCode::ChildrenLimit), Some(Rule::Children)),
        numbers::children,
    ),
    tried(
        limit("maxSpawns", Refused(RefusalCode::SpawnLimit), Some(Rule::Spawns)),
        numbers::spawns,
    ),
    tried(
        limit("maxSpawnsPerMinute", Refused(RefusalCode::SpawnRate), Some(Rule::SpawnRate)),
        numbers::rate,
    ),
    tried(limit("allowCycles", Refused(RefusalCode::Cycle), Some(Rule::Cycles)), numbers::cycles),
    tried(
        limit("maxIdenticalDelegations", Refused(RefusalCode::RepeatLimit), Some(Rule::Cycles)),
        numbers::repeats,
    ),
    tested(
        limit(
            "learnDelegation",
            Manner("a task of a known type goes to the agent that did most of them well"),
            None,
        ),
        "crates/cli/tests/cli/learning.rs::what_was_learned_decides_where_it_is_asked_for",
    ),
    tried(limit("runTimeoutSeconds", Ended("timeout"), Some(Rule::Time)), times::of_a_run),
    tried(limit("idleTimeoutSeconds", Ended("idle"), Some(Rule::Time)), times::of_silence),
    tested(
        limit("graceSeconds", Ended("cancelled"), None),
        "crates/cli/tests/cli/endings.rs::a_subtree_of_several_runtimes_ends_within_its_grace",
    ),
    tested(
        limit("maxOutputBytes", Ended("output_limit"), None),
        "crates/cli/tests/cli/disk.rs::an_answer_larger_than_the_disk_is_a_failure",
    ),
    tested(
        limit(
            "maxMemoryBytes",
            Manner(
                "memory beyond it is refused to the program; killed for want of memory it ends: `out_of_memory`",
            ),
            Some(Rule::Rights),
        ),
        "crates/cli/tests/cli/memory.rs::memory_beyond_the_limit_is_refused_to_the_program",
    ),
    tested(
        limit("maxOpenFiles", Ended("open_file_limit"), Some(Rule::Rights)),
        "crates/cli/tests/cli/memory.rs::open_files_that_are_used_up_have_a_name",
    ),
    tested(
        limit("maxCpuSeconds", Ended("cpu_limit"), Some(Rule::Rights)),
        "crates/cli/tests/cli/memory.rs::cpu_time_that_is_used_up_has_a_name",
    ),
    tested(
        limit(
            "announceTimeoutMs",
            Manner("a result that was not taken comes again"),
            Some(Rule::Delivery),
        ),
        "crates/spawner/tests/suite/turns.rs",
    ),
    tested(
        limit(
            "resultInlineBytes",
            Manner("a larger result arrives as head, tail and reference"),
            None,
        ),
        "crates/spawner/tests/suite/turns.rs",
    ),
    tested(
        limit("cleanup", Manner("the folder of the run is removed"), None),
        "crates/spawner/src/machine/tests/cleanup.rs",
    ),
    tested(
        limit(
            "onParentEnd",
            Manner("children end with their parent, or are let finish"),
            Some(Rule::States),
        ),
        "crates/cli/tests/cli/endings.rs::children_that_are_let_finish_outlive_their_parent",
    ),
    tested(
        limit(
            "onInterrupt",
            Manner("a run that was interrupted is lost, or begins again"),
            Some(Rule::States),
        ),
        "crates/cli/tests/cli/resume.rs::a_program_that_was_interrupted_is_lost_unless_it_may_run_again",
    ),
    tested(
        limit("onRepeat", Ended("repeated"), None),
        "crates/spawner/src/machine/tests/repeats.rs::a_tool_used_ten_times_in_a_row_is_named_once_and_stops_where_it_is_to",
    ),
    tested(
        limit(
            "primeCache",
            Manner(
                "of runs with the same long prompt one begins, and the others when it is answered",
            ),
            None,
        ),
        "crates/spawner/src/machine/tests/priming.rs::one_begins_and_the_others_when_it_is_answered",
    ),
    tried(limit("budget.tokens", Ended("budget"), Some(Rule::Budget)), money::tokens),
    tried(limit("budget.usd", Ended("budget"), Some(Rule::Budget)), money::usd),
    tested(
        limit("budget.share", Refused(RefusalCode::BudgetExhausted), Some(Rule::Budget)),
        "crates/spawner/src/machine/tests/budgets.rs::pieces_of_a_pool_start_while_it_lasts",
    ),
    tested(
        limit("budget.keep", Refused(RefusalCode::BudgetExhausted), Some(Rule::Budget)),
        "crates/spawner/src/machine/tests/budgets.rs::pieces_divide_what_is_left_less_what_is_kept",
    ),
    tested(
        limit("budget.allowUnknownCost", Refused(RefusalCode::CostUnbounded), None),
        "crates/policy/tests/admission/budgets.rs::an_unknown_cost_can_be_allowed",
    ),
    tested(
        limit(
            "budget.onCap",
            Manner("the request is refused, or waits for the operator"),
            Some(Rule::Budget),
        ),
        "crates/cli/tests/cli/metered.rs::at_the_cap_a_program_waits_until_it_is_given_more",
    ),
    tried(limit("deadlineSeconds", Ended("deadline"), Some(Rule::Time)), times::of_a_tree),
    tried(
        limit("breaker.failures", Refused(RefusalCode::BreakerOpen), Some(Rule::Breaker)),
        faults::breaker,
    ),
    tested(
        limit("breaker.cooldownSeconds", Waits, Some(Rule::Breaker)),
        "crates/spawner/src/machine/tests/budgets.rs::a_breaker_holds_back_the_queue_and_lets_one_probe",
    ),
    tried(
        limit("retries.count", Manner("the run ends with its fault"), Some(Rule::Retries)),
        faults::retries,
    ),
    tested(
        limit("retries.on", Manner("other endings are final"), Some(Rule::Retries)),
        "crates/spawner/src/machine/tests/retries.rs::nothing_else_is_tried_again",
    ),
    tested(
        limit("retries.backoffSeconds", Waits, None),
        "crates/spawner/src/machine/retry.rs::waits_double_and_are_moved_within_their_share",
    ),
    tested(
        limit("retries.jitter", Waits, None),
        "crates/spawner/src/machine/retry.rs::waits_double_and_are_moved_within_their_share",
    ),
    tested(
        limit("quota.onWall", Waits, Some(Rule::Quota)),
        "crates/cli/tests/cli/walls.rs::no_start_after_the_wall",
    ),
    tested(
        limit("quota.keep", Waits, Some(Rule::Quota)),
        "crates/cli/tests/cli/walls.rs::a_part_of_a_quota_is_kept",
    ),
    tested(
        limit("quota.maxParkSeconds", Ended("park_limit"), Some(Rule::Time)),
        "crates/spawner/src/machine/tests/walls.rs::a_tree_that_waits_for_too_long_is_stopped",
    ),
    tested(
        limit(
            "quota.deadlineCountsParked",
            Manner("deadlines count the wait for a reset, or spare it"),
            Some(Rule::Time),
        ),
        "crates/spawner/src/machine/tests/walls.rs::deadlines_count_the_wait_unless_they_spare_it_and_times_of_runs_never_do",
    ),
    tested(
        limit("host.memoryKeep", Waits, Some(Rule::Memory)),
        "crates/cli/tests/cli/memory.rs::memory_waits_and_never_refuses_the_only_run",
    ),
    limit("host.maxConcurrent", Waits, Some(Rule::Concurrency)),
    limit("host.maxConcurrentPerAccount", Waits, Some(Rule::Concurrency)),
    limit(
        "host.usdPerDay",
        Manner("a tree whose budget is more than the day has left is not opened"),
        None,
    ),
    limit(
        "host.tokensPerDay",
        Manner("a tree whose budget is more than the day has left is not opened"),
        None,
    ),
];

/// A limit that two trees try, unless more is said of it.
const fn limit(key: &'static str, at: AtLimit, audited: Option<Rule>) -> Limit {
    Limit { key, at, audited, proof: Proof::Trees }
}

/// A limit that this probe tries.
const fn tried(limit: Limit, probe: for<'a> fn(&'a Trial, &'static str) -> Tried<'a>) -> Limit {
    Limit { proof: Proof::Probe(Try(probe)), ..limit }
}

/// A limit that the test of this name proves.
const fn tested(limit: Limit, test: &'static str) -> Limit {
    Limit { proof: Proof::Test(test), ..limit }
}

#[cfg(test)]
mod tests {
    use offshoot_config::{HostSettings, SubagentSettings};

    use super::*;

    #[test]
    fn each_limit_of_the_configuration_has_its_row() {
        let keys: Vec<&str> = LIMITS.iter().map(|limit| limit.key).collect();
        let mut declared = SubagentSettings::limits();
        declared.extend(HostSettings::keys().map(|key| format!("host.{key}")));
        let mut rows: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        declared.sort();
        rows.sort();
        assert_eq!(rows, declared);
    }

    #[test]
    fn each_test_that_is_named_stands_where_it_is_said_to() {
        let workspace = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for limit in LIMITS {
            let Proof::Test(place) = limit.proof else { continue };
            let (file, name) = place.split_once("::").unwrap_or((place, ""));
            let text = std::fs::read_to_string(workspace.join(file))
                .unwrap_or_else(|error| panic!("{}: {file}: {error}", limit.key));
            assert!(text.contains(&format!("fn {name}")), "{}: {place}", limit.key);
        }
    }
}
