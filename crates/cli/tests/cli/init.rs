//! `offshoot init`: a new project, and the lines that it says to type next.

use std::fs;

use crate::command::{Outcome, Place, check};

/// Runs the lines that it says to type next, and returns what came of the last.
fn follow(place: &Place, init: &Outcome) -> Outcome {
    let mut last = None;
    for line in init.stderr.lines().filter_map(|line| line.strip_prefix("  offshoot ")) {
        let words: Vec<&str> = line.split('\'').enumerate().flat_map(quoted).collect();
        last = Some(place.run(&words).expect_code(0));
    }
    last.expect("it says what to type")
}

/// The words of a part of a line that was cut at single quotes.
fn quoted((at, part): (usize, &str)) -> Vec<&str> {
    if at % 2 == 1 { vec![part] } else { part.split_whitespace().collect() }
}

#[test]
fn what_it_says_to_type_next_works() {
    let place = Place::new();
    let init = place.run(&["init"]);
    check("init", &init);
    let answer = follow(&place, &init);
    assert_eq!(answer.stdout().trim(), "5");
    assert!(!answer.stderr.contains("ignored"), "{}", answer.stderr);
    let shown = place.run(&["agents", "show", "example", "--json"]).expect_code(0).json();
    assert_eq!(shown["limits"]["maxDepth"]["value"], 2);
    place.run(&["config", "check", ".offshoot/config.toml"]).expect_code(0);
    // Its data lie in the same folder now; nothing is written again.
    let again = place.run(&["init"]);
    check("init_again", &again);
    assert!(follow(&place, &again).stdout().contains("example"));
}

#[test]
fn what_is_there_stays_as_it_is() {
    let place = Place::new();
    let files = [
        place.file(
            ".offshoot/config.json5",
            "{ agents: { defaults: { subagents: { maxDepth: 1 } } } }",
        ),
        place.file(".offshoot/agents/example.md", "---\nname: other\n---\n"),
        place.file(".mcp.json", "{}\n"),
    ];
    let before = files.each_ref().map(|file| fs::read(file).expect("the file cannot be read"));
    let init = place.run(&["init", "--mcp"]);
    check("init_present", &init);
    assert_eq!(files.map(|file| fs::read(file).expect("the file cannot be read")), before);
    assert!(!place.path().join(".offshoot/config.toml").exists(), "two would be refused");
    assert!(follow(&place, &init).stdout().contains("other"));
}

#[test]
fn an_entry_for_clients_is_written_on_request() {
    let place = Place::new();
    place.run(&["init"]).expect_code(0);
    assert!(!place.path().join(".mcp.json").exists());
    let made = place.run(&["init", "--mcp", "--json"]).expect_code(0).json();
    assert_eq!(made["written"], serde_json::json!([".mcp.json"]));
    let entry = fs::read(place.path().join(".mcp.json")).expect("it was written");
    let entry: serde_json::Value = serde_json::from_slice(&entry).expect("it is JSON");
    assert_eq!(entry["mcpServers"]["offshoot"]["args"], serde_json::json!(["mcp"]));
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let place = Place::new();
    place.file(".offshoot", "a file");
    let outcome = place.run(&["init"]).expect_code(2);
    assert!(outcome.stderr.contains("cannot make"), "{}", outcome.stderr);
}
