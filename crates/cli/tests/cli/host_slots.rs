//! Slots that all trees of a user share: two trees of two projects, each with its own record.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Command};

use offshoot_test_support::named_pipe;
use serde_json::{Value, json};

use crate::command::Place;
use crate::walls::followed_until;

/// A user whose trees have this many slots together, and a map of as many pieces.
fn shared(slots: u32, pieces: usize) -> Place {
    let place = Place::new();
    place.file("home/.config/offshoot/config.toml", format!("[host]\nmaxConcurrent = {slots}\n"));
    place.file("in", "piece\n".repeat(pieces));
    place
}

/// Another project of the same user, with a map of as many pieces.
pub(crate) fn neighbour(of: &Place, pieces: usize) -> Place {
    let place = Place::new();
    let home = place.path().join("home");
    fs::remove_dir(&home).expect("it is empty");
    symlink(of.path().join("home"), home).expect("there is nothing else");
    place.file("in", "piece\n".repeat(pieces));
    place
}

/// A map of which each piece runs this script.
fn map(place: &Place, script: &str) -> (Command, Child) {
    let words = ["-q", "map", "--split", "lines:1", "--merge", "concatenate", "in", "--"];
    let mut command = place.command(&[&words[..], &["sh", "-c", script]].concat());
    let child = command.spawn().expect("the program was built for this test");
    (command, child)
}

/// The events of the newest tree of a place: the time of each, its kind, and true if it is of the root.
pub(crate) fn events(place: &Place) -> Vec<(String, String, bool)> {
    let events = place.run(&["events", "last", "--json"]).expect_code(0);
    let event = |line: &str| {
        let event: Value = serde_json::from_str(line).expect("a line is JSON");
        let kind = event["kind"]["type"].as_str().expect("every event has a kind").to_owned();
        let at = event["at"].as_str().expect("every event has a time").to_owned();
        (at, kind, event["run"] == event["root"])
    };
    events.stdout().lines().map(event).collect()
}

pub(crate) fn count(events: &[(String, String, bool)], wanted: &str) -> usize {
    events.iter().filter(|(_, kind, _)| kind == wanted).count()
}

/// The most runs of all these trees that held a slot at once, without their roots.
pub(crate) fn most_at_once(trees: &[Vec<(String, String, bool)>]) -> i32 {
    let mut all = trees.concat();
    // At one moment what ends ends before the next one starts.
    all.sort_by_key(|(at, kind, _)| (at.clone(), kind == "starting"));
    let (mut running, mut most) = (0, 0);
    for (_, kind, is_root) in &all {
        running += match &**kind {
            "starting" => 1,
            "ended" if !is_root => -1,
            _ => 0,
        };
        most = most.max(running);
    }
    most
}

#[test]
fn host_caps_hold_over_two_trees() {
    let one = shared(2, 12);
    let other = neighbour(&one, 12);
    let trees = [&one, &other].map(|place| (place, map(place, "cat; sleep 0.05")));
    for (place, (command, child)) in trees {
        let outcome = place.finish(child, &command, &[]).expect_code(0);
        assert_eq!(outcome.stdout().matches("piece").count(), 12);
        place.run(&["audit", "last"]).expect_code(0);
    }
    let told = [&one, &other].map(events);
    assert_eq!(most_at_once(&told), 2, "as many as may, over both");
    for events in &told {
        let full = count(events, "host_full");
        assert_eq!((count(events, "host_bound"), count(events, "host_free")), (1, full));
        assert!(
            full > 0,
            "the other tree was there all the time, and each has more pieces than slots"
        );
    }
    // They took turns: neither waited for the end of the other.
    let span = |events: &[(String, String, bool)]| {
        let starts =
            || events.iter().filter(|(_, kind, _)| kind == "starting").map(|it| it.0.clone());
        (starts().min().expect("a start"), starts().max().expect("a start"))
    };
    let [(first, last), (other_first, other_last)] = [span(&told[0]), span(&told[1])];
    assert!(first < other_last && other_first < last, "{told:?}");
}

#[test]
fn an_audit_of_all_trees_counts_the_slots_that_they_share() {
    let place = shared(2, 6);
    let trees = [(); 2].map(|()| map(&place, "cat; sleep 0.05"));
    for (command, child) in trees {
        place.finish(child, &command, &[]).expect_code(0);
    }
    let said = place.run(&["audit", "--all"]).expect_code(0).stdout().to_owned();
    assert!(said.contains("2 at most, where host.maxConcurrent bounded them"), "{said}");
    let page = place.run(&["audit", "--all", "--json"]).expect_code(0).json();
    let expected =
        json!({"holds": true, "trees": 2, "broken": [], "host": {"peak": 2, "breaches": []}});
    assert_eq!(page, expected);
}

/// A tree that holds both slots until its pipe is written to, and another one that waits.
fn one_holds_and_another_waits() -> (Place, (Command, Child), Place, (Command, Child)) {
    let one = shared(2, 2);
    named_pipe(one.path().join("pipe"));
    let holds = map(&one, "read go < pipe");
    followed_until(&one, "  host_bound  ");
    one.wait_for_starts(2);
    let other = neighbour(&one, 1);
    let waits = map(&other, "cat");
    followed_until(&other, "  host_full  ");
    (one, holds, other, waits)
}

#[test]
fn a_run_that_waits_for_another_tree_says_so_everywhere() {
    let (one, (command, child), other, (waiting, waits)) = one_holds_and_another_waits();
    let held = "held until another run ends (host.maxConcurrent), since ";
    let tree = other.run(&["tree"]).expect_code(0);
    assert_eq!(tree.stdout().matches(held).count(), 2, "the root and its piece: {}", tree.text());
    let list = other.run(&["list", "--all", "--json"]).expect_code(0).json();
    let list = list.as_array().expect("a list");
    assert_eq!(list.iter().filter(|run| run["hostFullSince"].is_string()).count(), 2);
    for words in [&["stats"][..], &["show", "last"]] {
        let said = other.run(words).expect_code(0);
        assert!(said.stdout().contains(held), "{}", said.text());
    }
    let plan = ["map", "--dry-run", "--split", "lines:1", "in", "--", "cat"];
    let planned = neighbour(&one, 3).run(&plan).expect_code(0);
    for said in [
        "at once: 2, as many as host.maxConcurrent lets run",
        "host: 2 of 2 slots are taken by other trees",
    ] {
        assert!(planned.stdout().contains(said), "{}", planned.text());
    }
    let doctor = other.run(&["doctor"]).text();
    assert!(doctor.contains("host.maxConcurrent: 2 of 2 slots are taken by 1 tree"), "{doctor}");
    fs::write(one.path().join("pipe"), "go\ngo\n").expect("it is read");
    one.finish(child, &command, &[]).expect_code(0);
    other.finish(waits, &waiting, &[]).expect_code(0);
    let tree = other.run(&["tree"]).expect_code(0);
    assert!(!tree.stdout().contains("held by"), "{}", tree.text());
}

#[test]
fn a_supervisor_that_is_killed_leaves_its_slots_to_the_others() {
    let (one, (_, mut child), other, (waiting, waits)) = one_holds_and_another_waits();
    child.kill().expect("it was not waited for");
    other.finish(waits, &waiting, &[]).expect_code(0);
    child.wait().expect("the child cannot be waited for");
    assert_eq!(count(&events(&other), "host_free"), 1);
    // What the dead one has left is removed by the one that went on.
    let left = fs::read_dir(one.path().join("home/.local/state/offshoot/slots"));
    let left: Vec<PathBuf> =
        left.expect("it was made").map(|it| it.expect("a file").path()).collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn a_child_takes_the_slot_that_its_parent_lends() {
    let place = shared(1, 0);
    let script = "echo $($OFFSHOOT run -q x -- echo below) above";
    let outcome = place.tree(&[], script).expect_code(0);
    assert_eq!(outcome.stdout(), "below above\n");
    place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn a_folder_that_cannot_be_used_begins_no_tree() {
    let place = shared(1, 1);
    place.file("home/.local/state/offshoot/slots", "a file");
    let outcome = place.run(&["run", "x", "--", "echo", "no"]);
    let said = "host.maxConcurrent is set, and the runs of all trees cannot be counted";
    assert!(outcome.text().contains(said), "{}", outcome.text());
    assert!(outcome.text().contains("/.local/state/offshoot/slots: "), "{}", outcome.text());
    assert!(outcome.text().contains("mend the folder `offshoot/slots`"), "{}", outcome.text());
    outcome.expect_code(2);
}

#[test]
fn a_project_does_not_decide_about_the_slots_of_its_user() {
    let place = Place::new();
    place.file("offshoot.toml", "[host]\nmaxConcurrent = 99\n");
    let outcome = place.run(&["--config", "offshoot.toml", "config", "show"]);
    let said = "`host` may only stand in the system or user file";
    assert!(outcome.text().contains(said), "{}", outcome.text());
}

/// An answer to the claim of the first run is none to the claim that follows with the second.
#[test]
fn a_host_with_room_for_all_is_never_told_to_be_full() {
    let place = shared(8, 8);
    for _ in 0..3 {
        let (command, child) = map(&place, "cat");
        place.finish(child, &command, &[]).expect_code(0);
        let events = place.run(&["events", "last"]).expect_code(0);
        assert!(!events.stdout().contains("host_full"), "{}", events.text());
    }
}
