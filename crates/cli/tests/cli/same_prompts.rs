//! Agents that send the same long prompt first: one begins, and the others when it is answered.

use offshoot_fake_model_api::{Reply, Rule};
use offshoot_real_clients::install;
use serde_json::Value;

use crate::command::Place;
use crate::openai;
use crate::stage::Stage;

/// A map of three pieces at once.
const MAP: &[&str] = &[
    "-q",
    "map",
    "--config",
    "c.toml",
    "--split",
    "lines:1",
    "--merge",
    "concatenate",
    "--max-concurrent",
    "3",
    "--task",
    "read it",
];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [MAP, more].concat()
}

/// The kinds of the events of the newest tree that say who starts, and who waits for a first answer.
fn order(place: &Place) -> Vec<String> {
    let events = place.run(&["events", "last", "--json"]).expect_code(0);
    let kind = |line: &str| {
        let event: Value = serde_json::from_str(line).expect("a line is JSON");
        event["kind"]["type"].as_str().expect("every event has a kind").to_owned()
    };
    let kinds = events.stdout().lines().map(kind);
    kinds.filter(|kind| ["starting", "priming", "primed"].contains(&&**kind)).collect()
}

const ONE_FIRST: [&str; 5] = ["starting", "priming", "primed", "starting", "starting"];

#[test]
fn claude_begins_once_and_then_all_at_once() {
    let Some(clients) = install("claude_begins_once_and_then_all_at_once") else { return };
    let stage = Stage::new(clients, [Rule::always(Reply::text("read"))]);
    let place = &stage.place;
    place.file("in", "one\ntwo\nthree\n");
    place.file("c.toml", "");
    let mut command = stage.command(&with(&["in"]));
    command.env_remove("ANTHROPIC_API_KEY").env("CLAUDE_CODE_OAUTH_TOKEN", "a-dummy");
    let outcome = place.outcome(command, &[]).expect_code(0);
    assert_eq!(outcome.stdout().matches("read").count(), 3, "{}", outcome.text());
    assert_eq!(order(place), ONE_FIRST);
    place.run(&["audit", "last"]).expect_code(0);
    let told = place.run(&["events", "last"]).expect_code(0);
    assert!(told.stdout().contains("same prompt of about 9,000 tokens"), "{}", told.stdout());
    // The operator wants all of them at once.
    place.file("c.toml", "[agents.defaults.subagents]\nprimeCache = \"off\"\n");
    place.outcome(stage.command(&with(&["in"])), &[]).expect_code(0);
    assert_eq!(order(place), ["starting"; 3]);
}

#[test]
fn values_of_a_chat_endpoint_stand_in_front_and_are_read_once() {
    let (place, api) = openai::stage([Rule::always(Reply::text("read"))], "");
    place.file("in", "one\ntwo\nthree\n");
    place.file("law", "All of this is law.\n".repeat(1_000));
    let run = with(&["--runtime", "openai", "--context", "law=law", "in"]);
    // Also where each of them has another amount to spend.
    place.run(&[&run[..], &["--budget-tokens", "90000"]].concat()).expect_code(0);
    assert_eq!(order(&place), ONE_FIRST);
    let asked = api.conversations();
    let prompts: Vec<String> =
        asked.into_iter().map(|asked| format!("{}{}", asked.system, asked.prompt)).collect();
    let [first, others @ ..] = &prompts[..] else { panic!("it was asked") };
    assert_eq!(others.len(), 2);
    assert!(first.contains(" tokens to spend."), "{}", &first[first.len() - 100..]);
    for other in others {
        let same = first.bytes().zip(other.bytes()).take_while(|(one, other)| one == other);
        assert!(same.count() > 20_000, "{}", &other[..1_000]);
    }
    // A short prompt is not worth the wait.
    place.run(&with(&["--runtime", "openai", "in"])).expect_code(0);
    assert_eq!(order(&place), ["starting"; 3]);
    // Nor is there anything to wait for where one begins after the other.
    let one: Vec<&str> = run.iter().map(|word| if *word == "3" { "1" } else { *word }).collect();
    place.run(&one).expect_code(0);
    assert_eq!(order(&place), ["starting"; 3]);
}

/// The lines of a dry run that tell of prompts.
fn told(place: &Place, more: &[&str]) -> Vec<String> {
    let run = [&with(&["in", "--dry-run"])[..], more].concat();
    let plan = place.run(&run).expect_code(0);
    plan.stdout().lines().filter(|line| line.starts_with("cache:")).map(str::to_owned).collect()
}

#[test]
fn a_dry_run_says_what_the_wait_saves() {
    let place = Place::new();
    place.file("in", "one\ntwo\nthree\nfour\n");
    let config = "[runtimes.claude]\ncommand = [\"/bin/true\"]\n\
                  [[agents.list]]\nid = \"main\"\nmodel = { primary = \"small\" }\n\
                  [prices.small]\ninputPerMillion = 3\noutputPerMillion = 15\n\
                  cacheReadPerMillion = 0.3\ncacheWritePerMillion = 3.75\n";
    place.file("c.toml", config);
    let claude = ["--runtime", "claude"];
    let line = "cache: 4 agents (main, claude) send the same prompt of about 9,000 tokens first; one \
                begins, and the others when it is answered, which saves about $0.06 (primeCache)";
    assert_eq!(told(&place, &claude), [line]);
    let json = [&with(&["in", "--dry-run", "--json"])[..], &claude].concat();
    let json = place.run(&json).expect_code(0);
    let json: Value = serde_json::from_str(json.stdout()).expect("JSON");
    assert_eq!(json["ahead"]["samePrompts"][0]["saves"], 0.0621, "{json}");
    let off = "[agents.defaults.subagents]\nprimeCache = \"off\"\n";
    place.file("c.toml", format!("{config}{off}"));
    assert_eq!(told(&place, &claude), [""; 0]);
}

#[test]
fn a_dry_run_counts_values_as_the_engine_does() {
    let (place, _api) = openai::stage([Rule::always(Reply::text("read"))], "");
    place.file("in", "one\ntwo\nthree\nfour\n");
    place.file("law", "All of this is law.\n".repeat(1_000));
    let chat = ["--runtime", "openai", "--context", "law=law"];
    let line = "cache: 4 agents (main, openai) send the same prompt of about 5,000 tokens first; one \
                begins, and the others when it is answered (primeCache)";
    assert_eq!(told(&place, &chat), [line]);
    // What each may spend stands behind the values.
    let bounded = [&chat[..], &["--budget-tokens", "90000"]].concat();
    assert_eq!(told(&place, &bounded), [line]);
    place.run(&[&with(&["in"])[..], &bounded].concat()).expect_code(0);
    assert_eq!(order(&place), [&ONE_FIRST[..], &["starting"]].concat());
}
