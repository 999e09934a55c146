//! Memory of the computer: runs wait for it, and none is refused. The part that is to stay available is set so high that the computer
//! is surely short of it.

use serde_json::Value;

use crate::command::Place;
use crate::walls::followed_until;

/// A user who keeps nearly all of the memory, and a map of three pieces.
fn short_of_memory() -> Place {
    let place = Place::new();
    place.file("home/.config/offshoot/config.toml", "[host]\nmemoryKeep = 0.999\n");
    place.file("in", "one\ntwo\nthree\n");
    place
}

const MAP: &[&str] =
    &["-q", "map", "--split", "lines:1", "--merge", "concatenate", "in", "--", "sh", "-c"];

/// The events of the newest tree: their kinds, each with the event.
fn events(place: &Place) -> Vec<(String, Value)> {
    let events = place.run(&["events", "last", "--json"]).expect_code(0);
    let event = |line: &str| {
        let event: Value = serde_json::from_str(line).expect("a line is JSON");
        (event["kind"]["type"].as_str().expect("every event has a kind").to_owned(), event)
    };
    events.stdout().lines().map(event).collect()
}

#[test]
fn memory_waits_and_never_refuses_the_only_run() {
    let place = short_of_memory();
    let outcome = place.run(&[MAP, &["cat"]].concat()).expect_code(0);
    assert_eq!(outcome.stdout(), "one\n---\ntwo\n---\nthree\n");
    let events = events(&place);
    let mut running = 0;
    for (kind, event) in &events {
        match &**kind {
            "starting" => {
                running += 1;
                assert_eq!(running, 1, "one after the other: {event}");
            }
            "ended" if event["run"] != event["root"] => running -= 1,
            _ => {}
        }
    }
    let count = |wanted: &str| events.iter().filter(|(kind, _)| kind == wanted).count();
    let told = ["starting", "memory_short", "memory_enough", "refused"].map(count);
    assert_eq!(told, [3, 1, 1, 0], "the wait is named once, and that it is over");
    let short = events.iter().find(|(kind, _)| kind == "memory_short").expect("it was told");
    let [available, reserved, kept] = ["available", "reserved", "kept"]
        .map(|name| short.1["kind"][name].as_u64().expect("a number of bytes"));
    assert!(available.saturating_sub(reserved) < kept, "{}", short.1);
    place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn a_run_that_waits_for_memory_is_shown_with_the_time_since_when() {
    let place = short_of_memory();
    let script = "cat; while [ ! -e go ]; do sleep 0.02; done";
    let map = place.command(&[MAP, &[script]].concat());
    let mut command = map;
    let mut map = command.spawn().expect("the program was built for this test");
    followed_until(&place, "  memory_short  ");
    let tree = place.run(&["tree"]).expect_code(0);
    let held = "held until memory is free, since ";
    assert_eq!(tree.stdout().matches(held).count(), 3, "the root and two pieces: {}", tree.text());
    let list = place.run(&["list", "--all", "--json"]).expect_code(0).json();
    let list = list.as_array().expect("a list").iter();
    let waits = list.filter(|run| run["memoryShortSince"].is_string());
    let waits: Vec<&str> = waits.filter_map(|run| run["status"].as_str()).collect();
    assert_eq!(waits.iter().filter(|status| **status == "queued").count(), 2, "{waits:?}");
    let stats = place.run(&["stats"]).expect_code(0);
    assert!(stats.stdout().contains(held), "{}", stats.text());
    place.file("go", "");
    let status = map.wait().expect("the child cannot be waited for");
    assert!(status.success(), "{status}");
    let tree = place.run(&["tree"]).expect_code(0);
    assert!(!tree.stdout().contains(held), "{}", tree.text());
}

#[test]
fn a_part_of_zero_waits_for_nothing() {
    let place = short_of_memory();
    place.file("home/.config/offshoot/config.toml", "[host]\nmemoryKeep = 0\n");
    place.run(&[MAP, &["cat"]].concat()).expect_code(0);
    let named = events(&place).iter().any(|(kind, _)| kind.starts_with("memory"));
    assert!(!named, "nothing is read and nothing waits");
}

#[test]
fn a_project_does_not_decide_about_the_memory_of_its_user() {
    let place = Place::new();
    place.file("offshoot.toml", "[host]\nmemoryKeep = 0.5\n");
    let outcome = place.run(&["--config", "offshoot.toml", "config", "show"]);
    let said = "`host` may only stand in the system or user file";
    assert!(outcome.text().contains(said), "{}", outcome.text());
    outcome.expect_code(2);
}
