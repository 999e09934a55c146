//! `offshoot export`: a tree as one file to hand on.

use std::fs;
use std::io::{BufRead, BufReader};

use offshoot_test_support::named_pipe;

use crate::command::Place;

/// Text that ends a script, a comment or a line in each form, and moves a cursor.
const HOSTILE: &str = r#"printf '</pre></script><script>alert(1)</script>\033[2J"]--><!--\n'"#;

fn map(place: &Place) {
    let script = format!(
        "read -r n; {HOSTILE}; {HOSTILE} >&2; [ $n != 2 ] || {{ echo 'FileNotFoundError: two' >&2; exit 7; }}; echo answer $n"
    );
    place.file("</title><script>x", "1\n2\n3\n");
    let words = ["-q", "map", "--on-failure", "skip", "--split", "lines:1", "</title><script>x"];
    place.run(&[&words[..], &["--", "sh", "-c", &script]].concat());
}

#[test]
fn a_page_has_the_tree_its_failures_and_what_was_said() {
    let place = Place::new();
    map(&place);
    let page = place.run(&["export", "last"]).expect_code(0);
    let page = page.stdout();
    for text in [
        "<!doctype html>",
        "default-src 'none'",
        "prefers-color-scheme:dark",
        "answer 3",
        "exited with code 7: FileNotFoundError: two",
        "<h2>Failures</h2>",
        "<h2>Tree and times</h2>",
        "<h2>Times and costs</h2>",
        "<h2>Ends of logs</h2>",
        "<span class=\"stderr\">FileNotFoundError: two</span>",
    ] {
        assert!(page.contains(text), "{text} is not in\n{page}");
    }
    assert!(!page.contains("<script") && !page.contains("<!--"), "{page}");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;␛[2J"), "{page}");
    assert!(!page.chars().any(|char| char.is_control() && char != '\n'), "{page}");
    assert_eq!(page.matches("</title>").count(), 1);
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("src="));
}

#[test]
fn a_program_and_two_that_draw_graphs_have_forms_of_their_own() {
    let place = Place::new();
    map(&place);
    let json = place.run(&["export", "last", "--format", "json"]).expect_code(0).json();
    assert_eq!(json, place.run(&["export", "last", "--json"]).expect_code(0).json());
    assert_eq!(json["stats"]["runs"], 3);
    assert_eq!(json["tree"]["children"].as_array().map(Vec::len), Some(3));
    let reason = &json["tree"]["children"][1]["reason"];
    assert_eq!(*reason, serde_json::json!({ "type": "exit_code", "code": 7 }));
    let last = json["logs"][0]["lines"].as_array().and_then(|lines| lines.last()).expect("lines");
    assert_eq!(last["text"], "FileNotFoundError: two", "failures first");
    let mermaid = place.run(&["export", "last", "--format", "mermaid"]).expect_code(0);
    assert!(mermaid.stdout().starts_with("flowchart LR\n"), "{}", mermaid.stdout());
    assert_eq!(mermaid.stdout().matches(" --> ").count(), 3);
    assert!(!mermaid.stdout().contains("<script"));
    let dot = place.run(&["export", "last", "--format", "dot", "--limit", "1"]).expect_code(0);
    assert!(dot.stdout().starts_with("digraph offshoot {\n") && dot.stdout().ends_with("}\n"));
    assert_eq!(dot.stdout().matches(" -> ").count(), 2, "one run, and the others counted");
}

#[test]
fn one_run_is_handed_on_without_its_neighbours() {
    let place = Place::new();
    let script = r#""$OFFSHOOT" -q spawn --wait --label left x -- echo lefts; "$OFFSHOOT" -q spawn --wait --label beside x -- echo neighbour"#;
    place.tree(&[], script).expect_code(0);
    let page = place.run(&["export", "left"]).expect_code(0);
    assert!(page.stdout().contains("<title>main: left</title>") && page.stdout().contains("lefts"));
    for text in ["beside", "neighbour"] {
        assert!(!page.stdout().contains(text), "{}", page.stdout());
    }
}

#[test]
fn a_tree_that_runs_is_shown_as_far_as_it_is() {
    let place = Place::new();
    named_pipe(place.path().join("go"));
    let mut run = place.command(&["-v", "run", "x", "--", "sh", "-c", "echo first; cat go"]);
    let mut child = run.spawn().expect("the program was built for this test");
    let mut stderr = BufReader::new(child.stderr.take().expect("the stream is a pipe"));
    let mut line = String::new();
    while !line.contains("  started  ") {
        line.clear();
        assert!(stderr.read_line(&mut line).expect("text") > 0, "it did not start");
    }
    std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
    // A follower has seen the line, so it was said.
    let mut follow = place.command(&["logs", "--follow", "last"]);
    let mut follower = follow.spawn().expect("the program was built for this test");
    let mut lines = BufReader::new(follower.stdout.take().expect("the stream is a pipe"));
    lines.read_line(&mut line).expect("text");
    let page = place.run(&["export", "last"]).expect_code(0);
    assert!(page.stdout().contains("<span class=\"running\">running</span>"), "{}", page.stdout());
    assert!(page.stdout().contains("<span class=\"stdout\">first</span>"), "{}", page.stdout());
    fs::write(place.path().join("go"), "").expect("the agent reads");
    place.finish(follower, &follow, &[]).expect_code(0);
    place.finish(child, &run, &[]).expect_code(0);
}

#[test]
fn what_cannot_be_exported_is_named() {
    let place = Place::new();
    let nothing = place.run(&["export", "last"]).expect_code(2);
    assert!(nothing.stderr.contains("there is no run `last`"), "{}", nothing.stderr);
    place.run(&["export", "last", "--format", "pdf"]).expect_code(2);
}
