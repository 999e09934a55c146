//! Limits of which a child gets less than was asked for, each with the setting that decided.

use offshoot_model::{Origin, SpawnRequest};
use offshoot_policy::lowered;

use crate::tree::{Tree, agent, ask, rights, tokens, usd};

const OPEN: &str =
    "[agents.defaults.subagents]\nallowAgents = [\"*\"]\nallowRecursiveSpawn = true\n";

/// A line for each limit that was lowered: the field, what was asked for, what holds, and the key of the setting.
fn told(tree: &Tree, caller: usize, request: &SpawnRequest) -> Vec<String> {
    let child = tree.ask(caller, request, Origin::Agent).expect("the request was refused");
    let found = lowered(&tree.config, tree.terms(caller), &child.agent, request, &child.grant);
    let line = |limit: &offshoot_model::LoweredLimit| {
        let (asked, granted) = (limit.asked.as_str(), limit.granted.as_str());
        let key = limit.governed_by.as_ref().map_or("-", |setting| &setting.key);
        format!("{} {asked} {granted} {key}", limit.field)
    };
    found.iter().map(line).collect()
}

/// Asks for an agent `a` with these lines, by a root with these limits.
#[track_caller]
fn check(limits: &str, a: &str, change: impl Fn(&mut SpawnRequest), expected: &[&str]) {
    let tree = Tree::new(&format!("{OPEN}{limits}\n[[agents.list]]\nid = \"a\"\n{a}\n"));
    let mut request = ask("a");
    change(&mut request);
    assert_eq!(told(&tree, 0, &request), expected, "{limits} {a} {request:?}");
}

#[test]
fn a_shorter_time_than_was_asked_for_is_told() {
    let time = |seconds| move |it: &mut SpawnRequest| it.run_timeout_seconds = Some(seconds);
    let minute = "runTimeoutSeconds = 60";
    check(minute, "", |_| {}, &[]);
    check(minute, "", time(59), &[]);
    check(minute, "", time(60), &[]);
    check(minute, "", time(61), &["runTimeoutSeconds 61 60 subagents.runTimeoutSeconds"]);
    check(minute, "", time(0), &["runTimeoutSeconds 0 60 subagents.runTimeoutSeconds"]);
    check("runTimeoutSeconds = 0", "", time(0), &[]);
    check("runTimeoutSeconds = 0", "", time(60), &[]);
}

#[test]
fn a_smaller_depth_than_was_asked_for_is_told() {
    let depth = |depth| move |it: &mut SpawnRequest| it.max_depth = Some(depth);
    check("maxDepth = 4", "", depth(3), &[]);
    check("maxDepth = 4", "", depth(4), &[]);
    check("maxDepth = 4", "", depth(5), &["maxDepth 5 4 subagents.maxDepth"]);
    check("maxDepth = 4", "subagents.maxDepth = 2", depth(3), &["maxDepth 3 2 subagents.maxDepth"]);
}

#[test]
fn no_setting_decides_where_the_caller_was_given_less() {
    let mut tree = Tree::new(&format!("{OPEN}maxDepth = 5\nrunTimeoutSeconds = 60\n"));
    let less = SpawnRequest { max_depth: Some(2), run_timeout_seconds: Some(30), ..ask("main") };
    let child = tree.spawn(0, &less).expect("the spawn was refused");
    let more = SpawnRequest {
        task: "more".into(),
        max_depth: Some(3),
        run_timeout_seconds: Some(50),
        ..ask("main")
    };
    assert_eq!(told(&tree, child, &more), ["runTimeoutSeconds 50 30 -", "maxDepth 3 2 -"]);
}

#[test]
fn a_smaller_budget_than_was_asked_for_is_told() {
    let of_a = "subagents.budget = { tokens = 100, usd = 0.5 }";
    let check = |budget, expected: &[&str]| {
        check("", of_a, |request| request.budget = budget, expected);
    };
    check(None, &[]);
    check(tokens(99), &[]);
    check(tokens(100), &[]);
    check(tokens(101), &["budget.tokens 101 100 subagents.budget.tokens"]);
    check(usd(500_000), &[]);
    check(usd(500_001), &["budget.usd 0.500001 0.5 subagents.budget.usd"]);
}

#[test]
fn tools_that_a_child_does_not_have_are_told() {
    let check = |a: &str, allow: &[&str], deny: &[&str], expected: &[&str]| {
        let tools = Some(rights(Some(allow), deny));
        check("", a, |request| request.tools = tools.clone(), expected);
    };
    let reads = "tools.allow = [\"read\", \"search\"]";
    check("", &["read", "write"], &[], &[]);
    check(reads, &["read", "search"], &[], &[]);
    let lost = "tools [\"read\",\"write\"] [\"read\"] tools";
    check(reads, &["read", "write"], &[], &[lost]);
    check(reads, &["read", "write"], &["write"], &[]);
}

#[test]
fn an_agent_that_is_not_defined_is_told_of_its_tools_too() {
    let tree = Tree::new("");
    let tools = Some(rights(Some(&["read", "exec"]), &[]));
    let request = SpawnRequest { tools, ..ask("main") };
    let mut child = tree.ask(0, &request, Origin::Agent).expect("the request was refused");
    let mut grant = (*child.grant).clone();
    grant.tools = rights(Some(&["read"]), &[]).into();
    child.grant = grant.into();
    let found = lowered(&tree.config, tree.terms(0), &agent("main"), &request, &child.grant);
    let found: Vec<_> = found.iter().map(|it| (&*it.field, it.governed_by.is_some())).collect();
    assert_eq!(found, [("tools", false)], "no definition takes them away");
}
