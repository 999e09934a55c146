//! Chains of different agents: each agent above is asked, the strictest answer holds.

use offshoot_config::OnInterrupt;
use offshoot_model::{CostKnowledge, Origin, RefusalCode, SpawnRequest};
use offshoot_policy::{NEVER_FOR_SUB_AGENTS, RuntimeFacts, Terms};

use crate::tree::{Tree, agent, ask, loader, paid, rights, tokens};

/// Agents with the lines of their `subagents` tables; each may spawn each.
fn tree(agents: &[(&str, &str)]) -> Tree {
    let mut text =
        "[agents.defaults.subagents]\nallowAgents = [\"*\"]\nallowRecursiveSpawn = true\n"
            .to_owned();
    for (id, lines) in agents {
        text += &format!("[[agents.list]]\nid = \"{id}\"\n[agents.list.subagents]\n{lines}\n");
    }
    Tree::new(&text)
}

#[test]
fn rights_only_shrink() {
    // What main and a say about their sub-agents, and what c, below a, may use in the end.
    let check = |main: &str, a: &str, permitted: &[&str], denied: &[&str]| {
        let mut tree = tree(&[("main", main), ("a", a), ("b", ""), ("c", "tools = {}")]);
        let b = tree.chain(&["a", "b"]);
        let tools = tree.sessions[b].admission.grant.tools.clone();
        for right in permitted {
            assert!(tools.permits(right), "{right} under {main} and {a}");
        }
        for right in denied {
            assert!(!tools.permits(right), "{right} under {main} and {a}");
        }
    };
    let narrow = "tools = { allow = [\"read\", \"spawn\"] }";
    let no_write = "tools = { deny = [\"write\"] }";
    let wide = "tools = {}";
    check(wide, wide, &["read", "write", "exec"], &[]);
    // A restricted parent under a broad root, and the reverse.
    check(wide, narrow, &["read", "spawn"], &["write", "exec"]);
    check(narrow, wide, &["read", "spawn"], &["write", "exec"]);
    check(narrow, no_write, &["read"], &["write", "exec"]);
    check(no_write, narrow, &["read"], &["write", "exec"]);
    check("tools = { allow = [\"exec\", \"spawn\"] }", narrow, &["read"], &["exec", "write"]);
    check(wide, wide, &[], &NEVER_FOR_SUB_AGENTS);
}

#[test]
fn who_may_spawn_is_told_whom() {
    let ids = |tree: &Tree, session: usize| {
        let agents = &tree.sessions[session].admission.grant.agents;
        agents.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let mut any = tree(&[("main", ""), ("a", "allowAgents = [\"b\"]"), ("b", "maxDepth = 2")]);
    let b = any.chain(&["a", "b"]);
    assert_eq!(ids(&any, 0), ["main", "a", "b"]);
    assert_eq!(ids(&any, 1), ["b"]);
    assert_eq!(ids(&any, b), [""; 0], "it stands at the deepest level");
    assert_eq!(ids(&Tree::new(""), 0), [""; 0], "its own need not be named");
}

#[test]
fn an_agents_own_tools_bind_it_and_all_below() {
    let text = "[agents.defaults.subagents]\nallowAgents = [\"*\"]\nallowRecursiveSpawn = true\n\
                [[agents.list]]\nid = \"a\"\ntools = { allow = [\"read\", \"search\"] }\ncanDelegate = true\n\
                [[agents.list]]\nid = \"b\"\n";
    let mut tree = Tree::new(text);
    let b = tree.chain(&["a", "b"]);
    for session in [1, b] {
        let tools = &tree.sessions[session].admission.grant.tools;
        assert!(tools.permits("read") && !tools.permits("write"), "session {session}");
    }
    assert!(tree.sessions[0].admission.grant.tools.permits("write"));
}

#[test]
fn the_strictest_explicit_limit_of_a_chain_holds() {
    // What main and a say; the terms under which b, below a, spawns.
    let check = |main: &str, a: &str, read: &dyn Fn(&Terms) -> u64, expected: u64| {
        let mut tree = tree(&[("main", main), ("a", a), ("b", "")]);
        let b = tree.chain(&["a", "b"]);
        assert_eq!(read(tree.terms(b)), expected, "{main:?} then {a:?}");
    };
    let depth = |terms: &Terms| u64::from(terms.max_depth());
    check("", "", &depth, 3);
    check("maxDepth = 4", "maxDepth = 9", &depth, 4);
    check("maxDepth = 9", "maxDepth = 4", &depth, 4);
    // The first explicit value replaces the built-in one, whichever way.
    check("", "maxDepth = 9", &depth, 9);
    check("", "maxDepth = 2", &depth, 2);
    let timeout = |terms: &Terms| terms.run_timeout_seconds();
    check("", "", &timeout, 1800);
    check("runTimeoutSeconds = 0", "runTimeoutSeconds = 60", &timeout, 60);
    check("runTimeoutSeconds = 60", "runTimeoutSeconds = 0", &timeout, 60);
    check("runTimeoutSeconds = 0", "", &timeout, 0);
    let spawns = |terms: &Terms| u64::from(terms.max_spawns());
    check("maxSpawns = 10", "maxSpawns = 100", &spawns, 10);
    let keep = |terms: &Terms| terms.budget.keep().of(1_000_000);
    check("budget = { keep = 0.1 }", "budget = { keep = 0.5 }", &keep, 500_000);
    let cooldown = |terms: &Terms| terms.breaker.cooldown_seconds();
    check("breaker = { cooldownSeconds = 9 }", "breaker = { cooldownSeconds = 99 }", &cooldown, 99);
    let failures = |terms: &Terms| u64::from(terms.breaker.failures());
    check("breaker = { failures = 0 }", "breaker = { failures = 5 }", &failures, 5);
}

#[test]
fn recursion_needs_every_word_on_the_chain() {
    let check = |main: Option<bool>, a: Option<bool>, b: Option<bool>, expected: bool| {
        let line = |word: Option<bool>| {
            word.map_or_else(String::new, |word| format!("allowRecursiveSpawn = {word}"))
        };
        let mut text = "[agents.defaults.subagents]\nallowAgents = [\"*\"]\n".to_owned();
        for (id, word) in [("main", main), ("a", a), ("b", b)] {
            let line = line(word);
            text += &format!("[[agents.list]]\nid = \"{id}\"\n[agents.list.subagents]\n{line}\n");
        }
        let mut tree = Tree::new(&text);
        let a_session = tree.chain(&["a"]);
        let found = tree.spawn(a_session, &ask("b"));
        let found = match found {
            Ok(b_session) => tree.spawn(b_session, &ask("b")).is_ok(),
            Err(_) => false,
        };
        assert_eq!(found, expected, "{main:?} {a:?} {b:?}");
    };
    check(None, None, None, false);
    check(None, Some(true), None, true);
    check(None, Some(true), Some(true), true);
    check(Some(true), None, None, true);
    check(Some(false), Some(true), Some(true), false);
    check(Some(true), Some(false), Some(true), false);
    check(Some(true), Some(true), Some(false), false);
}

#[test]
fn a_targets_own_values_bind_its_children_and_not_itself() {
    let mut tree = tree(&[("a", "runTimeoutSeconds = 10\ngraceSeconds = 1\nmaxDepth = 5")]);
    let a = tree.chain(&["a"]);
    let b = tree.spawn(a, &ask("a")).expect("the spawn was refused");
    let grant = |session: usize| &tree.sessions[session].admission.grant;
    assert_eq!((grant(a).run_timeout_seconds, grant(a).grace_seconds), (1800, 5));
    assert_eq!((grant(b).run_timeout_seconds, grant(b).grace_seconds), (10, 1));
    assert_eq!((grant(a).max_depth, grant(b).max_depth), (5, 5));
}

#[test]
fn max_depth_one_is_one_level() {
    for depth in 1..=10_usize {
        let mut tree = tree(&[("main", &format!("maxDepth = {depth}"))]);
        let last = tree.chain(&vec!["main"; depth]);
        assert_eq!(tree.sessions[last].admission.depth as usize, depth);
        assert!(!tree.sessions[last].admission.grant.may_spawn);
        assert!(tree.sessions[last - 1].admission.grant.may_spawn);
        let refusal = tree.spawn(last, &ask("main")).expect_err("one too deep");
        assert_eq!(refusal.code, RefusalCode::DepthLimit, "maxDepth = {depth}");
    }
}

#[test]
fn a_chain_of_one_agent_is_bounded_by_depth_alone() {
    let mut tree = tree(&[("main", "maxDepth = 10")]);
    assert_eq!(tree.chain(&["main"; 10]), 10);
    let mut tree = self::tree(&[("main", "maxDepth = 10"), ("a", "")]);
    assert_eq!(tree.chain(&["a", "a", "a", "a", "a"]), 5);
}

#[test]
fn a_child_cannot_switch_off_its_parents_cap() {
    // Everything that an agent could set to be freer than its caller.
    let free = "maxDepth = 10\nmaxSpawns = 1000000\nrunTimeoutSeconds = 0\nidleTimeoutSeconds = 0\n\
                allowCycles = true\nmaxIdenticalDelegations = 1000\nmaxChildrenPerAgent = 1000\n\
                tools = {}\nbreaker = { failures = 0 }\nonInterrupt = \"rerun\"\n\
                budget = { tokens = 1000000, share = 1, keep = 0, allowUnknownCost = true }";
    let strict = "maxDepth = 3\nmaxSpawns = 5\nrunTimeoutSeconds = 60\nidleTimeoutSeconds = 30\n\
                  allowCycles = false\nmaxIdenticalDelegations = 2\nmaxChildrenPerAgent = 4\n\
                  tools = { deny = [\"write\"] }\nbreaker = { failures = 2 }\nonInterrupt = \"lost\"\n\
                  budget = { tokens = 1000, share = 0.5, keep = 0.2, allowUnknownCost = false }";
    let mut tree = tree(&[("main", strict), ("a", free)]);
    let a = tree.chain(&["a"]);
    let (root, child) = (tree.terms(0), tree.terms(a));
    assert_eq!(***child, ***root);
    assert_eq!(child.on_interrupt(Origin::Piece), OnInterrupt::Lost);
    let grandchild = tree.ask(a, &ask("a"), Origin::Agent).expect("the request was refused");
    assert!(!grandchild.grant.tools.permits("write"));
    assert_eq!(grandchild.grant.budget.tokens, Some(250));
}

#[test]
fn a_flag_replaces_the_values_of_the_root_and_of_the_defaults() {
    let text = "[agents.defaults.subagents]\nallowAgents = [\"*\"]\nallowRecursiveSpawn = true\nmaxDepth = 4\n\
                [[agents.list]]\nid = \"main\"\nsubagents = { maxDepth = 2 }\n\
                [[agents.list]]\nid = \"a\"\nsubagents = { maxDepth = 5 }\n\
                [[agents.list]]\nid = \"b\"\n";
    let config = loader(text)
        .flag("agents.defaults.subagents.maxDepth", 7, "--max-depth")
        .load()
        .expect("right");
    let root = Terms::root(&config, &agent("main"));
    let depths = |chain: &[&str]| {
        let terms = chain.iter().fold(root.clone(), |terms, id| terms.child(&config, &agent(id)));
        terms.max_depth()
    };
    assert_eq!(depths(&[]), 7, "the root's own 2 is replaced");
    assert_eq!(depths(&["b"]), 7, "the defaults' 4 is replaced");
    assert_eq!(depths(&["a"]), 5, "another agent's own value is not");
    assert_eq!(depths(&["b", "main"]), 7, "replaced wherever the root's agent stands");
    let setting = root.governing("maxDepth").expect("it has a value");
    assert_eq!((setting.origin.as_str(), setting.agent), ("flag --max-depth", None));
}

#[test]
fn operators_commands_are_governed_by_allow_agents() {
    let text = "[agents.defaults.subagents]\nallowAgents = [\"make\"]\ntools = { allow = [\"read\", \"spawn\"] }\n\
                [[agents.list]]\nid = \"make\"\ncommand = [\"make\", \"all\"]\n";
    let mut tree = Tree::new(text);
    tree.runtime = RuntimeFacts::of_a_command("exec");
    assert!(tree.ask(0, &ask("make"), Origin::Agent).is_ok());
    let command = Some(vec!["rm".to_owned()].into());
    let own = SpawnRequest { command, ..ask("make") };
    let refusal = tree.ask(0, &own, Origin::Agent).expect_err("the caller has no exec");
    assert_eq!(refusal.code, RefusalCode::ToolsNotGrantable);
    assert!(tree.ask(0, &own, Origin::Piece).is_ok(), "the operator chose it");
}

#[test]
fn pieces_are_no_spawns_of_an_agent() {
    let text = "[agents.defaults.subagents]\nmaxSpawns = 1\nmaxSpawnsPerMinute = 1\nmaxChildrenPerAgent = 1\n\
                [[agents.list]]\nid = \"main\"\ncanDelegate = false\n";
    let mut tree = Tree::new(text);
    for _ in 0..100 {
        tree.spawn_as(0, &ask("elsewhere"), Origin::Piece).expect("a piece");
    }
    assert_eq!(tree.books.spawns, 0);
    assert_eq!(tree.books.window.count(tree.now), 0);
    let refusal = tree.spawn(0, &ask("main")).expect_err("an agent's wish");
    assert_eq!(refusal.code, RefusalCode::CannotDelegate);
}

#[test]
fn one_delegation_does_not_become_hundreds() {
    let mut tree = tree(&[("main", "maxDepth = 10")]);
    let mut admitted = 0;
    let mut next = 0;
    while let Some(depth) = tree.sessions.get(next).map(|session| session.admission.depth) {
        for child in 0..4 {
            let task = format!("child {child} of {next} at {depth}").into();
            admitted +=
                usize::from(tree.spawn(next, &SpawnRequest { task, ..ask("main") }).is_ok());
        }
        next += 1;
    }
    assert_eq!(admitted, 64);
}

#[test]
fn parallel_spawns_cannot_overshoot_a_cap() {
    let mut tree = tree(&[("main", "maxChildrenPerAgent = 12")]);
    let admitted = (0..19).filter(|_| tree.spawn(0, &ask("main")).is_ok()).count();
    assert_eq!(admitted, 12);
}

#[test]
fn a_child_has_no_more_time_than_its_parent_was_given() {
    // What main and a say, what a and its child b ask for, and what b gets.
    let check = |main: &str, a: &str, asked: [Option<u64>; 2], expected: u64| {
        let mut tree = tree(&[("main", main), ("a", a), ("b", "")]);
        let mut caller = 0;
        for (target, run_timeout_seconds) in ["a", "b"].into_iter().zip(asked) {
            let request = SpawnRequest { run_timeout_seconds, ..ask(target) };
            caller = tree.spawn(caller, &request).expect("the spawn was refused");
        }
        let granted = tree.sessions[caller].admission.grant.run_timeout_seconds;
        assert_eq!(granted, expected, "{main:?} then {a:?}, asked for {asked:?}");
    };
    let fifty = "runTimeoutSeconds = 50";
    check(fifty, "", [None, None], 50);
    check(fifty, "", [Some(40), None], 40);
    check(fifty, "", [Some(40), Some(4000)], 40);
    check(fifty, "", [Some(40), Some(30)], 30);
    check(fifty, "", [Some(60), None], 50);
    check("runTimeoutSeconds = 0", "", [None, None], 0);
    check("runTimeoutSeconds = 0", "", [Some(40), Some(0)], 40);
    check(fifty, "runTimeoutSeconds = 45", [Some(40), None], 40);
    check(fifty, "runTimeoutSeconds = 35", [Some(40), None], 35);
    // A value that an agent sets replaces what is built in; what was asked for stays.
    check("", "runTimeoutSeconds = 3600", [None, None], 3600);
    check("", "runTimeoutSeconds = 3600", [Some(40), None], 40);
}

#[test]
fn a_depth_that_was_asked_for_binds_all_below() {
    let mut tree = tree(&[("main", "maxDepth = 5")]);
    let request = SpawnRequest { max_depth: Some(2), ..ask("main") };
    let child = tree.spawn(0, &request).expect("the spawn was refused");
    let task = |words: &str| SpawnRequest { task: words.into(), ..ask("main") };
    let below = tree.spawn(child, &task("a part")).expect("the spawn was refused");
    let depth = |session: usize| tree.sessions[session].admission.grant.max_depth;
    assert_eq!([0, child, below].map(depth), [5, 2, 2]);
    let refusal = tree.ask(below, &task("a smaller part"), Origin::Agent).expect_err("too deep");
    assert_eq!(refusal.code, RefusalCode::DepthLimit);
    assert_eq!(refusal.governed_by, None, "no setting says so");
}

#[test]
fn an_agent_may_follow_where_it_closes_no_forbidden_cycle() {
    let check = |lines: &str, chain: &[&str], target: &str, expected: bool| {
        let agents = ["main", "a", "b"].map(|id| (id, lines));
        let mut tree = tree(&agents);
        let last = tree.chain(chain);
        let lineage = &tree.sessions[last].admission.lineage;
        let found = offshoot_policy::may_follow(tree.terms(last), lineage, &agent(target));
        assert_eq!(found, expected, "{target} after {chain:?} with {lines}");
    };
    check("", &["a"], "b", true);
    check("", &["a"], "a", true);
    check("", &["a", "b"], "a", false);
    check("", &["a"], "main", false);
    let cycles = "maxDepth = 9\nallowCycles = true\nmaxIdenticalDelegations = 1";
    check(cycles, &["a", "b"], "a", true);
    check(cycles, &["a", "b", "a", "b"], "a", false);
}

#[test]
fn rights_are_shared_by_children_of_one_agent_alone() {
    let text = "[agents.defaults.subagents]\nallowAgents = [\"*\"]\ntools = { deny = [\"exec\"] }\n\
                [[agents.list]]\nid = \"a\"\ntools = { allow = [\"read\"] }\n\
                [[agents.list]]\nid = \"b\"\n";
    let mut tree = Tree::new(text);
    let first = tree.spawn(0, &ask("a")).expect("the spawn was refused");
    let request = SpawnRequest { run_timeout_seconds: Some(9), ..ask("a") };
    let second = tree.spawn(0, &request).expect("the spawn was refused");
    let tools = |session: usize| &tree.sessions[session].admission.grant.tools;
    assert!(std::sync::Arc::ptr_eq(tools(first), tools(second)));
    // Another agent, and a command of the caller's own choosing, are asked about anew.
    let other = tree.spawn(0, &ask("b")).expect("the spawn was refused");
    let tools = &tree.sessions[other].admission.grant.tools;
    assert!(tools.permits("write") && !tools.permits("exec"));
    let command = Some(vec!["make".to_owned()].into());
    let refusal = tree.ask(0, &SpawnRequest { command, ..ask("b") }, Origin::Agent);
    assert_eq!(refusal.map_err(|it| it.code).err(), Some(RefusalCode::ToolsNotGrantable));
}

#[test]
fn a_right_that_cannot_be_granted_is_told_with_the_rule_that_denies_it() {
    let lines = "tools = { deny = [\"fetch\"] }\ntoolsByDepth = { 1 = { deny = [\"write\"] }, 2 = { deny = [\"exec\"] } }";
    let tree = tree(&[("main", lines)]);
    let key = |right: &str| {
        let tools = Some(rights(Some(&[right]), &[]));
        let answer = tree.ask(0, &SpawnRequest { tools, ..ask("main") }, Origin::Agent);
        answer.err().map(|refusal| refusal.governed_by.expect("a rule").key)
    };
    assert_eq!(key("fetch").as_deref(), Some("subagents.tools"));
    assert_eq!(key("write").as_deref(), Some("subagents.toolsByDepth.1"));
    assert_eq!(key("exec"), None, "it is for a deeper level");
}

#[test]
fn an_equal_grant_is_shared() {
    let mut tree = tree(&[]);
    let first = tree.spawn(0, &ask("main")).expect("the spawn was refused");
    let second = tree.spawn(0, &ask("main")).expect("the spawn was refused");
    let grant = |session: usize| &tree.sessions[session].admission.grant;
    assert!(std::sync::Arc::ptr_eq(grant(first), grant(second)));
    assert!(std::sync::Arc::ptr_eq(tree.terms(first), tree.terms(0)));
}

#[test]
fn a_root_lives_under_its_own_values() {
    let text = "[[agents.list]]\nid = \"main\"\ntools = { deny = [\"fetch\"] }\n\
                [agents.list.subagents]\nrunTimeoutSeconds = 9\nbudget = { tokens = 50 }\n\
                tools = { deny = [\"read\"] }\ntoolsByDepth = { 0 = { deny = [\"write\"] } }\n";
    let tree = Tree::new(text);
    let grant = &tree.sessions[0].admission.grant;
    assert_eq!(grant.run_timeout_seconds, 9);
    assert_eq!(grant.budget.tokens, Some(50));
    let permits = |right: &str| grant.tools.permits(right);
    assert!(!permits("fetch") && !permits("write") && permits("read") && permits("gateway"));
    let other =
        Tree::open(tree.config.clone(), "other", paid(CostKnowledge::Reported)).expect("open");
    assert_eq!(other.sessions[0].admission.grant.run_timeout_seconds, 1800);
}

#[test]
fn a_root_that_cannot_keep_its_promises_is_refused() {
    let check = |text: &str, runtime: RuntimeFacts, expected: Option<RefusalCode>| {
        let config = loader(text).load().expect("right");
        let code = Tree::open(config, "main", runtime).err().map(|refusal| refusal.code);
        assert_eq!(code, expected, "{text}");
    };
    let usd = "[agents.defaults.subagents]\nbudget = { usd = 1 }\n";
    check(usd, paid(CostKnowledge::Unknown), Some(RefusalCode::CostUnbounded));
    check(usd, paid(CostKnowledge::Bounded), None);
    check(usd, RuntimeFacts::of_a_command("exec"), None);
    let none = "[agents.defaults.subagents]\nbudget = { usd = 0 }\n";
    check(none, paid(CostKnowledge::Reported), Some(RefusalCode::BudgetExhausted));
    check(none, RuntimeFacts::of_a_command("exec"), None);
    let no_write = "[[agents.list]]\nid = \"main\"\ntools = { deny = [\"write\"] }\n";
    check(no_write, RuntimeFacts::of_a_command("exec"), Some(RefusalCode::ToolsNotGrantable));
    check(no_write, paid(CostKnowledge::Reported), None);
}

#[test]
fn rights_and_budgets_of_a_request_reach_the_grant() {
    let tree = tree(&[("main", "budget = { tokens = 1000 }")]);
    let tools = Some(rights(Some(&["read"]), &[]));
    let request = SpawnRequest { tools, budget: tokens(10), ..ask("main") };
    let admission = tree.ask(0, &request, Origin::Agent).expect("the request was refused");
    assert_eq!(admission.grant.budget.tokens, Some(10));
    assert!(!admission.grant.may_spawn, "`spawn` was not among the tools it asked for");
}
