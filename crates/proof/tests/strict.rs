//! Proofs of two configurations: the built-in one, and one that is stricter everywhere.

use offshoot_config::Loader;
use offshoot_proof::{Probe, Verdict, prove};

/// Returns a line for each probe: its limit, what was asked and got, the answer and the judgement.
async fn table(loader: &Loader) -> Vec<String> {
    let probes = prove(loader).await.expect("the trees can be held");
    let line = |probe: &Probe| {
        let Probe { limit, asked, got, answer, verdict, .. } = probe;
        let answer = answer.as_deref().unwrap_or("nothing");
        let verdict = match verdict {
            Verdict::Holds => "holds",
            Verdict::Before { .. } => "another before it",
            Verdict::NotSet => "not set",
            Verdict::NotTried { .. } => "not tried",
            Verdict::Broken { why } => panic!("{limit} is broken: {why}"),
        };
        // Times differ by some hundredths of a second.
        let got = if got.ends_with(" s") { "a second" } else { got };
        format!("{limit}: {asked}, {got}, {answer}, {verdict}")
    };
    probes.iter().map(line).collect()
}

#[tokio::test]
async fn what_is_built_in_holds() {
    let expected = [
        "allowRecursiveSpawn: 1 child, 0 children, recursion_disabled, holds",
        "maxDepth: 4 levels, 3 levels, depth_limit, holds",
        "maxConcurrent: 10 at once, 8 at once, queued, holds",
        "maxConcurrentPerLevel: –, –, nothing, not set",
        "maxChildrenPerAgent: –, –, nothing, not set",
        "maxSpawns: 65 spawns, 64 spawns, spawn_limit, holds",
        "maxSpawnsPerMinute: –, –, nothing, not set",
        "allowCycles: main, another, main, 2 in a chain, cycle, holds",
        "maxIdenticalDelegations: 4 delegations, 3 delegations, repeat_limit, holds",
        "runTimeoutSeconds: 3600 s, a second, timeout, holds",
        "idleTimeoutSeconds: 3600 s, a second, idle, holds",
        "budget.tokens: 2000 tokens, 1000 tokens, budget, holds",
        "budget.usd: 0.002 usd, 0.001 usd, budget, holds",
        "deadlineSeconds: 3600 s, a second, deadline, holds",
        "breaker.failures: 4 faults, 3 faults, breaker_open, holds",
        "retries.count: 2 more attempts, 1, runtime_error, holds",
    ];
    assert_eq!(table(&Loader::new()).await, expected);
}

/// Returns a loader with these settings, and with two agents that models answer for.
fn loader(settings: &[(&str, &str)]) -> Loader {
    let mut loader = Loader::new();
    for (key, value) in settings {
        loader = loader.set(format!("agents.defaults.subagents.{key}"), *value);
    }
    for agent in ["planner", "worker"] {
        let agent = format!("[[agents.list]]\nid = \"{agent}\"\nruntime = \"claude\"\n");
        let source =
            offshoot_config::Source::new(offshoot_config::SourceKind::File, "agents.toml", agent);
        loader = loader.file(source);
    }
    loader
}

#[tokio::test]
async fn a_strict_configuration_holds_at_each_of_its_limits() {
    let strict = [
        ("maxDepth", "2"),
        ("maxConcurrent", "3"),
        ("maxConcurrentPerLevel", "2"),
        ("maxChildrenPerAgent", "2"),
        ("maxSpawns", "5"),
        ("maxSpawnsPerMinute", "4"),
        ("maxIdenticalDelegations", "1"),
        ("breaker.failures", "1"),
        ("retries.count", "0"),
    ];
    let expected = [
        "allowRecursiveSpawn: 1 child, 0 children, recursion_disabled, holds",
        "maxDepth: 3 levels, 2 levels, depth_limit, holds",
        "maxConcurrent: 5 at once, 2 at once, queued, another before it",
        "maxConcurrentPerLevel: 4 at once, 2 at once, queued, holds",
        "maxChildrenPerAgent: 3 children, 2 children, children_limit, holds",
        "maxSpawns: 6 spawns, 4 spawns, spawn_rate, another before it",
        "maxSpawnsPerMinute: 5 spawns, 4 spawns, spawn_rate, holds",
        "allowCycles: main, another, main, 1 in a chain, agent_not_allowed, another before it",
        "maxIdenticalDelegations: 2 delegations, 1 delegation, repeat_limit, holds",
        "runTimeoutSeconds: 3600 s, a second, timeout, holds",
        "idleTimeoutSeconds: 3600 s, a second, idle, holds",
        "budget.tokens: 2000 tokens, 1000 tokens, budget, holds",
        "budget.usd: 0.002 usd, 0.001 usd, budget, holds",
        "deadlineSeconds: 3600 s, a second, deadline, holds",
        "breaker.failures: 2 faults, 1 fault, breaker_open, holds",
        "retries.count: 1 more attempts, 0, runtime_error, holds",
    ];
    assert_eq!(table(&loader(&strict)).await, expected);
}

/// A budget of which one piece takes all lets the others wait: the slots are tried no further than it allows.
#[tokio::test]
async fn a_small_budget_holds_and_comes_before_the_slots() {
    let lines = table(&loader(&[("budget.tokens", "500"), ("budget.usd", "0.0005")])).await;
    let of = |limit: &str| lines.iter().find(|line| line.starts_with(limit)).map(String::as_str);
    assert_eq!(of("budget.tokens"), Some("budget.tokens: 1000 tokens, 500 tokens, budget, holds"));
    assert_eq!(of("budget.usd"), Some("budget.usd: 0.001 usd, 0.0005 usd, budget, holds"));
    assert_eq!(
        of("maxConcurrent"),
        Some("maxConcurrent: 10 at once, 1 at once, queued, another before it")
    );
}
