//! `offshoot audit`: real trees pass it, and what somebody changed afterwards does not.

use rusqlite::Connection;
use serde_json::Value;

use crate::command::Place;

/// A place in which agents have asked for agents, two levels deep; and the id of their tree.
fn with_a_tree() -> (Place, String) {
    let place = Place::new();
    let script = r#"
        [ "$OFFSHOOT_DEPTH" = 2 ] || for task in a b; do
            "$OFFSHOOT" spawn --wait "$task" -- sh "$0" >/dev/null || exit 9
        done
        echo done"#;
    let script = place.file("agent.sh", script);
    let run = ["run", "--json", "--allow-recursive-spawn", "--max-concurrent", "2", "start", "--"];
    let run = [&run[..], &["sh", script.to_str().expect("a path of ours")]].concat();
    let report = place.run(&run).expect_code(0).json();
    let id = report["runId"].as_str().expect("the report names the root").to_owned();
    (place, id)
}

fn change(place: &Place, statement: &str) {
    let database = Connection::open(place.path().join(".offshoot/offshoot.db")).expect("a record");
    assert!(database.execute(statement, ()).expect("it is one statement") > 0);
}

#[test]
fn a_tree_of_agents_passes() {
    let (place, id) = with_a_tree();
    let audited = place.run(&["audit", "--json", &id]).expect_code(0).json();
    assert_eq!(audited["holds"], true);
    assert_eq!(audited["chain"]["link"].as_str().map(str::len), Some(64));
    let findings = &audited["findings"];
    assert_eq!(findings["breaches"], Value::Array(Vec::new()));
    assert_eq!((&findings["runs"], &findings["spawns"]), (&7.into(), &6.into()));
    assert_eq!(findings["deepest"], 2);
    assert_eq!(findings["endings"]["completed"], 7);
    assert_eq!(findings["rules"]["maxConcurrent"], 2);
    let peak = findings["peakConcurrency"].as_u64().expect("a number");
    assert!((1..=2).contains(&peak), "{peak}");

    let told = place.run(&["audit", &id]).expect_code(0);
    let text = told.stdout();
    for line in ["runs    7", "spawns  6 of 64,", "depth   2", "chain   holds, last link"] {
        let words: Vec<&str> = line.split_whitespace().collect();
        let found = text.lines().any(|line| {
            line.split_whitespace().zip(&words).filter(|(a, b)| a == *b).count() == words.len()
        });
        assert!(found, "{line} in\n{text}");
    }
    assert!(text.ends_with("no breach\n"), "{text}");
}

#[test]
fn what_was_changed_afterwards_is_named() {
    let (place, id) = with_a_tree();
    change(
        &place,
        "UPDATE events SET body = replace(body, '\"depth\":2', '\"depth\":1') WHERE kind = 'admitted'",
    );
    let audited = place.run(&["audit", "--json", &id]).expect_code(1).json();
    assert_eq!(audited["holds"], false);
    assert_eq!(audited["chain"]["holds"], false);
    let error = audited["chain"]["error"].as_str().expect("it says what");
    assert!(error.contains("is not what was recorded"), "{error}");
    // The rest is read all the same, and shows what does not fit.
    let breaches = audited["findings"]["breaches"].as_array().expect("a list");
    assert!(breaches.iter().all(|breach| breach["rule"] == "lineage"), "{breaches:?}");
    assert!(breaches.len() >= 4, "{breaches:?}");
    let told = place.run(&["audit", &id]).expect_code(1);
    let text = told.stdout();
    assert!(text.contains("breach: event"), "{text}");
}

#[test]
fn a_record_that_cannot_be_read_in_a_place_is_read_elsewhere() {
    let (place, id) = with_a_tree();
    change(&place, "UPDATE events SET body = '{\"unheard_of\":1}' WHERE seq = 3");
    let audited = place.run(&["audit", "--json", &id]).expect_code(1).json();
    assert_eq!(audited["unreadable"].as_array().map(Vec::len), Some(1));
    assert_eq!(audited["findings"]["breaches"][0]["rule"], "sequence");
    place.run(&["audit", "nothing-like-it"]).expect_code(2);
}
