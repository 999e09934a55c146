//! Properties of every configuration and every chain.

use std::collections::HashMap;

use offshoot_config::{Origin as SettingOrigin, SubagentSettings};
use offshoot_model::{CostKnowledge, Grant, Origin, SpawnRequest};
use offshoot_policy::{Difference, Limits, Terms};
use proptest::prelude::*;
use proptest::sample::subsequence;
use serde_json::{Value, json};

use crate::tree::{Tree, agent, config, paid, rights, tokens};

const AGENTS: [&str; 4] = ["main", "a", "b", "c"];
const TOOLS: [&str; 5] = ["read", "write", "exec", "fetch", "spawn"];

/// Limits of which 0 is none at all.
const ENDLESS: [&str; 9] = [
    "runTimeoutSeconds",
    "idleTimeoutSeconds",
    "maxOutputBytes",
    "maxMemoryBytes",
    "maxOpenFiles",
    "maxCpuSeconds",
    "deadlineSeconds",
    "breaker.failures",
    "quota.maxParkSeconds",
];
/// Limits that are the stricter the greater they are.
const FLOORS: [&str; 4] =
    ["budget.keep", "breaker.cooldownSeconds", "quota.keep", "retries.backoffSeconds"];
/// The strictest word of each limit that is one.
const STRICTEST: [&str; 5] = ["keep", "cascade", "lost", "stop", "fail"];
/// Switches that are stricter when they are on.
const STRICT_ON: [&str; 1] = ["quota.deadlineCountsParked"];

/// The limits of which an explicit value above became a wider one below.
fn wider(below: &Limits, above: &Limits) -> Vec<String> {
    let is_explicit = |key: &str| {
        let value = above.value(key);
        value.is_some_and(|value| value.origin != SettingOrigin::BuiltIn)
    };
    let differences = above.differences(below).into_iter();
    let wider = differences.filter(|it| is_explicit(&it.key) && is_wider(it));
    wider.map(|it| it.key).collect()
}

/// True if the later value permits more. Written down apart from the code that folds a chain.
fn is_wider(difference: &Difference) -> bool {
    let (Some(above), Some(below)) = (&difference.was, &difference.is) else { return true };
    let key = &*difference.key;
    let numbers = above.as_f64().zip(below.as_f64());
    match (above, numbers) {
        (Value::String(above), _) => STRICTEST.contains(&&**above),
        (Value::Bool(above), _) => *above == STRICT_ON.contains(&key),
        (_, Some(_)) if key == "retries.jitter" => true,
        (_, Some((above, below))) if FLOORS.contains(&key) => below < above,
        (_, Some((above, below))) if ENDLESS.contains(&key) => {
            above != 0.0 && (below == 0.0 || below > above)
        }
        (_, Some((above, below))) => below > above,
        _ => unreachable!("{key} is a number, a word or a switch"),
    }
}

/// Lines of a `subagents` table, most of them absent: if each agent forbade something, nothing would ever be admitted.
fn settings() -> impl Strategy<Value = String> {
    let tools = prop::option::weighted(
        0.2,
        (prop::option::of(subsequence(TOOLS.to_vec(), 0..=5)), subsequence(TOOLS.to_vec(), 0..=2)),
    )
    .prop_map(|tools| {
        line(
            "tools",
            tools.map(|(allow, deny)| match allow {
                Some(allow) => format!("{{ allow = {allow:?}, deny = {deny:?} }}"),
                None => format!("{{ deny = {deny:?} }}"),
            }),
        )
    });
    let schema = offshoot_config::schema();
    let limits = SubagentSettings::limits().into_iter().map(|key| limit(key, &schema));
    let others = [tools.boxed(), Just("allowAgents = [\"*\"]\n".to_owned()).boxed()];
    limits.chain(others).collect::<Vec<_>>().prop_map(|lines| lines.concat())
}

/// A line of one limit, or none, by what the schema says of it.
fn limit(key: String, schema: &Value) -> BoxedStrategy<String> {
    let of = |section: &str, name: &str| schema["$defs"][section]["properties"][name].clone();
    let schema = match key.split_once('.') {
        None => of("SubagentSettings", &key),
        Some(("budget", name)) => of("BudgetSettings", name),
        Some(("breaker", name)) => of("BreakerSettings", name),
        Some(("retries", name)) => of("RetrySettings", name),
        Some(("quota", name)) => of("QuotaSettings", name),
        Some(_) => unreachable!("{key} is in a section of its own"),
    };
    let least = schema["minimum"].as_u64().unwrap_or(0);
    // Small numbers meet each other; what is used up by a request needs some of them.
    let most = match &*key {
        "budget.tokens" => 100_000,
        "budget.usd" => 1_000,
        "maxSpawns" | "maxSpawnsPerMinute" => 40,
        _ => schema["maximum"].as_u64().unwrap_or(9).clamp(4, 10),
    };
    let (share, value) = match (&schema["type"], &schema["enum"]) {
        _ if key == "retries.on" => {
            let values = [json!(["exit:75", "timeout"]), json!("signal"), json!([])];
            (0.2, prop::sample::select(values.to_vec()).boxed())
        }
        _ if key == "budget.share" => {
            let values = [json!("pool"), json!(0.0), json!(0.25), json!(0.5), json!(1.0)];
            (0.2, prop::sample::select(values.to_vec()).boxed())
        }
        (_, Value::Array(words)) => (0.2, prop::sample::select(words.clone()).boxed()),
        (Value::String(it), _) if it == "boolean" => {
            (0.4, prop::bool::weighted(0.8).prop_map(Value::from).boxed())
        }
        (Value::String(it), _) if it == "number" && schema["maximum"] == 1 => {
            (0.2, prop::sample::select(vec![0.0, 0.25, 0.5, 1.0]).prop_map(Value::from).boxed())
        }
        _ => (0.2, (least..=most).prop_map(Value::from).boxed()),
    };
    prop::option::weighted(share, value).prop_map(move |value| line(&key, value)).boxed()
}

fn line(key: &str, value: Option<impl std::fmt::Display>) -> String {
    value.map_or_else(String::new, |value| format!("{key} = {value}\n"))
}

/// Some configuration for four agents.
fn text() -> impl Strategy<Value = String> {
    (settings(), prop::collection::vec(settings(), AGENTS.len())).prop_map(|(defaults, agents)| {
        let agents = AGENTS.iter().zip(agents).map(|(id, settings)| {
            format!("[[agents.list]]\nid = \"{id}\"\n[agents.list.subagents]\n{settings}")
        });
        let defaults = defaults.replace("allowRecursiveSpawn = false\n", "");
        format!("[agents.defaults.subagents]\n{defaults}{}", agents.collect::<String>())
    })
}

/// A request of one session.
fn request() -> impl Strategy<Value = (usize, SpawnRequest)> {
    let tools = prop::option::weighted(0.2, subsequence(TOOLS.to_vec(), 0..=5));
    let amount = prop::option::weighted(0.2, 0..200_u64);
    (any::<usize>(), 0..AGENTS.len(), amount, tools, prop::option::of(0..9_u64)).prop_map(
        |(caller, target, amount, tools, timeout)| {
            let request = SpawnRequest {
                task: format!("task {}", caller % 97).into(),
                agent: Some(agent(AGENTS[target])),
                budget: amount.and_then(tokens),
                tools: tools.map(|tools| rights(Some(&tools), &[])),
                run_timeout_seconds: timeout,
                ..SpawnRequest::default()
            };
            (caller, request)
        },
    )
}

fn zero_is_endless(seconds: u64) -> u64 {
    if seconds == 0 { u64::MAX } else { seconds }
}

/// Asserts that a child got no more than its caller holds and may give.
fn assert_narrower(child: &Grant, caller: &Grant, terms: &Terms) {
    for right in TOOLS {
        assert!(!child.tools.permits(right) || caller.tools.permits(right), "{right} from nowhere");
    }
    let (own, above) = (child.budget.tokens, caller.budget.tokens);
    assert!(above.is_none_or(|above| own.is_some_and(|own| own <= above)), "{own:?} of {above:?}");
    let allowed = zero_is_endless(terms.run_timeout_seconds());
    assert!(zero_is_endless(child.run_timeout_seconds) <= allowed);
}

proptest! {
    #[test]
    fn along_a_chain_no_explicit_value_ever_widens(
        text in text(),
        chain in prop::collection::vec(0..AGENTS.len(), 1..10),
    ) {
        let config = config(&text);
        let mut terms = Terms::root(&config, &agent(AGENTS[chain[0]]));
        for &next in &chain[1..] {
            let below = terms.child(&config, &agent(AGENTS[next]));
            prop_assert_eq!(wider(&below, &terms), Vec::<String>::new());
            terms = below;
        }
    }

    #[test]
    fn whatever_is_asked_every_cap_holds(
        text in text(),
        requests in prop::collection::vec(request(), 0..60),
    ) {
        let Ok(mut tree) = Tree::open(config(&text), "main", paid(CostKnowledge::Reported)) else {
            // A budget of zero under a paid runtime.
            return Ok(());
        };
        let mut parents = HashMap::new();
        for (caller, request) in requests {
            let caller = caller % tree.sessions.len();
            let before = tree.books.spawns;
            let Ok(child) = tree.spawn_as(caller, &request, Origin::Agent) else {
                prop_assert_eq!(tree.books.spawns, before, "a refusal changes nothing");
                continue;
            };
            parents.insert(child, caller);
            let (parent, session) = (&tree.sessions[caller], &tree.sessions[child]);
            let (terms, depth) = (&parent.admission.terms, session.admission.depth);
            prop_assert_eq!(depth, parent.admission.depth + 1);
            prop_assert!(depth <= terms.max_depth());
            prop_assert!(caller == 0 || terms.allow_recursive_spawn());
            prop_assert!(tree.books.spawns <= terms.max_spawns());
            let most = terms.max_children_per_agent();
            prop_assert!(most.is_none_or(|most| parent.live_children <= most));
            assert_narrower(&session.admission.grant, &parent.admission.grant, terms);
            prop_assert!(parent.admission.grant.may_spawn, "it was told that it may");
        }
        // No run has promised more than there is.
        for (index, session) in tree.sessions.iter().enumerate() {
            let children = parents.iter().filter(|(_, parent)| **parent == index);
            let granted = |child: usize| tree.sessions[child].admission.grant.budget.tokens;
            let sum: u64 = children.filter_map(|(child, _)| granted(*child)).sum();
            let budget = session.admission.grant.budget.tokens;
            prop_assert!(budget.is_none_or(|budget| sum <= budget), "{sum} of {budget:?}");
        }
    }
}

/// The fold reads what was set, wherever in the chain it was set first.
#[test]
fn the_agent_that_set_a_value_is_named() {
    let text = "[agents.defaults.subagents]\nmaxSpawns = 9\n\
                [[agents.list]]\nid = \"a\"\nsubagents = { maxDepth = 2, maxSpawns = 5 }\n\
                [[agents.list]]\nid = \"b\"\nsubagents = { maxDepth = 2 }\n";
    let config = config(text);
    let root = Terms::root(&config, &agent("main"));
    let terms = root.child(&config, &agent("b")).child(&config, &agent("a"));
    let setter = |terms: &Terms, key| terms.governing(key).expect("it has a value").agent;
    assert_eq!(setter(&terms, "maxDepth").as_deref(), Some("b"), "the first of two equal ones");
    assert_eq!(setter(&terms, "maxSpawns").as_deref(), Some("a"));
    assert_eq!(setter(&root, "maxSpawns"), None, "the defaults");
    assert_eq!(root.governing("deadlineSeconds"), None);
    assert_eq!(root.governing("nonsense"), None);
}
