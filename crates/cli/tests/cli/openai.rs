//! Models behind a chat endpoint, before a service that answers by rules.

use offshoot_fake_model_api::{Condition, FakeModelApi, Reply, Rule, Script, ToolCall, Usage};
use serde_json::json;

use crate::command::{Outcome, Place};

const RUN: &[&str] = &["-q", "run", "--config", "c.toml", "--runtime", "openai"];

/// A place whose configuration names the service.
pub(crate) fn stage(rules: impl IntoIterator<Item = Rule>, more: &str) -> (Place, FakeModelApi) {
    let api = FakeModelApi::start(Script::new(rules)).expect("a free port");
    let place = Place::new();
    let options =
        format!("[runtimes.openai.options]\nbaseUrl = \"{}/v1\"\nmodel = \"small\"\n", api.url());
    place.file("c.toml", format!("{options}{more}"));
    (place, api)
}

fn run(place: &Place, arguments: &[&str]) -> Outcome {
    place.run(&[RUN, arguments].concat())
}

/// A rule for the n-th step of a model with this task.
fn at(task: &str, step: usize, reply: Reply) -> Rule {
    Rule::when(Condition::Prompt(task.into()), reply).and(Condition::Step(step))
}

fn spawns(tasks: &[&str]) -> Reply {
    let call = |task: &&str| ToolCall {
        name: "sessions_spawn".to_owned(),
        input: json!({"task": task, "wait": true}),
    };
    Reply::Calls(tasks.iter().map(call).collect())
}

#[test]
fn each_answer_contains_the_answers_below_it() {
    let told = |name: &str| Reply::text(format!("{name}({{{{result:/outcome/data}}}})"));
    let rules = [
        at("top", 1, spawns(&["middle"])),
        at("top", 2, told("top")),
        at("middle", 1, spawns(&["leaf"])),
        at("middle", 2, told("middle")),
        at("leaf", 1, Reply::text("fruit")),
    ];
    let (place, _api) = stage(rules, "");
    // One slot for three levels: a run that waits lends its own.
    let arguments = ["--allow-recursive-spawn", "--max-concurrent", "1", "top"];
    assert_eq!(run(&place, &arguments).expect_code(0).stdout(), "top(middle(fruit))\n");
    let tree = place.run(&["tree", "--json"]).json();
    let leaf = &tree[0]["children"][0]["children"][0];
    assert_eq!((&leaf["depth"], &leaf["status"]), (&2.into(), &"completed".into()), "{tree}");
    assert_eq!(tree[0]["subtreeUsage"]["input"], 50, "five calls of ten tokens: {tree}");
}

#[test]
fn a_child_that_is_not_awaited_brings_a_further_turn() {
    let rules = [
        at("go", 1, Reply::call("sessions_spawn", json!({"task": "child"}))),
        at("go", 2, Reply::text("it will come")),
        at("child", 1, Reply::text("fruit")).and(Condition::Turn(1)),
        Rule::when(Condition::Turn(2), Reply::text("{{prompt}}")),
    ];
    let (place, _api) = stage(rules, "");
    let outcome = run(&place, &["go"]).expect_code(0);
    assert!(outcome.stdout().contains("fruit"), "{}", outcome.stdout());
}

#[test]
fn a_budget_holds_over_the_tree() {
    let rules = [
        at("top", 1, spawns(&["child"])).usage(Usage { input: 300, output: 0, ..Usage::default() }),
        Rule::always(Reply::text("x")).usage(Usage { input: 300, output: 0, ..Usage::default() }),
    ];
    let (place, _api) = stage(rules, "");
    let outcome = run(&place, &["--json", "--budget-tokens", "500", "top"]);
    let report = outcome.json();
    assert_eq!(report["error"]["code"], "budget", "{report}");
}

#[test]
fn an_answer_with_the_last_token_of_a_budget_is_complete() {
    let used = Usage { input: 300, output: 0, ..Usage::default() };
    let (place, _api) = stage([Rule::always(Reply::text("fruit")).usage(used)], "");
    for _ in 0..5 {
        let outcome = run(&place, &["--budget-tokens", "300", "top"]).expect_code(0);
        assert_eq!(outcome.stdout(), "fruit\n");
    }
}

#[test]
fn agents_of_two_runtimes_in_one_tree() {
    let rules = [
        at(
            "count",
            1,
            Reply::call("sessions_spawn", json!({"task": "x", "agentId": "counter", "wait": true})),
        ),
        at("count", 2, Reply::text("counted {{result:/outcome/data}}")),
    ];
    let agents = "[[agents.list]]\nid = \"counter\"\nruntime = \"exec\"\ncommand = [\"echo\", \"42\"]\n\
                  [agents.defaults.subagents]\nallowAgents = [\"counter\"]\n";
    let (place, _api) = stage(rules, agents);
    let outcome = run(&place, &["count"]).expect_code(0);
    assert!(outcome.stdout().starts_with("counted 42"), "{}", outcome.stdout());
}

#[test]
fn settings_of_agents_reach_it() {
    let big = Usage { input: 900, output: 200, ..Usage::default() };
    let rules = [
        Rule::when(Condition::Prompt("too long to go on with".into()), Reply::text("NOTES")),
        Rule::when(Condition::Prompt("NOTES".into()), Reply::text("finished from notes")),
        at("go", 1, spawns(&["child"])).usage(big),
        Rule::always(Reply::text("x")),
    ];
    let (place, _api) = stage(rules, "[agents.defaults.compaction]\natTokens = 1000\n");
    assert_eq!(run(&place, &["go"]).expect_code(0).stdout(), "finished from notes\n");
}

#[test]
fn what_it_costs_is_said_or_not_known() {
    let check = |more: &str, noted: &str, estimated: f64| {
        let (place, _api) = stage([Rule::always(Reply::text("x"))], more);
        let outcome =
            place.run(&["run", "--json", "--config", "c.toml", "--runtime", "openai", "t"]);
        let outcome = outcome.expect_code(0);
        assert!(outcome.stderr.contains(noted), "{more}: {}", outcome.stderr);
        assert_eq!(outcome.json()["cost"]["estimatedUsd"], json!(estimated), "{more}");
    };
    check("", "what this costs is not known", 0.0);
    let prices = "[prices.small]\ninputPerMillion = 100\noutputPerMillion = 200\n";
    check(prices, "this may cost up to $5.00", 0.002);
}

#[test]
fn settings_that_cannot_work_start_nothing() {
    let check = |more: &str, expected: &str| {
        let (place, api) = stage([], more);
        let outcome = run(&place, &["t"]);
        assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
        assert!(api.requests().is_empty());
        outcome
    };
    let key = check(
        "keyVariable = \"NOT_SET\"\n",
        "the variable NOT_SET, which holds the key, is not set",
    );
    key.expect_code(5);
    check("baseURL = \"x\"\n", "unknown field `baseURL`").expect_code(2);
}
