//! Capabilities of the agents of a configuration, and the cycles among them.

use std::fmt::Write;

use offshoot_policy::{Capabilities, Given};

use crate::tree::config;

/// A line for each agent, delegation and cycle.
fn told(text: &str) -> String {
    let Capabilities { agents, cycles } = Capabilities::of(&config(text));
    let mut lines = String::new();
    let given = |given: &Option<Given>| match given {
        None => "cannot run".to_owned(),
        Some(given) => {
            let tools = given.tools.allow.as_ref();
            let tools = tools.map(|tools| tools.iter().cloned().collect::<Vec<_>>().join(" "));
            let depth = match given.may_spawn {
                true => given.max_depth.to_string(),
                false => "-".to_owned(),
            };
            format!("{depth} {}", tools.as_deref().unwrap_or("all"))
        }
    };
    let reason = |refusal: &Option<offshoot_model::Refusal>| {
        refusal.as_ref().map_or_else(String::new, |refusal| {
            let key = refusal.governed_by.as_ref().map_or("", |setting| setting.key.as_str());
            format!(" ! {} {key}", refusal.code)
        })
    };
    for agent in &agents {
        let (depth, refused) = (given(&agent.given), reason(&agent.refusal));
        writeln!(lines, "{} {depth}{refused}", agent.agent).expect("the text cannot be written");
        for to in &agent.delegates_to {
            let why = to.why.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
            let (depth, refused) = (given(&to.given), reason(&to.refusal));
            writeln!(lines, " {} {depth}{refused}{why}", to.agent)
                .expect("the text cannot be written");
        }
    }
    for cycle in &cycles {
        let path: Vec<_> = cycle.path.iter().map(AsRef::as_ref).collect();
        let allowed = if cycle.allowed { "allowed" } else { "not" };
        writeln!(lines, "{}: {allowed}{}", path.join(">"), reason(&cycle.refusal))
            .expect("the text cannot be written");
    }
    lines
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let told = told(text);
    assert_eq!(told.lines().collect::<Vec<_>>(), expected, "{text}");
}

#[test]
fn each_agent_has_the_agents_that_it_may_name_with_depth_and_tools() {
    check("", &["main 3 all", " main - all"]);
    let team = r#"
        [[agents.list]]
        id = "lead"
        preferredSubagents = [{ sync = "for drift" }, { scan = "for safety" }]
        subagents.maxDepth = 4
        [[agents.list]]
        id = "sync"
        canDelegate = true
        preferredSubagents = [{ git = "for commits" }]
        subagents.allowAgents = []
        [[agents.list]]
        id = "scan"
        canDelegate = false
        tools.allow = ["read"]
        [[agents.list]]
        id = "git"
        subagents.allowAgents = []
    "#;
    check(
        team,
        &[
            "main 3 all",
            " main - all",
            "lead 4 all",
            " lead - all",
            " sync 4 all (for drift)",
            " scan - read (for safety)",
            "sync 3 all",
            " git - all (for commits)",
            "scan - read ! cannot_delegate canDelegate",
            "git - all ! agent_not_allowed subagents.allowAgents",
        ],
    );
}

#[test]
fn a_session_that_asks_is_not_taken_for_one_that_repeats_itself() {
    let once = "[agents.defaults.subagents]\nmaxIdenticalDelegations = 1\n";
    check(once, &["main 3 all", " main - all"]);
}

#[test]
fn agents_and_those_that_they_may_name_are_described() {
    let text = "[[agents.list]]\nid = \"lead\"\nsubagents.allowAgents = [\"lead\", \"scan\"]\n\
                [[agents.list]]\nid = \"scan\"\ndescription = \"looks around\"\n";
    let Capabilities { agents, .. } = Capabilities::of(&config(text));
    let described = |described: &Option<String>| described.clone().unwrap_or_default();
    let found = agents.iter().map(|it| (it.agent.as_str(), described(&it.description)));
    let scan = ("scan", "looks around".to_owned());
    let expected = [("main", String::new()), ("lead", String::new()), scan.clone()];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    let named = agents[1].delegates_to.iter();
    let found = named.map(|it| (it.agent.as_str(), described(&it.description)));
    assert_eq!(found.collect::<Vec<_>>(), [("lead", String::new()), scan]);
}

#[test]
fn rights_and_depth_of_a_delegation_are_those_of_the_chain() {
    let check = |lead: &str, child: &str, expected: &str| {
        let text = format!(
            "[[agents.list]]\nid = \"lead\"\nsubagents.allowAgents = [\"child\"]\n{lead}\n\
             [[agents.list]]\nid = \"child\"\n{child}\n"
        );
        let told = told(&text);
        let line = told.lines().find(|line| line.starts_with(" child")).expect("an edge");
        assert_eq!(line, format!(" child {expected}"), "{lead} then {child}");
    };
    check("", "", "- all");
    check("subagents.allowRecursiveSpawn = true", "", "3 all");
    check("", "subagents.allowRecursiveSpawn = true", "3 all");
    check("subagents.allowRecursiveSpawn = false", "canDelegate = true", "- all");
    check("canDelegate = true", "canDelegate = false", "- all");
    check("canDelegate = true", "subagents.maxDepth = 2", "2 all");
    check("canDelegate = true\nsubagents.maxDepth = 2", "subagents.maxDepth = 9", "2 all");
    check("canDelegate = true\nsubagents.maxDepth = 1", "subagents.maxDepth = 9", "- all");
    check("tools.allow = [\"read\", \"write\", \"spawn\"]", "tools.allow = [\"read\"]", "- read");
    check("subagents.tools.allow = [\"search\"]", "", "- search");
    check("canDelegate = true", "tools.deny = [\"spawn\"]", "- all");
    // A list for sub-agents binds those of the child.
    check("canDelegate = true", "subagents.tools.deny = [\"spawn\"]", "3 all");
    check("canDelegate = true", "subagents.allowAgents = []", "- all");
    check("subagents.budget.tokens = 0", "", "- all");
}

#[test]
fn cycles_are_named_with_the_setting_that_decides() {
    let pair = |lines: &str| {
        let text = format!(
            "[agents.defaults.subagents]\n{lines}\n\
             [[agents.list]]\nid = \"a\"\nsubagents.allowAgents = [\"b\"]\n\
             [[agents.list]]\nid = \"b\"\nsubagents.allowAgents = [\"a\"]\n"
        );
        told(&text).lines().last().expect("a cycle").to_owned()
    };
    let recursion = "subagents.allowRecursiveSpawn";
    assert_eq!(pair(""), format!("a>b>a: not ! recursion_disabled {recursion}"));
    let cycle = "a>b>a: not ! cycle subagents.allowCycles";
    assert_eq!(pair("allowRecursiveSpawn = true"), cycle);
    let both = "allowRecursiveSpawn = true\nallowCycles = true";
    assert_eq!(pair(both), "a>b>a: allowed");
    let deep = "a>b>a: not ! depth_limit subagents.maxDepth";
    assert_eq!(pair(&format!("{both}\nmaxDepth = 1")), deep);
    // An agent that starts itself forms none.
    let alone = "[[agents.list]]\nid = \"a\"\ncanDelegate = true\n";
    check(alone, &["main 3 all", " main - all", "a 3 all", " a 3 all"]);
}

#[test]
fn a_cycle_is_possible_if_any_of_its_agents_can_begin_it() {
    // Recursion is switched on by `c` alone, so that a chain which begins with `b` goes round and one which begins with `a` does not.
    let text = r#"
        [[agents.list]]
        id = "a"
        subagents = { allowAgents = ["b"], allowCycles = true }
        [[agents.list]]
        id = "b"
        subagents = { allowAgents = ["c"] }
        [[agents.list]]
        id = "c"
        subagents = { allowAgents = ["a"], allowRecursiveSpawn = true }
    "#;
    assert_eq!(told(text).lines().last(), Some("a>b>c>a: allowed"));
    let stricter = text.replace("[\"c\"] }", "[\"c\"], allowCycles = false }");
    let refused = "a>b>c>a: not ! cycle subagents.allowCycles";
    assert_eq!(told(&stricter).lines().last(), Some(refused));
}
