//! Trees whose supervisor was killed, and which the operator ends.

use crate::command::{Outcome, Place};
use crate::doomed::Doomed;
use crate::resume::{WORK, killed_map, ran};

/// Returns the status of each run of the place, the root first.
fn statuses(place: &Place) -> Vec<String> {
    let runs = place.run(&["list", "--all", "--json"]).expect_code(0).json();
    let runs = runs.as_array().expect("a list of runs");
    let status = |run: &serde_json::Value| run["status"].as_str().expect("a text").to_owned();
    runs.iter().map(status).collect()
}

/// Asks this of all trees of the place. Without the folder these would be the trees of other tests, too.
fn all_here(place: &Place, command: &str) -> Outcome {
    let folder = place.path().join(".offshoot");
    place.run(&[command, "--all", "--data-dir", folder.to_str().expect("a plain name")])
}

/// A supervisor that is stopped, by Ctrl-Z or a debugger, hears nothing, and its agents go on.
#[test]
fn what_all_trees_are_asked_fails_where_a_supervisor_does_not_answer() {
    let hangs = ["-q", "run", "x", "--", "sh", "-c", "echo up > fifo; exec sleep 600"];
    let doomed = Doomed::start(Place::new(), &hangs);
    doomed.freeze();
    let said = all_here(&doomed.place, "cancel").expect_code(1).stderr;
    let who = format!("the supervisor with the process {} does not answer", doomed.number());
    assert!(said.contains(&who) && said.contains("its tree was not asked"), "{said}");
    assert!(!said.contains("nothing changed"), "{said}");
    doomed.kill();
}

#[test]
fn a_tree_without_a_supervisor_is_cancelled_and_nothing_of_it_starts() {
    let place = killed_map();
    let before = [1, 2, 3, 4].map(|line| ran(&place, line));
    let said = all_here(&place, "cancel").expect_code(0);
    assert!(said.stderr.contains("no tree in this data folder runs"), "{}", said.stderr);
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
