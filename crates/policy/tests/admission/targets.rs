//! The agents that an agent may spawn.

use offshoot_model::{Origin, RefusalCode, SpawnRequest};

use crate::tree::{Tree, ask};

const AGENTS: &str = "[[agents.list]]\nid = \"a\"\n[[agents.list]]\nid = \"b\"\n";

/// Checks the answer to `main`, by its definition and the agent it asks for.
#[track_caller]
fn check(main: &str, target: &str, expected: Option<RefusalCode>) {
    let tree = Tree::new(&format!("{AGENTS}[[agents.list]]\nid = \"main\"\n{main}\n"));
    let code = tree.ask(0, &ask(target), Origin::Agent).err().map(|refusal| refusal.code);
    assert_eq!(code, expected, "{target} by {main}");
}

#[test]
fn whom_an_agent_may_spawn() {
    let not_allowed = Some(RefusalCode::AgentNotAllowed);
    let unknown = Some(RefusalCode::UnknownAgent);
    check("", "main", None);
    check("", "a", not_allowed);
    check("", "nobody", unknown);
    check("subagents = { allowAgents = [\"a\"] }", "a", None);
    check("subagents = { allowAgents = [\"a\"] }", "b", not_allowed);
    check("subagents = { allowAgents = [\"a\"] }", "main", not_allowed);
    check("subagents = { allowAgents = [\"nobody\"] }", "nobody", unknown);
    check("subagents = { allowAgents = [\"*\"] }", "b", None);
    check("subagents = { allowAgents = [\"*\"] }", "main", None);
    check("subagents = { allowAgents = [\"*\"] }", "nobody", unknown);
    check("subagents = { allowAgents = [] }", "main", not_allowed);
    // Those it prefers join those it may spawn, and it stays among them where there is no list.
    check("preferredSubagents = [{ a = \"finds things\" }]", "a", None);
    check("preferredSubagents = [{ a = \"finds things\" }]", "main", None);
    check("preferredSubagents = [{ a = \"finds things\" }]", "b", not_allowed);
    check("preferredSubagents = [\"a\"]\nsubagents = { allowAgents = [\"b\"] }", "a", None);
    check("preferredSubagents = [\"a\"]\nsubagents = { allowAgents = [\"b\"] }", "b", None);
    check(
        "preferredSubagents = [\"a\"]\nsubagents = { allowAgents = [\"b\"] }",
        "main",
        not_allowed,
    );
}

#[test]
fn an_agent_that_is_not_defined_may_spawn_itself() {
    let tree = Tree::open(
        crate::tree::config("[agents.defaults.subagents]\nallowAgents = [\"*\"]\n"),
        "made-up",
        offshoot_policy::RuntimeFacts::of_a_command("exec"),
    );
    let tree = tree.expect("it has the terms of the defaults");
    assert!(tree.ask(0, &ask("made-up"), Origin::Agent).is_ok());
    let itself = SpawnRequest { agent: None, ..ask("made-up") };
    let admission =
        tree.ask(0, &itself, Origin::Agent).expect("without a name it is the caller's own agent");
    assert_eq!(admission.agent.as_str(), "made-up");
}

#[test]
fn of_a_list_those_are_told_that_exist() {
    let text = format!(
        "[agents.defaults.subagents]\nallowAgents = [\"nobody\", \"made-up\", \"a\"]\n{AGENTS}"
    );
    let exec = offshoot_policy::RuntimeFacts::of_a_command("exec");
    for (root, expected) in [("made-up", &["made-up", "a"][..]), ("b", &["a"])] {
        let tree = Tree::open(crate::tree::config(&text), root, exec.clone()).expect("a root");
        let ids: Vec<_> = tree.terms(0).allowed_agents(&tree.config);
        let ids: Vec<_> = ids.into_iter().map(|id| id.as_str()).collect();
        assert_eq!(ids, expected, "{root}");
    }
}

#[test]
fn a_list_is_the_callers_own_and_not_the_chains() {
    let text = format!(
        "[agents.defaults.subagents]\nallowRecursiveSpawn = true\n{AGENTS}\
         [agents.list.subagents]\nallowAgents = [\"c\"]\n[[agents.list]]\nid = \"c\"\n\
         [[agents.list]]\nid = \"main\"\nsubagents = {{ allowAgents = [\"b\"] }}\n"
    );
    let mut tree = Tree::new(&text);
    assert!(tree.ask(0, &ask("c"), Origin::Agent).is_err());
    let c = tree.chain(&["b", "c"]);
    assert_eq!(tree.sessions[c].admission.agent.as_str(), "c");
}
