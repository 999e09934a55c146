//! Paid agents that a program starts, in a tree without a budget in dollars.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use offshoot_fake_model_api::{FakeModelApi, Reply, Rule, Usage};

use crate::command::{Outcome, Place};
use crate::metered::{KEY, prices};
use crate::openai;

/// A program that starts readers, one after the other, until it gets none any more, and prints how many it got.
const GREEDY: &str = r#"
"$OFFSHOOT" spawn --agent reader --budget-usd 5 "all pages" > all 2> refused
got=0
while [ $got -lt 60 ] && "$OFFSHOOT" spawn --wait --agent reader "page $got" > answer; do
    got=$((got + 1))
done
echo $got
"#;

/// A reader whose model is asked through the meter, and trees that may cost so many dollars by default.
fn stage(default_usd: &str) -> (Place, FakeModelApi) {
    // An answer costs one and a half cents.
    let used = Usage { input: 10, output: 1_000, ..Usage::default() };
    let rule = Rule::always(Reply::text("read")).usage(used);
    let (place, api) = openai::stage([rule], "keyVariable = \"OPERATOR_KEY\"\n");
    let prices = prices().replace("priced-1", "small");
    let config = fs::read_to_string(place.path().join("c.toml")).expect("it was written");
    let openai = format!("[runtimes.openai]\nmeter = \"on\"\ndefaultUsd = {default_usd}\n");
    let agents = "[[agents.list]]\nid = \"main\"\n[agents.list.subagents]\nallowAgents = [\"main\", \"reader\"]\nallowRecursiveSpawn = true\nmaxSpawns = 100\n\n[[agents.list]]\nid = \"reader\"\nruntime = \"openai\"\n";
    place.file("c.toml", format!("{config}\n{openai}\n{agents}\n{prices}"));
    (place, api)
}

fn run(place: &Place, words: &[&str]) -> Outcome {
    let words = [&["--config", "c.toml", "-q"], words].concat();
    let mut command = place.command(&words);
    command.env("OPERATOR_KEY", KEY);
    place.outcome(command, &[])
}

fn metered(place: &Place) -> f64 {
    let listed = place.run(&["list", "--json", "--limit", "1"]).expect_code(0).json();
    listed[0]["cost"]["meteredUsd"].as_f64().expect("it was metered")
}

#[test]
fn paid_agents_of_a_program_share_what_a_tree_may_cost_by_default() {
    let (place, api) = stage("0.2");
    for _ in 0..2 {
        let before = api.requests().len();
        let _ = fs::remove_file(place.path().join("refused"));
        let outcome = run(&place, &["run", "read all", "--", "sh", "-c", GREEDY]).expect_code(0);
        let got: usize = outcome.stdout().trim().parse().expect("a number");
        assert!((1..60).contains(&got), "{got}");
        // The last one was started, and had too little left for a request.
        assert_eq!(api.requests().len() - before, got);
        let refused = fs::read_to_string(place.path().join("refused")).expect("it was refused");
        assert!(refused.contains("runtimes.openai.defaultUsd"), "{refused}");
        assert!(metered(&place) <= 0.2, "{}", metered(&place));
        place.run(&["audit", "last"]).expect_code(0);
        let left = place.run(&["budget", "last"]).expect_code(0);
        assert!(left.stdout().contains("by default"), "{}", left.stdout());
        assert!(left.stdout().contains(" of $0.20 are used"), "{}", left.stdout());
        let told = place.run(&["events", "last"]).expect_code(0);
        let why = "no limit → $0.10 of the $0.20 that paid agents of a tree without a budget share";
        assert!(told.stdout().contains(why), "{}", told.stdout());
    }
}

/// A program that costs nothing asks for dollars for another one, which starts readers.
const NESTED: &str = r#"
"$OFFSHOOT" spawn --budget-usd 0.21 "too much" -- true 2> refused && exit 1
readers='got=0; while [ $got -lt 60 ] && "$OFFSHOOT" spawn --wait --agent reader "$OFFSHOOT_RUN_ID $got" > answer; do got=$((got + 1)); done'
"$OFFSHOOT" spawn --wait --budget-usd 0.15 "inside" -- sh -c "$readers; echo \$got" || exit 1
sh -c "$readers"
"#;

#[test]
fn no_program_leaves_the_default_by_asking_for_more() {
    let (place, api) = stage("0.2");
    let config = fs::read_to_string(place.path().join("c.toml")).expect("it was written");
    place.file("c.toml", format!("[runtimes.exec]\ncost = \"none\"\n\n{config}"));
    run(&place, &["run", "read all", "--", "sh", "-c", NESTED]).expect_code(0);
    let refused = fs::read_to_string(place.path().join("refused")).expect("it was refused");
    assert!(refused.contains("0.21 usd cannot be reserved"), "{refused}");
    assert!(!api.requests().is_empty());
    let listed = place.run(&["show", "last", "--json"]).expect_code(0).json();
    let cost = listed["subtreeCost"]["meteredUsd"].as_f64().expect("it was metered");
    assert!(cost > 0.0 && cost <= 0.2, "{cost}");
    place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn a_budget_takes_the_place_of_the_default() {
    let (place, _api) = stage("0.2");
    let words = ["run", "--budget-usd", "4", "read all", "--", "sh", "-c", GREEDY];
    let outcome = run(&place, &words).expect_code(0);
    assert_eq!(outcome.stdout(), "60\n", "{}", outcome.stderr);
    place.run(&["audit", "last"]).expect_code(0);
}

/// Pieces that are asked for together get equal parts, however many they are.
#[test]
fn pieces_inside_a_program_get_equal_parts_of_the_default() {
    let (place, api) = stage("2");
    place.file("pages", (1..=12).map(|page| format!("{page}\n")).collect::<String>());
    let inside = "\"$OFFSHOOT\" map --split lines:1 --agent reader --task read pages > answers";
    for round in 1..=2 {
        let outcome = run(&place, &["run", "read all", "--", "sh", "-c", inside]);
        outcome.expect_code(0);
        assert_eq!(api.requests().len(), round * 12);
        let list = place.run(&["list", "--tree", "last", "--all", "--json"]).expect_code(0).json();
        let ids = list.as_array().expect("a list").iter().filter(|run| run["depth"] == 1);
        let granted = |run: &serde_json::Value| {
            let id = run["runId"].as_str().expect("an id");
            place.run(&["show", id, "--json"]).expect_code(0).json()["grant"]["budget"]["usd"]
                .clone()
        };
        let granted: Vec<_> = ids.map(granted).collect();
        assert_eq!(granted.len(), 12);
        assert!(granted.iter().all(|usd| *usd == granted[0]), "{granted:?}");
        place.run(&["audit", "last"]).expect_code(0);
    }
}

/// A local model that costs nothing, for which the real one stands in.
#[test]
fn a_free_root_that_may_go_over_to_a_paid_runtime_has_its_budget() {
    let rule = Rule::always(Reply::text("local"));
    let (place, _api) = openai::stage([rule], "\n[runtimes.openai]\ncost = \"none\"\n");
    let claude = place.file("bin/claude", "#!/bin/sh\necho 2.1.330\n");
    fs::set_permissions(claude, Permissions::from_mode(0o755)).expect("the mode cannot be set");
    let options = fs::read_to_string(place.path().join("c.toml")).expect("it was written");
    let agent = |fallback: &str| {
        format!(
            "{options}\n[[agents.list]]\nid = \"main\"\nruntime = \"openai\"\nmodel = {{ fallbacks = [{fallback}] }}\n"
        )
    };
    let bin = place.path().join("bin");
    for (fallback, budget) in
        [("{ runtime = \"claude\" }", Some(5.0)), ("{ runtime = \"openai\", model = \"b\" }", None)]
    {
        place.file("c.toml", agent(fallback));
        let words = ["--config", "c.toml", "run", "hi"];
        let outcome = place.run_with("PATH", &bin, &words).expect_code(0);
        assert_eq!(outcome.stdout().trim(), "local");
        let said = outcome.stderr.contains("this may cost up to $5.00");
        assert_eq!(said, budget.is_some(), "{}", outcome.stderr);
        let shown = place.run(&["events", "last", "--json"]).expect_code(0);
        let first = shown.stdout().lines().next().expect("its admission");
        let first: serde_json::Value = serde_json::from_str(first).expect("a line is JSON");
        assert_eq!(first["kind"]["grant"]["budget"]["usd"].as_f64(), budget, "{first}");
    }
}
