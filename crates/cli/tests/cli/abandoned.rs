//! Trees whose supervisor was killed, and which the operator ends.

use crate::command::Place;
use crate::doomed::Doomed;
use crate::resume::{WORK, killed_map, ran};

/// Returns the status of each run of the place, the root first.
fn statuses(place: &Place) -> Vec<String> {
    let runs = place.run(&["list", "--all", "--json"]).expect_code(0).json();
    let runs = runs.as_array().expect("a list of runs");
    let status = |run: &serde_json::Value| run["status"].as_str().expect("a text").to_owned();
    runs.iter().map(status).collect()
}

#[test]
fn a_tree_without_a_supervisor_is_cancelled_and_nothing_of_it_starts() {
    let place = killed_map();
    let before = [1, 2, 3, 4].map(|line| ran(&place, line));
    let said = place.run(&["cancel", "--all"]).expect_code(0);
    assert!(said.stderr.contains("no tree of this user runs"), "{}", said.stderr);
    assert!(said.stderr.contains("1 tree has lost its supervisor"), "{}", said.stderr);
    // Of its exit code nothing is said: supervisors of other tests are seen too.
    let doctor = place.run(&["doctor"]);
    assert!(doctor.stdout().contains("; 1 tree has lost its supervisor"), "{}", doctor.stdout());
    let said = place.run(&["cancel", "last"]).expect_code(0);
    assert!(said.stderr.contains("and nothing was started"), "{}", said.stderr);
    assert_eq!([1, 2, 3, 4].map(|line| ran(&place, line)), before);
    let open = |status: &String| !matches!(&**status, "completed" | "cancelled");
    assert!(!statuses(&place).iter().any(open), "{:?}", statuses(&place));
    let again = place.run(&["cancel", "last"]).expect_code(0);
    assert!(again.stderr.contains("nothing changed"), "{}", again.stderr);
    place.run(&["audit", "last"]).expect_code(0);
    place.run(&["resume"]).expect_code(2);
    // It is a tree like any other that was cancelled.
    place.file("go", "");
    let resumed = place.run(&["resume", "last"]).expect_code(0);
    assert!(resumed.stdout().ends_with("done 3\n---\ndone 4\n"), "{}", resumed.stdout());
    place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn no_run_of_a_tree_without_a_supervisor_ends_alone() {
    let place = killed_map();
    let before = statuses(&place);
    for words in [&["cancel", "in:3"][..], &["cancel", "last", "--only"]] {
        let said = place.run(words).expect_code(2);
        assert!(said.stderr.contains("no run of it can be ended alone"), "{}", said.stderr);
        assert!(said.stderr.contains("ends the whole tree"), "{}", said.stderr);
    }
    assert_eq!(statuses(&place), before);
}

/// The record may be looked at while the supervisor lives, which is gone when it is asked.
#[test]
fn a_supervisor_that_dies_meanwhile_keeps_no_tree_from_being_cancelled() {
    let place = Place::new();
    place.file("in", "1\n2\n3\n4\n");
    let words =
        ["map", "--split", "lines:1", "--max-concurrent", "1", "in", "--", "sh", "-c", WORK];
    let doomed = Doomed::start(place, &words);
    doomed.freeze();
    let cancel = doomed.place.command(&["cancel", "last"]).spawn();
    let cancel = cancel.expect("the program was built for this test");
    let place = doomed.kill();
    let ended = cancel.wait_with_output().expect("the child cannot be waited for");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let open = |status: &String| !matches!(&**status, "completed" | "cancelled");
    assert!(!statuses(&place).iter().any(open), "{:?}", statuses(&place));
    place.run(&["audit", "last"]).expect_code(0);
}
