//! The limits, with what happens at each and how it is proved.

use futures_util::future::BoxFuture;
use offshoot_audit::Rule;
use offshoot_model::RefusalCode;

use crate::error::ProofError;
use crate::probe::Probe;
use crate::probes::{faults, money, numbers, slots, times};
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
pub struct Try(
    pub(crate) for<'a> fn(&'a Trial, &'static str) -> BoxFuture<'a, Result<Probe, ProofError>>,
);

/// All limits, in the order of the configuration. A test asks for each key of it.
pub const LIMITS: &[Limit] = &[
    limit(
        "allowRecursiveSpawn",
        AtLimit::Refused(RefusalCode::RecursionDisabled),
        Some(Rule::Depth),
        Proof::Probe(Try(numbers::recursion)),
    ),
    limit(
        "maxDepth",
        AtLimit::Refused(RefusalCode::DepthLimit),
        Some(Rule::Depth),
        Proof::Probe(Try(numbers::depth)),
    ),
    limit(
        "maxConcurrent",
        AtLimit::Waits,
        Some(Rule::Concurrency),
        Proof::Probe(Try(slots::in_all)),
    ),
    limit(
        "maxConcurrentPerLevel",
        AtLimit::Waits,
        Some(Rule::Concurrency),
        Proof::Probe(Try(slots::per_level)),
    ),
    limit(
        "maxChildrenPerAgent",
        AtLimit::Refused(RefusalCode::ChildrenLimit),
        Some(Rule::Children),
        Proof::Probe(Try(numbers::children)),
    ),
    limit(
        "maxSpawns",
        AtLimit::Refused(RefusalCode::SpawnLimit),
        Some(Rule::Spawns),
        Proof::Probe(Try(numbers::spawns)),
    ),
    limit(
        "maxSpawnsPerMinute",
        AtLimit::Refused(RefusalCode::SpawnRate),
        Some(Rule::SpawnRate),
        Proof::Probe(Try(numbers::rate)),
    ),
    limit(
        "allowCycles",
        AtLimit::Refused(RefusalCode::Cycle),
        Some(Rule::Cycles),
        Proof::Probe(Try(numbers::cycles)),
    ),
    limit(
        "maxIdenticalDelegations",
        AtLimit::Refused(RefusalCode::RepeatLimit),
        Some(Rule::Cycles),
        Proof::Probe(Try(numbers::repeats)),
    ),
    limit(
        "learnDelegation",
        AtLimit::Manner("a task of a known type goes to the agent that did most of them well"),
        None,
        Proof::Test(
            "crates/cli/tests/cli/learning.rs::what_was_learned_decides_where_it_is_asked_for",
        ),
    ),
    limit(
        "runTimeoutSeconds",
        AtLimit::Ended("timeout"),
        Some(Rule::Time),
        Proof::Probe(Try(times::of_a_run)),
    ),
    limit(
        "idleTimeoutSeconds",
        AtLimit::Ended("idle"),
        Some(Rule::Time),
        Proof::Probe(Try(times::of_silence)),
    ),
    limit(
        "graceSeconds",
        AtLimit::Ended("cancelled"),
        None,
        Proof::Test(
            "crates/cli/tests/cli/endings.rs::a_subtree_of_several_runtimes_ends_within_its_grace",
        ),
    ),
    limit(
        "maxOutputBytes",
        AtLimit::Ended("output_limit"),
        None,
        Proof::Test("crates/cli/tests/cli/disk.rs::an_answer_larger_than_the_disk_is_a_failure"),
    ),
    limit(
        "maxMemoryBytes",
        AtLimit::Manner(
            "memory beyond it is refused to the program; killed for want of memory it ends: `out_of_memory`",
        ),
        Some(Rule::Rights),
        Proof::Test(
            "crates/cli/tests/cli/memory.rs::memory_beyond_the_limit_is_refused_to_the_program",
        ),
    ),
    limit(
        "maxOpenFiles",
        AtLimit::Ended("open_file_limit"),
        Some(Rule::Rights),
        Proof::Test("crates/cli/tests/cli/memory.rs::open_files_that_are_used_up_have_a_name"),
    ),
    limit(
        "maxCpuSeconds",
        AtLimit::Ended("cpu_limit"),
        Some(Rule::Rights),
        Proof::Test("crates/cli/tests/cli/memory.rs::cpu_time_that_is_used_up_has_a_name"),
    ),
    limit(
        "announceTimeoutMs",
        AtLimit::Manner("a result that was not taken comes again"),
        Some(Rule::Delivery),
        Proof::Test("crates/spawner/tests/suite/turns.rs"),
    ),
    limit(
        "resultInlineBytes",
        AtLimit::Manner("a larger result arrives as head, tail and reference"),
        None,
        Proof::Test("crates/spawner/tests/suite/turns.rs"),
    ),
    limit(
        "cleanup",
        AtLimit::Manner("the folder of the run is removed"),
        None,
        Proof::Test("crates/spawner/src/machine/tests/cleanup.rs"),
    ),
    limit(
        "onParentEnd",
        AtLimit::Manner("children end with their parent, or are let finish"),
        Some(Rule::States),
        Proof::Test(
            "crates/cli/tests/cli/endings.rs::children_that_are_let_finish_outlive_their_parent",
        ),
    ),
    limit(
        "onInterrupt",
        AtLimit::Manner("a run that was interrupted is lost, or begins again"),
        Some(Rule::States),
        Proof::Test(
            "crates/cli/tests/cli/resume.rs::a_program_that_was_interrupted_is_lost_unless_it_may_run_again",
        ),
    ),
    limit(
        "onRepeat",
        AtLimit::Ended("repeated"),
        None,
        Proof::Test(
            "crates/spawner/src/machine/tests/repeats.rs::a_tool_used_ten_times_in_a_row_is_named_once_and_stops_where_it_is_to",
        ),
    ),
    limit(
        "primeCache",
        AtLimit::Manner(
            "of runs with the same long prompt one begins, and the others when it is answered",
        ),
        None,
        Proof::Test(
            "crates/spawner/src/machine/tests/priming.rs::one_begins_and_the_others_when_it_is_answered",
        ),
    ),
    limit(
        "budget.tokens",
        AtLimit::Ended("budget"),
        Some(Rule::Budget),
        Proof::Probe(Try(money::tokens)),
    ),
    limit(
        "budget.usd",
        AtLimit::Ended("budget"),
        Some(Rule::Budget),
        Proof::Probe(Try(money::usd)),
    ),
    limit(
        "budget.share",
        AtLimit::Refused(RefusalCode::BudgetExhausted),
        Some(Rule::Budget),
        Proof::Test(
            "crates/spawner/src/machine/tests/budgets.rs::pieces_of_a_pool_start_while_it_lasts",
        ),
    ),
    limit(
        "budget.keep",
        AtLimit::Refused(RefusalCode::BudgetExhausted),
        Some(Rule::Budget),
        Proof::Test(
            "crates/spawner/src/machine/tests/budgets.rs::pieces_divide_what_is_left_less_what_is_kept",
        ),
    ),
    limit(
        "budget.allowUnknownCost",
        AtLimit::Refused(RefusalCode::CostUnbounded),
        None,
        Proof::Test("crates/policy/tests/admission/budgets.rs::an_unknown_cost_can_be_allowed"),
    ),
    limit(
        "budget.onCap",
        AtLimit::Manner("the request is refused, or waits for the operator"),
        Some(Rule::Budget),
        Proof::Test(
            "crates/cli/tests/cli/metered.rs::at_the_cap_a_program_waits_until_it_is_given_more",
        ),
    ),
    limit(
        "deadlineSeconds",
        AtLimit::Ended("deadline"),
        Some(Rule::Time),
        Proof::Probe(Try(times::of_a_tree)),
    ),
    limit(
        "breaker.failures",
        AtLimit::Refused(RefusalCode::BreakerOpen),
        Some(Rule::Breaker),
        Proof::Probe(Try(faults::breaker)),
    ),
    limit(
        "breaker.cooldownSeconds",
        AtLimit::Waits,
        Some(Rule::Breaker),
        Proof::Test(
            "crates/spawner/src/machine/tests/budgets.rs::a_breaker_holds_back_the_queue_and_lets_one_probe",
        ),
    ),
    limit(
        "retries.count",
        AtLimit::Manner("the run ends with its fault"),
        Some(Rule::Retries),
        Proof::Probe(Try(faults::retries)),
    ),
    limit(
        "retries.on",
        AtLimit::Manner("other endings are final"),
        Some(Rule::Retries),
        Proof::Test("crates/spawner/src/machine/tests/retries.rs::nothing_else_is_tried_again"),
    ),
    limit(
        "retries.backoffSeconds",
        AtLimit::Waits,
        None,
        Proof::Test(
            "crates/spawner/src/machine/retry.rs::waits_double_and_are_moved_within_their_share",
        ),
    ),
    limit(
        "retries.jitter",
        AtLimit::Waits,
        None,
        Proof::Test(
            "crates/spawner/src/machine/retry.rs::waits_double_and_are_moved_within_their_share",
        ),
    ),
    limit(
        "quota.onWall",
        AtLimit::Waits,
        Some(Rule::Quota),
        Proof::Test("crates/cli/tests/cli/walls.rs::no_start_after_the_wall"),
    ),
    limit(
        "quota.keep",
        AtLimit::Waits,
        Some(Rule::Quota),
        Proof::Test("crates/cli/tests/cli/walls.rs::a_part_of_a_quota_is_kept"),
    ),
    limit(
        "quota.maxParkSeconds",
        AtLimit::Ended("park_limit"),
        Some(Rule::Time),
        Proof::Test(
            "crates/spawner/src/machine/tests/walls.rs::a_tree_that_waits_for_too_long_is_stopped",
        ),
    ),
    limit(
        "quota.deadlineCountsParked",
        AtLimit::Manner("deadlines count the wait for a reset, or spare it"),
        Some(Rule::Time),
        Proof::Test(
            "crates/spawner/src/machine/tests/walls.rs::deadlines_count_the_wait_unless_they_spare_it_and_times_of_runs_never_do",
        ),
    ),
    limit(
        "host.memoryKeep",
        AtLimit::Waits,
        Some(Rule::Memory),
        Proof::Test("crates/cli/tests/cli/memory.rs::memory_waits_and_never_refuses_the_only_run"),
    ),
    limit("host.maxConcurrent", AtLimit::Waits, Some(Rule::Concurrency), Proof::Trees),
    limit("host.maxConcurrentPerAccount", AtLimit::Waits, Some(Rule::Concurrency), Proof::Trees),
    limit(
        "host.usdPerDay",
        AtLimit::Manner("a tree whose budget is more than the day has left is not opened"),
        None,
        Proof::Trees,
    ),
    limit(
        "host.tokensPerDay",
        AtLimit::Manner("a tree whose budget is more than the day has left is not opened"),
        None,
        Proof::Trees,
    ),
];

const fn limit(key: &'static str, at: AtLimit, audited: Option<Rule>, proof: Proof) -> Limit {
    Limit { key, at, audited, proof }
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
