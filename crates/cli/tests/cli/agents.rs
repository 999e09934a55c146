//! `offshoot agents list --capabilities`: which agent may delegate to which, how deep and with which tools.

use serde_json::json;

use crate::command::{Place, check};

/// Two agents that prefer each other, one that may have no children, and one that may name none.
const TEAM: &str = r#"
[[agents.list]]
id = "lead"
description = "Plans the work.\nAnd more."
canDelegate = true
preferredSubagents = [{ scribe = "for texts" }, { reader = "to look things up" }]
subagents.maxDepth = 4

[[agents.list]]
id = "scribe"
description = "Writes."
canDelegate = true
preferredSubagents = [{ lead = "for plans" }]
tools.deny = ["fetch"]

[[agents.list]]
id = "reader"
canDelegate = false
tools.allow = ["read", "search"]

[[agents.list]]
id = "loner"
subagents.allowAgents = []
"#;

#[test]
fn capabilities_are_listed_with_the_cycles() {
    let place = Place::new();
    place.file("team.toml", TEAM);
    let list = ["agents", "list", "--capabilities", "--config", "team.toml"];
    check("agents_capabilities", &place.run(&list));
    let told = place.run(&[&list[..], &["--json"]].concat()).expect_code(0).json();
    let lead = &told["agents"][1];
    assert_eq!(lead["agent"], "lead");
    let tools = json!({"allow": null, "deny": []});
    assert_eq!(lead["given"], json!({"maySpawn": true, "maxDepth": 4, "tools": tools}));
    let reader = &lead["delegatesTo"][2];
    assert_eq!(reader["why"], "to look things up");
    assert_eq!(reader["given"]["maySpawn"], false);
    assert_eq!(reader["given"]["tools"]["allow"], json!(["read", "search"]));
    assert_eq!(told["agents"][3]["refusal"]["code"], "cannot_delegate");
    let cycle = &told["cycles"][0];
    assert_eq!(cycle["path"], json!(["lead", "scribe", "lead"]));
    assert_eq!((&cycle["allowed"], &cycle["refusal"]["code"]), (&json!(false), &json!("cycle")));
    // What the list says is what a tree does.
    let script = r#"for agent in scribe reader loner; do
            "$OFFSHOOT" -q spawn --wait --agent "$agent" x >/dev/null 2>&1; echo "$agent $?"
        done"#;
    let team = TEAM.replace("description = \"Writes.\"", "command = [\"echo\"]");
    let team = team.replace("canDelegate = false", "canDelegate = false\ncommand = [\"echo\"]");
    place.file("programs.toml", team);
    let run = ["-q", "run", "--config", "programs.toml", "--agent", "lead", "x", "--"];
    let outcome = place.run(&[&run[..], &["sh", "-c", script]].concat()).expect_code(0);
    assert_eq!(outcome.stdout(), "scribe 0\nreader 0\nloner 3\n");
}

#[test]
fn a_cycle_that_the_settings_allow_is_said_to_be() {
    let place = Place::new();
    place.file("team.toml", TEAM);
    let list = ["agents", "list", "--capabilities", "--config", "team.toml"];
    let key = "OFFSHOOT__agents__defaults__subagents__allowCycles";
    let told = place.run_with(key, "true", &list).expect_code(0);
    let last = told.stdout().lines().last().expect("a line");
    assert_eq!(last.trim(), "lead → scribe → lead  allowed");
    let none = place.run(&["agents", "list", "--capabilities"]).expect_code(0);
    assert_eq!(none.stdout().lines().last(), Some("no cycles"));
}

/// A name that is misspelt is missing from the table, so that it is said.
#[test]
fn an_agent_that_is_not_defined_is_named_beside_the_table() {
    let place = Place::new();
    let agents =
        "[[agents.list]]\nid = \"lead\"\npreferredSubagents = [{ ghost = \"hauntings\" }]\n";
    place.file("team.toml", agents);
    let listed = ["agents", "list", "--capabilities", "--config", "team.toml"];
    let listed = place.run(&listed).expect_code(0);
    assert!(listed.stderr.contains("`ghost`"), "{}", listed.text());
}
