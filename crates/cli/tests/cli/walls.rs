//! Quotas that are used up: trees that wait for the reset, and go on where they were. The agent is the real Claude Code with the
//! login of a subscription, before a service that answers by rules.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command};
use std::time::Duration;

use offshoot_fake_model_api::{Condition, FakeModelApi, Reply, Rule, Script};
use offshoot_real_clients::install;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::command::{Outcome, Place};
use crate::stage::Stage;

/// The command, with the login of a subscription in place of a key.
fn command(stage: &Stage, arguments: &[&str]) -> Command {
    let mut command = stage.command(arguments);
    command.env_remove("ANTHROPIC_API_KEY");
    command.env("CLAUDE_CODE_OAUTH_TOKEN", "a-dummy");
    command
}

fn run(stage: &Stage, arguments: &[&str]) -> Outcome {
    stage.place.outcome(command(stage, arguments), &[])
}

/// The events of the newest tree: their kinds, each with the event.
fn events(place: &Place) -> Vec<(String, Value)> {
    let events = place.run(&["events", "last", "--json"]).expect_code(0);
    let event = |line: &str| {
        let event: Value = serde_json::from_str(line).expect("a line is JSON");
        (event["kind"]["type"].as_str().expect("every event has a kind").to_owned(), event)
    };
    events.stdout().lines().map(event).collect()
}

fn count(events: &[(String, Value)], kind: &str) -> usize {
    events.iter().filter(|(name, _)| name == kind).count()
}

/// A map of three pieces, one at a time.
const MAP: &[&str] = &[
    "-q",
    "map",
    "--split",
    "lines:1",
    "--merge",
    "concatenate",
    "--max-concurrent",
    "1",
    "--task",
    "read it",
    "in",
];

/// The first piece is answered, and the second meets the wall.
fn at_the_second(resets_in: u64) -> [Rule; 2] {
    let wall = Reply::wall(Duration::from_secs(resets_in));
    [Rule::when(Condition::Prompt("two".into()), wall).times(1), Rule::always(Reply::text("read"))]
}

fn stage(name: &str, rules: impl IntoIterator<Item = Rule>) -> Option<Stage> {
    let stage = Stage::new(install(name)?, rules);
    stage.place.file("in", "one\ntwo\nthree\n");
    Some(stage)
}

/// Waits until the newest tree is parked.
fn parked(place: &Place) {
    followed_until(place, "  parked  ");
}

/// Waits until an event of the newest tree has this in its line. As long as there is no tree, it is looked for again; then its events
/// come as they happen.
pub(crate) fn followed_until(place: &Place, text: &str) {
    let mut follower = loop {
        let mut follower = place.command(&["events", "--follow", "last"]);
        let mut follower = follower.spawn().expect("the program was built for this test");
        let mut lines =
            BufReader::new(follower.stdout.take().expect("the stream is a pipe")).lines();
        let has_come = lines.any(|line| line.expect("events are UTF-8").contains(text));
        if has_come {
            break follower;
        }
        follower.wait().expect("the child cannot be waited for");
    };
    follower.kill().expect("it is a child that was not waited for");
    follower.wait().expect("the child cannot be waited for");
}

/// The number of times that the service was asked about each piece.
fn asked(stage: &Stage) -> [usize; 3] {
    let prompts = stage.api.conversations();
    ["one", "two", "three"]
        .map(|word| prompts.iter().filter(|asked| asked.prompt.contains(word)).count())
}

#[test]
fn no_start_after_the_wall() {
    let Some(stage) = stage("no_start_after_the_wall", at_the_second(3)) else { return };
    let outcome = run(&stage, MAP).expect_code(0);
    assert_eq!(outcome.stdout().matches("read").count(), 3, "{}", outcome.text());
    assert_eq!(asked(&stage), [1, 2, 1]);
    let events = events(&stage.place);
    assert_eq!((count(&events, "parked"), count(&events, "unparked")), (1, 1));
    // Between the wall and the reset nothing starts; what starts first afterwards is one alone.
    let from = events.iter().position(|(kind, _)| kind == "parked").expect("it was parked");
    let to = events.iter().position(|(kind, _)| kind == "unparked").expect("it went on");
    let started = &events[from..to];
    assert_eq!(count(started, "starting"), 1, "{started:?}");
    let until = events[from].1["kind"]["until"].as_str().expect("a moment").to_owned();
    let probe = started.iter().find(|(kind, _)| kind == "starting").expect("there is one");
    assert!(*probe.1["at"].as_str().expect("a moment") >= *until, "{} {until}", probe.1["at"]);
    stage.place.run(&["audit", "last"]).expect_code(0);
}

/// Three runs meet the wall at once. At the reset one of them starts alone, and the others follow its first answer.
#[test]
fn one_probe_at_the_reset() {
    let rules = [
        Rule::always(Reply::wall(Duration::from_secs(6))).times(3),
        Rule::always(Reply::text("read")),
    ];
    let Some(stage) = stage("one_probe_at_the_reset", rules) else { return };
    // All three begin at once, without a first answer that the others wait for.
    stage.place.file("c.toml", "[agents.defaults.subagents]\nprimeCache = \"off\"\n");
    let at_once = MAP.iter().map(|word| if *word == "1" { "3" } else { *word });
    let at_once: Vec<&str> = at_once.chain(["--config", "c.toml"]).collect();
    let outcome = run(&stage, &at_once).expect_code(0);
    assert_eq!(outcome.stdout().matches("read").count(), 3, "{}", outcome.text());
    let events = events(&stage.place);
    let from = events.iter().position(|(kind, _)| kind == "parked").expect("it was parked");
    let to = events.iter().position(|(kind, _)| kind == "unparked").expect("it went on");
    assert_eq!(count(&events, "parked"), 1, "it is the same wall for all of them");
    let reset = events[from].1["kind"]["until"].as_str().expect("a moment").to_owned();
    let is_late = |event: &&(String, Value)| event.1["at"].as_str() >= Some(&*reset);
    let started = events[from..to].iter().filter(|(kind, _)| kind == "starting");
    assert_eq!(started.filter(is_late).count(), 1, "{:?}", &events[from..to]);
    stage.place.run(&["audit", "last"]).expect_code(0);
}

/// No retry is used up: none is allowed, and the piece has its second attempt all the same.
/// After the reset two runs work at once, and one more each time that all have been answered; the audit counts it.
#[test]
fn after_the_reset_runs_follow_one_by_one() {
    let rules = [
        Rule::always(Reply::wall(Duration::from_secs(6))).times(4),
        Rule::always(Reply::text("read")),
    ];
    let Some(stage) = stage("after_the_reset_runs_follow_one_by_one", rules) else { return };
    stage.place.file("in", "1\n2\n3\n4\n5\n6\n");
    let at_once: Vec<&str> =
        MAP.iter().map(|word| if *word == "1" { "4" } else { *word }).collect();
    let outcome = run(&stage, &at_once).expect_code(0);
    assert_eq!(outcome.stdout().matches("read").count(), 6, "{}", outcome.text());
    let events = events(&stage.place);
    let unparked = events.iter().position(|(kind, _)| kind == "unparked").expect("it went on");
    let (kind, paced) = &events[unparked + 1];
    assert_eq!((&**kind, &paced["kind"]["most"]), ("paced", &json!(2)));
    let next = events[unparked..].iter().skip(2);
    let change = |kind: &str| matches!(kind, "paced" | "ended");
    let started = next.take_while(|(kind, _)| !change(kind)).filter(|(kind, _)| kind == "starting");
    assert!(started.count() <= 1, "{:?}", &events[unparked..]);
    stage.place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn a_wall_is_no_attempt() {
    let Some(stage) = stage("a_wall_is_no_attempt", at_the_second(1)) else { return };
    let config = "[agents.defaults.subagents]\nretries = { count = 0 }\n";
    stage.place.file("c.toml", config);
    let arguments = [MAP, &["--config", "c.toml"]].concat();
    run(&stage, &arguments).expect_code(0);
    assert_eq!(asked(&stage), [1, 2, 1]);
    let events = events(&stage.place);
    assert_eq!(count(&events, "ended"), 4, "three pieces and the root: {events:?}");
    stage.place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn one_that_is_not_to_wait_fails_with_the_reset() {
    let name = "one_that_is_not_to_wait_fails_with_the_reset";
    let Some(stage) = stage(name, [Rule::always(Reply::wall(Duration::from_secs(3_600)))]) else {
        return;
    };
    stage.place.file("c.toml", "[agents.defaults.subagents]\nquota = { onWall = \"fail\" }\n");
    let arguments = [MAP, &["--config", "c.toml", "--json"]].concat();
    let outcome = run(&stage, &arguments);
    assert_eq!(outcome.code, 4, "{}", outcome.text());
    let asked = stage.api.requests().len();
    assert_eq!(asked, 1, "the others are not even started");
    let tree = stage.place.run(&["list", "--tree", "last", "--json"]).expect_code(0).json();
    let runs = tree.as_array().expect("a list");
    for run in &runs[1..] {
        assert_eq!(run["status"], "failed", "{run}");
    }
    stage.place.run(&["audit", "last"]).expect_code(0);
}

/// The supervisor is killed while the tree waits for the reset. What was paid for is not paid again.
#[test]
fn killed_at_the_wall_nothing_is_paid_twice() {
    let name = "killed_at_the_wall_nothing_is_paid_twice";
    let Some(stage) = stage(name, at_the_second(6)) else { return };
    let mut command = command(&stage, MAP);
    let mut supervisor = command.spawn().expect("the program was built for this test");
    let place = &stage.place;
    parked(place);
    let listed = place.run(&["list"]).expect_code(0);
    assert!(listed.stdout().contains("parked until"), "{}", listed.stdout());
    let pid = i32::try_from(supervisor.id()).ok().and_then(Pid::from_raw).expect("a process");
    kill_process(pid, Signal::KILL).expect("the process cannot be signalled");
    supervisor.wait().expect("the child cannot be waited for");

    let resumed = run(&stage, &["-q", "resume", "last"]).expect_code(0);
    assert_eq!(resumed.stdout().matches("read").count(), 3, "{}", resumed.text());
    assert_eq!(asked(&stage), [1, 2, 1], "what was answered is not asked again");
    let shown = events(place);
    assert_eq!((count(&shown, "parked"), count(&shown, "reopened")), (1, 1));
    let cost = |place: &Place| {
        let root = place.run(&["list", "--json"]).expect_code(0).json()[0].clone();
        (root["childrenCompleted"].clone(), root["status"].clone())
    };
    assert_eq!(cost(place), (json!(3), json!("completed")));
    place.run(&["audit", "last"]).expect_code(0);
}

/// The demonstration that comes with the program, as it stands there.
#[test]
fn the_demonstration_shows_that_nothing_is_paid_twice() {
    let place = Place::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/quota-wall/run.sh");
    let mut command = place.command_of("sh", &[script]);
    command.env("OFFSHOOT", env!("CARGO_BIN_EXE_offshoot"));
    let shown = place.outcome(command, &[]).expect_code(0);
    let last = shown.stdout().lines().last().expect("it says what it has shown").to_owned();
    assert_eq!(last, "Five pieces, five calls paid, none twice.", "{}", shown.text());
}

/// The wall that one tree has met is known to another one of the same login before it asks. Another login is another account.
#[test]
fn two_trees_share_a_window() {
    let rules = [
        Rule::when(Condition::Prompt("two".into()), Reply::wall(Duration::from_secs(6))).times(1),
        Rule::always(Reply::text("read")),
    ];
    let Some(stage) = stage("two_trees_share_a_window", rules) else { return };
    let mut first = command(&stage, MAP).spawn().expect("the program was built for this test");
    parked(&stage.place);
    let asked = |word: &str| {
        let prompts = stage.api.conversations();
        prompts.iter().filter(|asked| asked.prompt.contains(word)).count()
    };
    let mut stranger = command(&stage, &["-q", "--data-dir", "b", "run", "stranger"]);
    stranger.env("CLAUDE_CODE_OAUTH_TOKEN", "another");
    stage.place.outcome(stranger, &[]).expect_code(0);
    assert_eq!((asked("stranger"), asked("three")), (1, 0), "it does not wait");
    run(&stage, &["-q", "--data-dir", "c", "run", "neighbour"]).expect_code(0);
    assert_eq!(asked("neighbour"), 1);
    assert!(first.wait().expect("the child cannot be waited for").success());
    let events = stage.place.run(&["--data-dir", "c", "events", "last", "--json"]).expect_code(0);
    let kinds: Vec<&str> = ["\"parked\"", "\"starting\"", "\"unparked\""]
        .into_iter()
        .filter(|kind| events.stdout().contains(kind))
        .collect();
    assert_eq!(kinds.len(), 3, "{}", events.stdout());
    let at = |kind: &str| events.stdout().find(kind).expect("it happened");
    assert!(at("\"parked\"") < at("\"starting\""), "{}", events.stdout());
    for data in [".offshoot", "b", "c"] {
        stage.place.run(&["--data-dir", data, "audit", "last"]).expect_code(0);
    }
}

/// Begins two trees of one run each. Returns each with its data folder.
fn two_trees(stage: &Stage) -> [(&'static str, (Command, Child)); 2] {
    [("b", "first"), ("c", "second")].map(|(data, word)| {
        let mut command = command(stage, &["-q", "--data-dir", data, "run", word]);
        let child = command.spawn().expect("the program was built for this test");
        (data, (command, child))
    })
}

/// Two trees whose runs meet the wall at the same time: each waits and goes on, and nothing is asked twice.
#[test]
fn two_supervisors_park_at_once() {
    let rules = [
        Rule::always(Reply::wall(Duration::from_secs(4))).times(2),
        Rule::always(Reply::text("read")),
    ];
    let Some(stage) = stage("two_supervisors_park_at_once", rules) else { return };
    let trees = two_trees(&stage);
    for (data, (command, child)) in trees {
        stage.place.finish(child, &command, &[]).expect_code(0);
        let words = ["--data-dir", data, "events", "last", "--json"];
        let events = stage.place.run(&words).expect_code(0);
        let parked = events.stdout().matches("\"type\":\"parked\"").count();
        assert_eq!(parked, 1, "each of them was told, or met it: {}", events.stdout());
        stage.place.run(&["--data-dir", data, "audit", "last"]).expect_code(0);
    }
    let prompts = stage.api.conversations();
    let asked = |word: &str| prompts.iter().filter(|asked| asked.prompt.contains(word)).count();
    assert!(asked("first") <= 3 && asked("second") <= 3, "walls and answers, and no more");
}

/// Two trees whose runs have met the wall: one of them starts a run at the reset, and the other one goes on when that is answered.
#[test]
fn one_probe_at_the_reset_over_all_trees() {
    let answer = Reply::Slow { text: "read it".to_owned(), pause_ms: 1_500 };
    let rules = [Rule::always(Reply::wall(Duration::from_secs(4))).times(2), Rule::always(answer)];
    let Some(stage) = stage("one_probe_at_the_reset_over_all_trees", rules) else { return };
    let trees = two_trees(&stage);
    let mut told = Vec::new();
    for (data, (command, child)) in trees {
        stage.place.finish(child, &command, &[]).expect_code(0);
        let words = ["--data-dir", data, "events", "last", "--json"];
        let events = stage.place.run(&words).expect_code(0);
        let last = |kind: &str| {
            let of_kind = format!("\"type\":\"{kind}\"");
            let line = events.stdout().lines().rfind(|line| line.contains(&of_kind));
            let event: Value = serde_json::from_str(line.expect("it happened")).expect("JSON");
            event["at"].as_str().expect("a moment").to_owned()
        };
        told.push((last("starting"), last("unparked")));
        stage.place.run(&["--data-dir", data, "audit", "last"]).expect_code(0);
    }
    told.sort();
    let [(probe, answered), (next, opened)] = &told[..] else { panic!("two trees") };
    assert!(probe < answered, "the first one is answered after its start: {told:?}");
    assert!(answered <= opened && opened <= next, "the other one starts after that: {told:?}");
}

/// The part that is left of a window stands in the record once for each twentieth, and is shown.
#[test]
fn what_is_left_of_a_window_is_shown() {
    let used = |word: &str, percent| {
        let rule = Rule::when(Condition::Prompt(word.into()), Reply::text("read"));
        rule.quota_used(percent, Duration::from_secs(3_600))
    };
    let rules = [used("one", 40), used("two", 41), used("three", 83)];
    let Some(stage) = stage("what_is_left_of_a_window_is_shown", rules) else { return };
    run(&stage, MAP).expect_code(0);
    let told = events(&stage.place);
    let left = told.iter().filter(|(kind, _)| kind == "quota_seen");
    let left: Vec<u64> = left.filter_map(|(_, it)| it["kind"]["left"].as_u64()).collect();
    assert_eq!(left, [600_000, 590_000, 170_000]);
    let shown = stage.place.run(&["show", "last"]).expect_code(0);
    assert!(shown.stdout().contains("17 % of five_hour of claude"), "{}", shown.stdout());
    let planned = run(&stage, &[MAP, &["--dry-run"]].concat()).expect_code(0);
    let said = "quota: 17 % of five_hour of claude";
    assert!(planned.stdout().contains(said), "{}", planned.stdout());
    stage.place.run(&["audit", "last"]).expect_code(0);
}

/// With the login of a subscription the program itself says what is left; through the meter the headers of its answers do.
#[test]
fn a_part_of_a_quota_is_kept() {
    let name = "a_part_of_a_quota_is_kept";
    for meter in ["off", "on"] {
        let nearly = Rule::when(Condition::Prompt("one".into()), Reply::text("read"));
        let rules =
            [nearly.quota_used(97, Duration::from_secs(2)), Rule::always(Reply::text("read"))];
        let Some(stage) = stage(name, rules) else { return };
        let config = format!(
            "[agents.defaults.subagents]\nquota = {{ keep = 0.05 }}\n[runtimes.claude]\nmeter = \"{meter}\"\n"
        );
        stage.place.file("c.toml", config);
        let outcome = run(&stage, &[MAP, &["--config", "c.toml"]].concat()).expect_code(0);
        assert_eq!(outcome.stdout().matches("read").count(), 3, "{}", outcome.text());
        assert_eq!(asked(&stage), [1, 1, 1], "meter {meter}: no run is broken off");
        let events = events(&stage.place);
        let kinds = (count(&events, "parked"), count(&events, "unparked"));
        assert_eq!(kinds, (1, 1), "meter {meter}: {}", outcome.text());
        let shown = stage.place.run(&["events", "last"]).expect_code(0);
        assert!(
            shown.stdout().contains("3 % of a quota (five_hour) are left, and kept"),
            "{}",
            shown.stdout()
        );
        stage.place.run(&["audit", "last"]).expect_code(0);
    }
}

/// A run of Claude Code meets the wall, and an endpoint takes it over with those behind it: none waits.
#[test]
fn another_runtime_takes_over_at_the_wall() {
    let Some(stage) = stage("another_runtime_takes_over_at_the_wall", at_the_second(3_600)) else {
        return;
    };
    let endpoint = FakeModelApi::start(Script::new([Rule::always(Reply::text("read elsewhere"))]));
    let endpoint = endpoint.expect("a free port");
    let config = format!(
        "[runtimes.openai]\ncost = \"none\"\noptions = {{ baseUrl = \"{}/v1\" }}\n\
         [agents.defaults.subagents.quota]\nonWall = \"fallback\"\n\
         [[agents.list]]\nid = \"main\"\nruntime = \"claude\"\n\
         model = {{ primary = \"sonnet\", fallbacks = [{{ runtime = \"openai\", model = \"small\" }}] }}\n",
        endpoint.url()
    );
    stage.place.file("c.toml", config);
    let map = [&MAP[..2], &["--config", "c.toml", "--runtime", "claude"], &MAP[2..]].concat();
    let outcome = run(&stage, &map).expect_code(0);
    assert_eq!(outcome.stdout().matches("read elsewhere").count(), 2, "{}", outcome.text());
    assert_eq!(asked(&stage), [1, 1, 0], "none of them is asked of the account that is parked");
    let models: Vec<String> = endpoint.conversations().into_iter().map(|it| it.model).collect();
    assert_eq!(models, ["small", "small"]);
    let events = events(&stage.place);
    assert_eq!((count(&events, "parked"), count(&events, "fell_back")), (1, 2));
    let shown = stage.place.run(&["show", "in:2"]).expect_code(0).stdout().to_owned();
    assert!(shown.contains("  claude, then openai\n"), "{shown}");
    assert!(shown.contains("  to the runtime openai, with the model small\n"), "{shown}");
    let stats = stage.place.run(&["stats", "last"]).expect_code(0).stdout().to_owned();
    assert!(stats.contains("  small: 2 runs  ≥ 30 tokens"), "{stats}");
    stage.place.run(&["audit", "last"]).expect_code(0);
}
