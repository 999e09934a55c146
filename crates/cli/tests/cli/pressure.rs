//! Services that have too much to do, behind a chat endpoint.

use std::process::Stdio;

use offshoot_fake_model_api::{Condition, Reply, Rule};

use crate::openai::{run, stage};
use crate::walls::followed_until;

#[test]
fn a_service_that_has_too_much_to_do_is_asked_by_half_as_many() {
    let rules = [Rule::always(Reply::overloaded()).times(6), Rule::always(Reply::text("read"))];
    let more = "[runtimes.openai.options.retries]\ncount = 0\n\
                [agents.defaults.subagents.retries]\ncount = 3\nbackoffSeconds = 1\n";
    let (place, _api) = stage(rules, more);
    place.file("in", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n");
    let map = ["-q", "map", "--config", "c.toml", "--runtime", "openai", "--split", "lines:1"];
    let rest = ["--merge", "concatenate", "--max-concurrent", "6", "--task", "read it", "in"];
    let outcome = place.run(&[&map[..], &rest].concat()).expect_code(0);
    assert_eq!(outcome.stdout().matches("read").count(), 12, "{}", outcome.text());
    let events = place.run(&["events", "last"]).expect_code(0);
    let bounds = events.stdout().lines().filter(|line| line.contains("  paced  "));
    let first = bounds.map(str::to_owned).next().expect("too much was asked");
    assert!(first.contains("at most 3 runs of openai"), "{first}");
    place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn a_service_that_refuses_calls_is_told_before_an_attempt_ends() {
    let more = "[runtimes.openai.options.retries]\nbackoffSeconds = 50\n";
    let (place, _api) = stage([Rule::always(Reply::overloaded())], more);
    place.file("in", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    let map = ["map", "--config", "c.toml", "--runtime", "openai", "--split", "lines:1"];
    let rest = ["--max-concurrent", "6", "--task", "read it", "in"];
    let mut command = place.command(&[&map[..], &rest].concat());
    let mut map = command.stderr(Stdio::piped()).spawn().expect("it was built for this test");
    followed_until(&place, "at most 3 runs of openai");
    let tree = place.run(&["tree"]).expect_code(0);
    let held = "held by its service since ";
    assert!(
        tree.stdout().contains(held) && tree.stdout().contains("; retry 1 of 5"),
        "{}",
        tree.text()
    );
    let nodes = place.run(&["tree", "--json"]).json();
    let waits = nodes[0]["children"]
        .as_array()
        .expect("pieces")
        .iter()
        .filter_map(|piece| piece["backsOff"]["why"].as_str());
    let is_known = |why: &str| why.contains("529") || why.contains("other runs of the account");
    assert!(waits.clone().any(|why| why.contains("529")) && waits.clone().all(is_known), "{nodes}");
    map.kill().expect("it was not waited for");
    let told = map.wait_with_output().expect("it was ours");
    let told = String::from_utf8_lossy(&told.stderr);
    assert_eq!(told.matches("a run is held by its service since ").count(), 1, "{told}");
    place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn a_service_that_answers_again_is_told() {
    let more = "[runtimes.openai.options.retries]\nbackoffSeconds = 0.01\n";
    let (place, _api) = stage(
        [Rule::always(Reply::overloaded()).times(3), Rule::always(Reply::text("fruit"))],
        more,
    );
    run(&place, &["go"]).expect_code(0);
    let events = place.run(&["events", "last"]).expect_code(0);
    let told = |word: &str| events.stdout().lines().filter(|line| line.contains(word)).count();
    assert_eq!((told("  backs_off  "), told("  answered")), (3, 1), "{}", events.text());
    let stats = place.run(&["stats"]).expect_code(0);
    assert!(
        stats.stdout().contains("\nheld up      1 time by a service: p50 "),
        "{}",
        stats.text()
    );
    place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn what_one_tree_finds_too_much_halves_the_runs_of_another_one() {
    let pressed = Rule::when(Condition::Prompt("press".into()), Reply::overloaded());
    let more = "[runtimes.openai.options.retries]\ncount = 0\n\
                [agents.defaults.subagents.retries]\ncount = 0\n";
    let (place, _api) = stage([pressed, Rule::always(Reply::Hang)], more);
    place.file("in", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    let map = ["-q", "map", "--config", "c.toml", "--runtime", "openai", "--split", "lines:1"];
    let rest = ["--max-concurrent", "6", "--task", "read it", "in"];
    let mut command = place.command(&[&map[..], &rest].concat());
    let mut hangs = command.spawn().expect("the program was built for this test");
    followed_until(&place, "  started");
    let words =
        ["-q", "--data-dir", "b", "run", "--config", "c.toml", "--runtime", "openai", "press"];
    place.run(&words).expect_code(1);
    followed_until(&place, "at most 3 runs of openai");
    hangs.kill().expect("it was not waited for");
    hangs.wait().expect("it was ours");
    place.run(&["audit", "last"]).expect_code(0);
}
