//! Claude Code that asks for children: the real program at every level of a tree, with our own tools.

use std::collections::BTreeSet;
use std::time::Duration;

use offshoot_fake_model_api::{Condition, Reply, Rule, ToolCall, Usage};
use offshoot_real_clients::install;
use serde_json::{Value, json};

use crate::stage::Stage;

const SPAWN: &str = "mcp__offshoot__sessions_spawn";
const RUN: &[&str] = &["-q", "run", "--runtime", "claude", "--allow-recursive-spawn"];

/// A rule for the n-th step of a model with this task.
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
    // One slot for three levels: a run that waits lends its own.
    let outcome = stage.run(&[RUN, &["--max-concurrent", "1", "top"]].concat()).expect_code(0);
    assert_eq!(outcome.stdout(), "top(middle(fruit))\n");
    assert_eq!(stage.agents(), 0);
    let tree = stage.place.run(&["tree", "--json"]).json();
    let leaf = &tree[0]["children"][0]["children"][0];
    assert_eq!((&leaf["depth"], &leaf["status"]), (&2.into(), &"completed".into()), "{tree}");
    assert_eq!(tree[0]["subtreeUsage"]["input"], 50, "five calls of ten tokens: {tree}");
}

#[test]
fn three_times_two_children_and_none_below_the_deepest_level() {
    let Some(clients) = install("three_times_two_children_and_none_below_the_deepest_level") else {
        return;
    };
    let told = |name: &str| Reply::text(format!("{name}({{{{results:/outcome/data}}}})"));
    let may_spawn = || Condition::Offers(SPAWN.into());
    let branches = children(["branch"; 3].map(|task| json!({ "task": task })));
    let all = "{{result:/ended/0/data}} {{result:/ended/1/data}} {{result:/ended/2/data}}";
    let rules = [
        at("root", 1, branches).and(may_spawn()),
        at("root", 2, Reply::call("mcp__offshoot__sessions_wait", json!({}))),
        at("root", 3, Reply::text(format!("root({all})"))),
        at("branch", 1, spawns(&["twig", "bud"])).and(may_spawn()),
        at("branch", 2, told("branch")),
        at("twig", 1, spawns(&["leaf"])).and(may_spawn()),
        at("twig", 2, told("twig")),
        at("bud", 1, Reply::text("bud")),
        at("leaf", 1, Reply::text("leaf")).and(Condition::Not(Box::new(may_spawn()))),
    ];
    let stage = Stage::new(clients, rules);
    let outcome = stage.run(&[RUN, &["--max-concurrent", "3", "root"]].concat()).expect_code(0);
    // The two calls of one message are made at once, and their answers stand in the order in which they came.
    let said = outcome.stdout().replace("bud twig(leaf)", "twig(leaf) bud");
    let branch = "branch(twig(leaf) bud)";
    assert_eq!(said, format!("root({branch} {branch} {branch})\n"));
    let tree = stage.place.run(&["tree", "--json"]).json();
    let time = |branch: usize, end: &str| tree[0]["children"][branch][end].to_string();
    assert!(time(2, "startedAt") < time(0, "endedAt"), "they run at once: {tree}");
    let deepest = stage.api.conversations().into_iter().find(|asked| asked.prompt == "leaf");
    let deepest = deepest.expect("there were leaves");
    assert!(deepest.tools.contains(&"mcp__offshoot__sessions_status".to_owned()), "{deepest:?}");
    assert!(deepest.system.contains("the deepest level: you cannot"), "{}", deepest.system);
}

#[test]
fn what_a_parent_has_spent_is_not_promised_to_a_child() {
    let name = "what_a_parent_has_spent_is_not_promised_to_a_child";
    let Some(clients) = install(name) else { return };
    // Four fifths of the dollar, in the call that asks for the child.
    let dear = Usage { input: 200_000, output: 0, ..Usage::default() };
    let child = json!({"task": "child", "wait": true, "budget": {"usd": 0.5}});
    let rules = [
        at("top", 1, children([child])).usage(dear),
        at("top", 2, Reply::text("{{result}}")),
        at("child", 1, Reply::text("never asked")),
    ];
    let stage = Stage::new(clients, rules);
    let outcome = stage.run(&[RUN, &["--budget-usd", "1", "top"]].concat()).expect_code(0);
    assert!(outcome.stdout().contains("budget_exhausted"), "{}", outcome.stdout());
    assert!(outcome.stdout().contains("0.20 usd left"), "{}", outcome.stdout());
}

#[test]
fn a_call_sent_all_the_same_is_refused() {
    let Some(clients) = install("a_call_sent_all_the_same_is_refused") else { return };
    // A server of its own, which it starts by hand, lists no such tool either, and the call is refused all the same.
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"sessions_spawn","arguments":{"task":"x"}}}"#;
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"sh","version":"1"}}}"#;
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let offshoot = env!("CARGO_BIN_EXE_offshoot");
    let by_hand = format!("printf '%s\\n' '{hello}' '{ready}' '{call}' | {offshoot} mcp");
    let rules = [
        at("top", 1, spawns(&["deep"])),
        at("top", 2, Reply::text("{{result:/outcome/data}}")),
        at("deep", 1, Reply::call(SPAWN, json!({"task": "x"}))),
        at("deep", 2, Reply::call("Bash", json!({"command": by_hand}))),
        at("deep", 3, Reply::text("{{result}}")),
    ];
    let stage = Stage::new(clients, rules);
    stage
        .place
        .file("c.toml", "[agents.defaults.subagents.tools]\nallow = [\"exec\", \"spawn\"]\n");
    let limits = ["--config", "c.toml", "--max-depth", "1", "top"];
    let outcome = stage.run(&[RUN, &limits].concat()).expect_code(0);
    assert!(outcome.stdout().contains("depth_limit"), "{}", outcome.stdout());
    let unknown = stage.api.conversations().into_iter().find(|asked| asked.step == 2);
    let answer = unknown.expect("it went on").tool_results.join("\n");
    assert!(answer.contains("No such tool available"), "{answer}");
}

#[test]
fn how_a_child_ended_reaches_its_parent() {
    let Some(clients) = install("how_a_child_ended_reaches_its_parent") else { return };
    let call = Reply::call("Bash", json!({"command": "true"}));
    let dear = Usage { input: 20_000, ..Usage::default() };
    let inputs = [
        json!({"task": "broken", "wait": true}),
        json!({"task": "endless", "wait": true, "runTimeoutSeconds": 5}),
        json!({"task": "dear", "wait": true, "budget": {"usd": 0.01}}),
        json!({"task": "limited", "wait": true}),
        json!({"task": "stranger", "wait": true}),
    ];
    let rules = [
        at("parent", 1, children(inputs)),
        at("parent", 2, Reply::text("[{{results:}}]")),
        at("broken", 1, Reply::invalid("no such thing")),
        at("endless", 1, Reply::Hang),
        at("dear", 1, call).usage(dear),
        at("dear", 2, Reply::text("still going")),
        at("limited", 1, Reply::rate_limit(Duration::ZERO)).times(1),
        at("limited", 1, Reply::text("recovered")),
        at("stranger", 1, Reply::unauthorized()),
    ];
    let stage = Stage::new(clients, rules);
    let outcome = stage.run(&[RUN, &["parent"]].concat()).expect_code(0);
    let told = outcome.stdout().trim().replace("} {", "},{");
    let told: Value = serde_json::from_str(&told).expect("answers of tools are JSON");
    let ended = |child: usize| {
        let outcome = &told[child]["outcome"];
        let what =
            if outcome["data"].is_null() { &outcome["error"]["message"] } else { &outcome["data"] };
        (
            outcome["status"].as_str().expect("a status"),
            what.as_str().expect("the message is not text"),
        )
    };
    // The calls of one message are made at once, so the answers stand in the order in which the children ended.
    let mut all: Vec<_> = (0..5).map(ended).collect();
    all.sort_unstable();
    let expected = [
        ("completed", "recovered"),
        ("failed", "out of budget (usd)"),
        ("failed", "runtime error: API Error: 400 no such thing"),
        (
            "failed",
            "runtime error: the service refuses the key or the login (authentication_failed)",
        ),
        ("timed_out", "timed out after 5 s"),
    ];
    assert_eq!(all, expected);
    assert_eq!(stage.agents(), 0);
}

#[test]
fn results_come_as_one_more_turn() {
    let Some(clients) = install("results_come_as_one_more_turn") else { return };
    let asks = children(["apples", "pears"].map(|task| json!({ "task": task })));
    let rules = [
        at("top", 1, asks),
        at("top", 2, Reply::text("not known yet")),
        at("apples", 1, Reply::text("seven apples")).and(Condition::Turn(1)),
        at("pears", 1, Reply::text("two pears")).and(Condition::Turn(1)),
        Rule::when(Condition::Turn(2), Reply::text("known now:\n{{prompt}}")),
    ];
    for park in ["keep", "resume"] {
        let stage = Stage::new(clients, rules.clone());
        stage.place.file("c.toml", format!("[runtimes.claude]\npark = \"{park}\"\n"));
        let limits = ["--config", "c.toml", "--max-concurrent", "1", "top"];
        let outcome = stage.run(&[RUN, &limits].concat()).expect_code(0);
        let said = outcome.stdout();
        assert!(said.starts_with("known now:"), "{park}: {said}");
        assert!(said.contains("seven apples") && said.contains("two pears"), "{park}: {said}");
        let tree = stage.place.run(&["tree", "--json"]).json();
        assert_eq!(tree[0]["ownUsage"]["input"], 30, "{park}: three calls of ten tokens: {tree}");
    }
}

#[test]
fn an_answer_that_waits_for_the_levels_below_travels_up() {
    let Some(clients) = install("an_answer_that_waits_for_the_levels_below_travels_up") else {
        return;
    };
    let spawn = |task: &str| children([json!({ "task": task })]);
    let rules = [
        at("top", 1, spawn("middle")),
        at("top", 2, Reply::text("top too early")),
        at("middle", 1, spawn("leaf")).and(Condition::Turn(1)),
        at("middle", 2, Reply::text("middle too early")).and(Condition::Turn(1)),
        at("leaf", 1, Reply::text("fruit")).and(Condition::Turn(1)),
        // The results of the middle name the leaf, so the deeper level is asked for first.
        Rule::when(Condition::Turn(2), Reply::text("top(middle(fruit))"))
            .and(Condition::Prompt("middle(fruit)".into())),
        Rule::when(Condition::Turn(2), Reply::text("middle(fruit)"))
            .and(Condition::Prompt("fruit".into())),
    ];
    let stage = Stage::new(clients, rules);
    let outcome = stage.run(&[RUN, &["--max-concurrent", "1", "top"]].concat()).expect_code(0);
    assert_eq!(outcome.stdout(), "top(middle(fruit))\n");
    let early = stage.api.conversations().into_iter().filter(|asked| asked.turn == 2);
    assert_eq!(early.count(), 2, "two levels have one more turn each");
}

#[test]
fn agents_think_with_models_of_their_own() {
    let Some(clients) = install("agents_think_with_models_of_their_own") else { return };
    let scouts = children(["look", "look closer"].map(|task| {
        let model = (task == "look closer").then_some("claude-of-the-request");
        json!({"task": task, "agentId": "scout", "wait": true, "model": model})
    }));
    let rules = [
        at("top", 1, scouts),
        at("top", 2, Reply::text("{{model}}, {{results:/outcome/data}}")),
        at("look", 1, Reply::text("{{model}}")),
    ];
    let stage = Stage::new(clients, rules);
    stage.place.file(
        "c.toml",
        "[[agents.list]]\nid = \"main\"\nmodel = \"claude-large\"\n\
         subagents = { allowAgents = [\"scout\"] }\n\
         [[agents.list]]\nid = \"scout\"\nmodel = { primary = \"claude-small\" }\n",
    );
    let outcome = stage.run(&[RUN, &["--config", "c.toml", "top"]].concat()).expect_code(0);
    let said = outcome.stdout();
    let (own, scouts) = said.trim().split_once(", ").expect("its own model, then theirs");
    let scouts: BTreeSet<&str> = scouts.split(' ').collect();
    assert_eq!(
        (own, scouts),
        ("claude-large", BTreeSet::from(["claude-small", "claude-of-the-request"]))
    );
    let first = &stage.api.conversations()[0];
    assert!(first.system.contains("Agents you may start: scout."), "{}", first.system);
}
