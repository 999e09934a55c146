//! `offshoot doctor --prove`: the limits of a configuration, each asked for more than it allows.

use serde_json::Value;

use crate::command::Place;

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

#[test]
fn a_configuration_that_is_wrong_is_not_tried() {
    let place = Place::new();
    place.file("offshoot.toml", "[agents.defaults.subagents]\nmaxDept = 2\n");
    let wrong = place.run(&["--config", "offshoot.toml", "doctor", "--prove"]).expect_code(2);
    assert!(wrong.stderr.contains("maxDepth"), "{}", wrong.stderr);
}
