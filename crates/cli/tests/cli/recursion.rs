//! Claude Code that asks for children: the real program at every level of a tree, with our own tools.

use offshoot_fake_model_api::{Condition, Reply, Rule, ToolCall};
use offshoot_real_clients::install;
use serde_json::{Value, json};

use crate::stage::Stage;

const SPAWN: &str = "mcp__offshoot__sessions_spawn";
const RUN: &[&str] = &["-q", "run", "--runtime", "claude", "--allow-recursive-spawn"];

/// What a model of this task does at its n-th step.
fn at(task: &str, step: usize, reply: Reply) -> Rule {
    Rule::when(Condition::Prompt(task.into()), reply).and(Condition::Step(step))
}

/// Asks for children with these tasks, all at once, and waits for each.
fn spawns(tasks: &[&str]) -> Reply {
    children(tasks.iter().map(|task| json!({"task": task, "wait": true})))
}

fn children(inputs: impl IntoIterator<Item = Value>) -> Reply {
    let call = |input| ToolCall { name: SPAWN.to_owned(), input };
    Reply::Calls(inputs.into_iter().map(call).collect())
}

#[test]
fn each_answer_contains_the_answers_below_it() {
    let Some(clients) = install("each_answer_contains_the_answers_below_it") else { return };
    let told = |name: &str| Reply::text(format!("{name}({{{{result:/outcome/data}}}})"));
    let rules = [
        at("top", 1, spawns(&["middle"])),
        at("top", 2, told("top")),
        at("middle", 1, spawns(&["leaf"])),
        at("middle", 2, told("middle")),
        at("leaf", 1, Reply::text("fruit")),
    ];
    let stage = Stage::new(clients, rules);
    // One slot for three levels: whoever waits lends its own.
    let outcome = stage.run(&[RUN, &["--max-concurrent", "1", "top"]].concat()).expect_code(0);
    assert_eq!(outcome.stdout(), "top(middle(fruit))\n");
    assert_eq!(stage.agents(), 0);
    let tree = stage.place.run(&["tree", "--json"]).json();
    let leaf = &tree[0]["children"][0]["children"][0];
    assert_eq!((&leaf["depth"], &leaf["status"]), (&2.into(), &"completed".into()), "{tree}");
    assert_eq!(tree[0]["subtreeUsage"]["input"], 50, "five calls of ten tokens: {tree}");
}
