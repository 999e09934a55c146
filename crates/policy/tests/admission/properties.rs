//! What holds for every configuration and every chain.

use std::collections::HashMap;

use offshoot_config::Cleanup;
use offshoot_config::{CostKind, OnInterrupt, OnParentEnd};
use offshoot_model::{Grant, Origin, SpawnRequest};
use offshoot_policy::{Limits, Terms};
use proptest::prelude::*;
use proptest::sample::subsequence;

use crate::tree::{Tree, agent, config, paid, rights, tokens};

const AGENTS: [&str; 4] = ["main", "a", "b", "c"];
const TOOLS: [&str; 5] = ["read", "write", "exec", "fetch", "spawn"];

/// Whether this value permits more than that one. Written down apart from the code that folds a chain.
fn wider(below: &Limits, above: &Limits) -> Vec<&'static str> {
    let mut found = Vec::new();
    macro_rules! check {
        ($($($name:ident).+: $order:expr),* $(,)?) => {
            $( if let (Some(above), below) = (&above.$($name).+, &below.$($name).+) {
                let below = below.as_ref().map(|term| &term.value);
                // Where somebody above has a say, somebody has one here.
                if below.is_none_or(|below| $order(below, &above.value)) {
                    found.push(stringify!($($name).+));
                }
            } )*
        };
    }
    fn greater<T: Ord>(below: &T, above: &T) -> bool {
        below > above
    }
    fn less<T: Ord>(below: &T, above: &T) -> bool {
        below < above
    }
    fn longer<T: Ord + Default + Copy>(below: &T, above: &T) -> bool {
        let zero = T::default();
        *above != zero && (*below == zero || below > above)
    }
    fn left<T: PartialEq>(strict: T) -> impl Fn(&T, &T) -> bool {
        move |below, above| *above == strict && *below != strict
    }
    fn changed<T: PartialEq>(below: &T, above: &T) -> bool {
        below != above
    }
    check! {
        allow_recursive_spawn: greater, max_depth: greater, max_concurrent: greater,
        max_concurrent_per_level: greater, max_children_per_agent: greater, max_spawns: greater,
        max_spawns_per_minute: greater, allow_cycles: greater, max_identical_delegations: greater,
        run_timeout_seconds: longer, idle_timeout_seconds: longer, grace_seconds: greater,
        announce_timeout_ms: greater, result_inline_bytes: greater, budget.tokens: greater,
        budget.usd: greater, budget.share: greater, budget.keep: less,
        budget.allow_unknown_cost: greater, deadline_seconds: longer, breaker.failures: longer,
        breaker.cooldown_seconds: less, retries.count: greater, retries.backoff_seconds: less,
        cleanup: left(Cleanup::Keep),
        on_parent_end: left(OnParentEnd::Cascade),
        on_interrupt: left(OnInterrupt::Lost),
        retries.jitter: changed,
    }
    found
}

/// Lines of a `subagents` table, most of them absent: where everybody forbids something, nothing is ever admitted.
fn settings() -> impl Strategy<Value = String> {
    let number = |key: &'static str, range: std::ops::Range<u32>| {
        prop::option::weighted(0.2, range).prop_map(move |value| line(key, value)).boxed()
    };
    let word = |key: &'static str, words: &'static [&'static str]| {
        let quoted = prop::sample::select(words).prop_map(|word| format!("{word:?}"));
        prop::option::weighted(0.2, quoted).prop_map(move |value| line(key, value)).boxed()
    };
    let yes = |key: &'static str| {
        prop::option::weighted(0.4, prop::bool::weighted(0.8))
            .prop_map(move |value| line(key, value))
            .boxed()
    };
    let share = |key: &'static str| {
        let shares = prop::sample::select(vec!["0", "0.25", "0.5", "1"]);
        prop::option::weighted(0.2, shares).prop_map(move |value| line(key, value)).boxed()
    };
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
    let lines: Vec<BoxedStrategy<String>> = vec![
        yes("allowRecursiveSpawn"),
        number("maxDepth", 1..11),
        number("maxConcurrent", 1..5),
        number("maxConcurrentPerLevel", 1..5),
        number("maxChildrenPerAgent", 1..9),
        number("maxSpawns", 1..40),
        number("maxSpawnsPerMinute", 1..40),
        yes("allowCycles"),
        number("maxIdenticalDelegations", 1..5),
        number("runTimeoutSeconds", 0..4),
        number("idleTimeoutSeconds", 0..4),
        number("graceSeconds", 0..4),
        number("announceTimeoutMs", 1..4),
        number("resultInlineBytes", 0..4),
        word("cleanup", &["keep", "delete"]),
        word("onParentEnd", &["letFinish", "cascade"]),
        word("onInterrupt", &["lost", "rerun"]),
        number("budget.tokens", 0..100_000),
        number("budget.usd", 0..1000),
        share("budget.share"),
        share("budget.keep"),
        yes("budget.allowUnknownCost"),
        number("deadlineSeconds", 0..4),
        number("breaker.failures", 0..4),
        number("breaker.cooldownSeconds", 0..4),
        number("retries.count", 0..4),
        number("retries.backoffSeconds", 0..4),
        share("retries.jitter"),
        tools.boxed(),
        Just("allowAgents = [\"*\"]\n".to_owned()).boxed(),
    ];
    lines.prop_map(|lines| lines.concat())
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

/// What one session asks for.
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

/// Whether a child got more than its caller holds or may give.
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
            prop_assert_eq!(wider(&below, &terms), Vec::<&str>::new());
            terms = below;
        }
    }

    #[test]
    fn whatever_is_asked_every_cap_holds(
        text in text(),
        requests in prop::collection::vec(request(), 0..60),
    ) {
        let Ok(mut tree) = Tree::open(config(&text), "main", paid(CostKind::Reported)) else {
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
        // Whoever has promised something has not promised more than there is.
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
