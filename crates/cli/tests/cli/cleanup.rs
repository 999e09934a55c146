//! The removal of sessions once their answers were handed over: who asks for it, and who sees it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::command::Place;

/// Each run below the root, by its label, and whether its folder is still there.
fn folders(place: &Place) -> BTreeMap<String, bool> {
    fn walk(place: &Place, node: &Value, found: &mut BTreeMap<String, bool>) {
        for child in node["children"].as_array().expect("children") {
            let label = child["label"].as_str().expect("each has a label");
            let run = child["runId"].as_str().expect("the run has no id");
            let folder = place.path().join(".offshoot/runs").join(run);
            found.insert(label.to_owned(), folder.exists());
            walk(place, child, found);
        }
    }
    let mut found = BTreeMap::new();
    let tree = place.run(&["tree", "--all", "--json"]).expect_code(0).json();
    tree.as_array().expect("roots").iter().for_each(|root| walk(place, root, &mut found));
    found
}

#[track_caller]
fn check<const N: usize>(place: &Place, expected: [(&str, bool); N]) {
    let expected = expected.map(|(label, stays)| (label.to_owned(), stays));
    assert_eq!(folders(place), BTreeMap::from(expected));
}

/// A program that reads the value `plan`, which gives it a folder of its own.
const READS: &str = r#"echo step > plan
reads() { "$OFFSHOOT" -q "$@" --context plan=plan x -- sh -c '"$OFFSHOOT" context get plan >/dev/null'; }
"#;

#[test]
fn the_request_for_a_child_says_whether_it_is_deleted() {
    let place = Place::new();
    let script = r#"
reads spawn --wait --label gone --cleanup delete
reads spawn --wait --label kept --cleanup keep
reads spawn --wait --label silent
reads run --label run --cleanup delete
echo '{"task":"x","label":"fanout"}' > tasks
"$OFFSHOOT" -q fanout --cleanup delete --context plan=plan --tasks tasks -- \
    sh -c '"$OFFSHOOT" context get plan >/dev/null'"#;
    place.tree(&[], &format!("{READS}{script}")).expect_code(0);
    let expected =
        [("gone", false), ("kept", true), ("silent", true), ("run", false), ("fanout", false)];
    check(&place, expected);
}

#[test]
fn the_command_line_says_it_for_all_who_say_nothing() {
    let place = Place::new();
    let script = "reads spawn --wait --label kept --cleanup keep; reads spawn --wait --label gone";
    place.tree(&["--cleanup", "delete"], &format!("{READS}{script}")).expect_code(0);
    check(&place, [("kept", true), ("gone", false)]);

    let place = Place::new();
    place.file("plan", "step\n");
    let map = ["-q", "map", "--cleanup", "delete", "--context", "plan=plan", "plan", "--", "cat"];
    place.run(&map).expect_code(0);
    check(&place, [("plan", false)]);
}

#[test]
fn what_becomes_of_a_session_is_one_of_two_words() {
    let place = Place::new();
    let outcome = place.run(&["run", "--cleanup", "burn", "x", "--", "cat"]).expect_code(2);
    assert!(outcome.stderr.contains("keep, delete"), "{}", outcome.stderr);
}

#[test]
fn what_a_session_above_keeps_is_not_deleted_by_one_below() {
    let place = Place::new();
    let script = r#"reads spawn --wait --label kept --cleanup delete
"$OFFSHOOT" -q spawn --wait --label above --cleanup keep x -- sh -c '
    "$OFFSHOOT" -q spawn --wait --label below --cleanup delete --context plan=plan x -- "$OFFSHOOT" context get plan'"#;
    place.tree(&["--cleanup", "keep"], &format!("{READS}{script}")).expect_code(0);
    check(&place, [("kept", true), ("above", true), ("below", true)]);

    let place = Place::new();
    place.tree(&[], &format!("{READS}{script}")).expect_code(0);
    check(&place, [("kept", false), ("above", true), ("below", true)]);
    let tree = place.run(&["tree", "--json"]).expect_code(0).json();
    let below = tree[0]["children"][0]["children"][0]["runId"].as_str().expect("it is shown");
    let shown = place.run(&["show", below]).expect_code(0);
    assert!(shown.stdout().contains("it is kept above it"), "{}", shown.stdout());
}

#[test]
fn what_cannot_be_removed_is_told_and_stays_in_sight() {
    let place = Place::new();
    let script = r#"echo step > plan
"$OFFSHOOT" -q spawn --wait --label stuck --cleanup delete --context plan=plan x -- sh -c '
    folder=.offshoot/runs/$OFFSHOOT_RUN_ID; rm -rf "$folder"; echo "no folder" > "$folder"'
until "$OFFSHOOT" tree | grep -c "not removed"; do :; done"#;
    // It is removed after its result was handed over, which no client is told.
    let outcome = place.tree(&[], script).expect_code(0);
    assert!(outcome.stdout().ends_with("1\n"), "told inside too: {}", outcome.stdout());
    let run = |arguments: &[&str]| place.run(arguments).expect_code(0).stdout().to_owned();
    let tree = run(&["tree"]);
    assert!(tree.contains("stuck 0") && tree.contains("not removed: cannot"), "{tree}");
    let tree = place.run(&["tree", "--json"]).json();
    let child = &tree[0]["children"][0];
    assert!(child["notRemoved"].is_string(), "{child}");
    let id = child["runId"].as_str().expect("the run has no id");
    assert!(run(&["show", id]).contains("could not be removed"));
    assert_eq!(run(&["events", id]).matches("could not be removed").count(), 1);
    place.run(&["audit", id]).expect_code(0);
}

#[test]
fn an_agent_sees_deleted_children_as_the_operator_does() {
    let place = Place::new();
    let script = r#"
"$OFFSHOOT" -q spawn --wait --label gone --cleanup delete x -- echo gone >/dev/null
"$OFFSHOOT" -q spawn --wait --label kept x -- echo kept >/dev/null
for all in "" --all; do
    "$OFFSHOOT" tree $all
    "$OFFSHOOT" --json tree $all | grep '"label"\|"deleted"'
    "$OFFSHOOT" list $all | grep -c .
done
"$OFFSHOOT" merge --strategy concatenate --children $OFFSHOOT_RUN_ID"#;
    let outcome = place.tree(&["--label", "top"], script).expect_code(0);
    let said: Vec<&str> = outcome.stdout().lines().map(str::trim).collect();
    let expected = [
        "main: top (depth 0)",
        "├─ main: kept (d",
        "└─ … 1 del",
        "\"label\": \"top\",",
        "\"label\": \"kept\",",
        "\"deleted\": 1,",
        "3",
        "main: top (depth 0)",
        "├─ main: gone (d",
        "└─ main: kept (d",
        "\"label\": \"top\",",
        "\"label\": \"gone\",",
        "\"label\": \"kept\",",
        "4",
        "gone",
        "---",
        "kept",
    ];
    let plain = |line: &&str| line.chars().take(10).collect::<String>();
    let said: Vec<String> = said.iter().map(plain).collect();
    let expected: Vec<String> = expected.iter().map(plain).collect();
    assert_eq!(said, expected, "{}", outcome.stdout());
}
