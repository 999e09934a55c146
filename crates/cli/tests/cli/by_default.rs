//! Paid agents that a program starts, in a tree without a budget in dollars.

use std::fs;

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

/// A reader whose model is asked through the meter, and trees that may cost twenty cents by default.
fn stage(more: &str) -> (Place, FakeModelApi) {
    // An answer costs one and a half cents.
    let used = Usage { input: 10, output: 1_000, ..Usage::default() };
    let rule = Rule::always(Reply::text("read")).usage(used);
    let (place, api) = openai::stage([rule], "keyVariable = \"OPERATOR_KEY\"\n");
    let prices = prices().replace("priced-1", "small");
    let config = fs::read_to_string(place.path().join("c.toml")).expect("it was written");
    let openai = "[runtimes.openai]\nmeter = \"on\"\ndefaultUsd = 0.2\n";
    let agents = "[[agents.list]]\nid = \"main\"\n[agents.list.subagents]\nallowAgents = [\"reader\"]\nmaxSpawns = 100\n\n[[agents.list]]\nid = \"reader\"\nruntime = \"openai\"\n";
    place.file("c.toml", format!("{config}\n{openai}\n{agents}\n{more}\n{prices}"));
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
    let (place, api) = stage("");
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
        let told = place.run(&["events", "last"]).expect_code(0);
        let why = "no limit → $0.10 of the $0.20 that paid agents of a tree without a budget share";
        assert!(told.stdout().contains(why), "{}", told.stdout());
    }
}

#[test]
fn a_budget_takes_the_place_of_the_default() {
    let (place, _api) = stage("");
    let words = ["run", "--budget-usd", "4", "read all", "--", "sh", "-c", GREEDY];
    let outcome = run(&place, &words).expect_code(0);
    assert_eq!(outcome.stdout(), "60\n", "{}", outcome.stderr);
    place.run(&["audit", "last"]).expect_code(0);
}
