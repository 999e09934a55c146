//! `offshoot doctor --prove`: the limits of a configuration, each asked for more than it allows.

use std::fs;

use offshoot_proof::{LIMITS, Proof};
use offshoot_test_support::named_pipe;
use serde_json::Value;

use crate::command::Place;
use crate::walls::followed_until;

const STRICT: &str = r#"
[agents.defaults.subagents]
maxDepth = 2
maxConcurrent = 2
maxChildrenPerAgent = 3
maxSpawns = 4
maxSpawnsPerMinute = 4
maxIdenticalDelegations = 1
budget = { tokens = 900, usd = 0.0009 }
breaker = { failures = 1 }
retries = { count = 1 }
"#;

/// Returns the word of each probe: its limit, and whether it holds.
fn verdicts(proved: &Value) -> Vec<String> {
    let word = |probe: &Value| {
        let (limit, verdict) = (&probe["limit"], &probe["verdict"]["type"]);
        format!("{} {}", limit.as_str().unwrap_or("?"), verdict.as_str().unwrap_or("?"))
    };
    proved["probes"].as_array().expect("probes").iter().map(word).collect()
}

#[test]
fn every_limit_of_what_is_built_in_is_tried() {
    let place = Place::new();
    let proved = place.run(&["doctor", "--prove"]).expect_code(0);
    let table = proved.stdout();
    assert!(table.starts_with("LIMIT "), "{table}");
    for line in [
        ["maxDepth ", "3 ", "4 levels", "3 levels", "depth_limit", "holds"],
        ["maxConcurrent ", "8 ", "10 at once", "8 at once", "queued", "holds"],
        ["deadlineSeconds ", "none ", "3600 s", "", "deadline", "holds"],
    ] {
        let has = |row: &&str| row.starts_with(line[0]) && line.iter().all(|it| row.contains(it));
        assert!(table.lines().any(|row| has(&row)), "{line:?}\n{table}");
    }
    let again = place.run(&["doctor", "--prove"]).expect_code(0);
    assert_eq!(again.stdout().lines().count(), table.lines().count());
    // Nothing of it is among the trees of the user.
    assert_eq!(place.run(&["list", "--all", "--json"]).expect_code(0).json(), Value::Array(vec![]));
}

#[test]
fn a_strict_configuration_is_tried_as_it_stands() {
    let place = Place::new();
    place.file("offshoot.toml", STRICT);
    let proved = place.run(&["--config", "offshoot.toml", "doctor", "--prove", "--json"]);
    let proved = proved.expect_code(0).json();
    assert_eq!(proved["holds"], true);
    insta::assert_snapshot!(verdicts(&proved).join("\n"));
}

/// The limits over all trees stand in the user's file. Trees of the user that run neither count in the proof nor wait for it.
#[test]
fn limits_over_all_trees_are_tried_apart_from_other_trees() {
    let place = Place::new();
    let user = "[host]\nmaxConcurrent = 1\nmaxConcurrentPerAccount = 2\nusdPerDay = 3\n";
    place.file("home/.config/offshoot/config.toml", user);
    let proved = || {
        let proved = place.run(&["doctor", "--prove", "--json"]).expect_code(0).json();
        assert_eq!(proved["holds"], true);
        let of_host = verdicts(&proved).into_iter().filter(|word| word.starts_with("host."));
        of_host.collect::<Vec<_>>()
    };
    let held = [
        "host.maxConcurrent holds",
        "host.maxConcurrentPerAccount holds",
        "host.usdPerDay holds",
        "host.tokensPerDay notSet",
    ];
    assert_eq!(proved(), held);
    // A tree holds the only slot, and has reserved all of the day.
    named_pipe(place.path().join("pipe"));
    place.file("in", "piece\n");
    let words = ["-q", "map", "--budget-usd", "3", "in", "--", "sh", "-c", "read go < pipe"];
    let mut command = place.command(&words);
    let mut tree = command.spawn().expect("the program was built for this test");
    followed_until(&place, "  host_bound  ");
    place.wait_for_starts(1);
    assert_eq!(proved(), held);
    fs::write(place.path().join("pipe"), "go\n").expect("the agent reads it");
    assert!(tree.wait().expect("it was started here").success());
}

/// Each row of the table of limits says how it is proved: by this command, or by a test.
#[test]
fn each_limit_that_the_command_proves_has_its_row() {
    let place = Place::new();
    let proved = place.run(&["doctor", "--prove", "--json"]).expect_code(0).json();
    let rows: Vec<String> = verdicts(&proved);
    for limit in LIMITS.iter().filter(|limit| !matches!(limit.proof, Proof::Test(_))) {
        let row = format!("{} ", limit.key);
        assert_eq!(rows.iter().filter(|word| word.starts_with(&row)).count(), 1, "{row}");
    }
}

#[test]
fn a_configuration_that_is_wrong_is_not_tried() {
    let place = Place::new();
    place.file("offshoot.toml", "[agents.defaults.subagents]\nmaxDept = 2\n");
    let wrong = place.run(&["--config", "offshoot.toml", "doctor", "--prove"]).expect_code(2);
    assert!(wrong.stderr.contains("maxDepth"), "{}", wrong.stderr);
}
