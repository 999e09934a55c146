//! A data folder of the first release, which `tests/first-release/make` has made: every later one reads it.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;

use crate::command::Place;
use crate::doomed::Doomed;

/// The labels of its trees and their states, the oldest first.
const TREES: [(&str, &str); 5] = [
    ("family", "completed"),
    ("lines", "failed"),
    ("slow", "timed_out"),
    ("sum", "completed"),
    ("tasks", "lost"),
];

fn first_release() -> Place {
    let place = Place::new();
    let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/first-release/data.tar.gz");
    place.outcome(place.command_of("tar", &["-xzf", archive]), &[]).expect_code(0);
    place
}

fn trees(place: &Place) -> Vec<(String, String)> {
    // With --all, because trees that ended more than an hour ago are not listed otherwise.
    let listed = place.run(&["list", "--all", "--json"]).expect_code(0).json();
    let word = |value: &Value| value.as_str().expect("a word").to_owned();
    let rows = listed.as_array().expect("a list of runs").iter();
    let rows = rows.filter(|row| row["parent"].is_null());
    rows.map(|row| (word(&row["label"]), word(&row["status"]))).collect()
}

#[test]
fn its_trees_are_shown_and_audited() {
    let place = first_release();
    assert_eq!(trees(&place), TREES.map(|(label, status)| (label.to_owned(), status.to_owned())));
    let all = place.run(&["list", "--all", "--json"]).expect_code(0).json();
    assert_eq!(all.as_array().expect("a list of runs").len(), 19);
    for run in all.as_array().expect("a list of runs") {
        let run = run["runId"].as_str().expect("the run has no id");
        for words in [&["show", run][..], &["tree", run], &["history", run], &["logs", run]] {
            place.run(words).expect_code(0);
            place.run(&[words, &["--json"]].concat()).expect_code(0);
        }
    }
    for (label, _) in TREES {
        let [first, second] = ["1", "2"].map(|format| {
            let events = place.run(&["events", label, "--json", "--format", format]).expect_code(0);
            events.stdout().lines().count()
        });
        assert!(first > 3 && first == second, "{label}: {first} {second}");
        let audited = place.run(&["audit", label, "--json"]).expect_code(0).json();
        assert_eq!(audited["holds"], true, "{audited}");
        assert_eq!(audited["findings"]["events"], first, "{audited}");
        place.run(&["stats", label]).expect_code(0);
    }
    let answer = place.run(&["show", "family", "--answer"]).expect_code(0);
    assert!(answer.stdout().starts_with("THE ELDER\n"), "what its children answered");
    assert_eq!(answer.stdout().matches('x').count(), 9000, "it is read from its file");
    let family = place.run(&["show", "family"]).expect_code(0);
    assert!(family.stdout().contains("the agent `nobody` is not defined"), "{}", family.stdout());
    let shown = place.run(&["tree", "--all"]).expect_code(0);
    for words in ["elder", "younger", "exited with code 3", "lines.txt:3", "exited with code 7"] {
        assert!(shown.stdout().contains(words), "{words}: {}", shown.stdout());
    }
    let merged = ["merge", "--strategy", "sum", "--children", "sum"];
    assert_eq!(place.run(&merged).expect_code(0).stdout(), "10\n");
}

const WHOLE: &str = "done one\n---\ndone two\n---\ndone three\n---\ndone four\n";

#[test]
fn its_open_tree_goes_on() {
    let place = first_release();
    assert_eq!(place.run(&["-q", "resume"]).expect_code(0).stdout(), WHOLE);
    assert_eq!(trees(&place)[4].1, "completed");
    let audited = place.run(&["audit", "tasks", "--json"]).expect_code(0).json();
    assert_eq!(audited["holds"], true, "{audited}");
    let admitted = |label: &str| {
        let events = place.run(&["events", label, "--json"]).expect_code(0);
        events.stdout().matches(r#""type":"admitted""#).count()
    };
    assert_eq!(admitted("tasks"), 5, "no piece is a new run");
    let again = place.run(&["resume"]).expect_code(2);
    assert!(again.stderr.contains("nothing to resume"), "{}", again.stderr);
    let gone = place.run(&["resume", "lines", "--failed"]).expect_code(2);
    assert!(gone.stderr.contains("there is no folder /"), "where it worked: {}", gone.stderr);
}

#[test]
fn its_open_tree_goes_on_after_a_second_crash() {
    let place = first_release();
    place.file("home/hang", "");
    symlink("../fifo", place.path().join("home/fifo")).expect("the name is free");
    let place = Doomed::start(place, &["-q", "resume"]).kill();
    fs::remove_file(place.path().join("home/hang")).expect("it was made above");
    assert_eq!(place.run(&["-q", "resume"]).expect_code(0).stdout(), WHOLE);
    place.run(&["audit", "tasks"]).expect_code(0);
}
