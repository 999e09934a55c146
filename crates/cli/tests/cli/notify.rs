//! `notify`: a command of the operator's is told what happens while it happens.

use std::fs;

use offshoot_test_support::named_pipe;
use serde_json::Value;

use crate::command::Place;

/// A folder whose configuration has a command that appends what it reads to `told`, and then runs this.
fn place(rest: &str) -> Place {
    let place = Place::new();
    place.file("notify.sh", format!("cat >> told\n{rest}"));
    place.file("c.toml", "[notify]\ncommand = [\"sh\", \"notify.sh\"]\nsilentSeconds = 1\n");
    place
}

/// The lines that were told since the last call, each as what it tells and the label of its run.
fn told(place: &Place) -> Vec<(String, String)> {
    let path = place.path().join("told");
    let lines = fs::read_to_string(&path).unwrap_or_default();
    let _ = fs::remove_file(&path);
    let word = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
    let is_printed = |event: &Value| event.is_null() || event["kind"]["type"].is_string();
    let lines = lines.lines().map(|line| serde_json::from_str(line).expect("a line of JSON"));
    lines
        .inspect(|line: &Value| assert!(is_printed(&line["event"]), "{line}"))
        .map(|line| (word(&line, "on"), word(&line, "label")))
        .collect()
}

fn pair(on: &str, label: &str) -> (String, String) {
    (on.to_owned(), label.to_owned())
}

#[test]
fn failures_and_the_end_are_told_once_also_where_the_tree_goes_on() {
    let place = place("");
    place.file("a", "a\n");
    place.file("b", "b\n");
    let script = "read x; [ $x = a ] || [ -e well ]";
    let words = ["-q", "map", "--config", "c.toml", "a", "b", "--", "sh", "-c", script];
    place.run(&words);
    assert_eq!(told(&place), [pair("failed", "b"), pair("ended", "")]);
    place.run(&words);
    assert_eq!(told(&place), [pair("failed", "b"), pair("ended", "")]);
    place.file("well", "");
    place.run(&["-q", "resume", "last", "--failed", "--config", "c.toml"]).expect_code(0);
    assert_eq!(told(&place), [pair("ended", "")]);
}

#[test]
fn a_silent_run_is_told_while_it_is_silent() {
    // What is told lets the run go on.
    let place = place("[ -e heard ] || { : > heard; echo > go; }");
    named_pipe(place.path().join("go"));
    let words = ["-q", "run", "--config", "c.toml", "--label", "it", "x"];
    place.run(&[&words[..], &["--", "cat", "go"]].concat()).expect_code(0);
    assert_eq!(told(&place), [pair("silent", "it"), pair("ended", "it")]);
}

#[test]
fn a_run_that_waits_for_its_next_attempt_is_told() {
    let place = place("");
    let retries = ["--retries", "1", "--retry-on", "exit:75", "--backoff", "0"];
    let words = ["-q", "run", "--config", "c.toml", "--label", "it", "x"];
    let script = ["--", "sh", "-c", "[ -e again ] || { : > again; exit 75; }"];
    place.run(&[&words[..], &retries, &script].concat()).expect_code(0);
    assert_eq!(told(&place), [pair("parked", "it"), pair("ended", "it")]);
}

#[test]
fn only_what_is_wanted_is_told_and_a_command_that_fails_is_a_warning() {
    let place = place("echo no network >&2; exit 3");
    let set = "[notify]\ncommand = [\"sh\", \"notify.sh\"]\non = [\"failed\"]\n";
    place.file("c.toml", set);
    let run = |code: &str| {
        place.run(&["run", "--config", "c.toml", "x", "--", "sh", "-c", &format!("exit {code}")])
    };
    let well = run("0").expect_code(0);
    assert!(!well.stderr.contains("notify.command"), "{}", well.stderr);
    assert_eq!(told(&place), []);
    let ill = run("9").expect_code(1);
    assert_eq!(told(&place).len(), 1);
    let warning = "`notify.command` was not told: `sh`: ended with exit code 3: no network";
    assert!(ill.stderr.contains(warning), "{}", ill.stderr);
    place.file("c.toml", "[notify]\non = [\"finished\"]\n");
    let wrong = run("0").expect_code(2);
    let allowed = "one of ended, failed, parked, silent, budget80";
    assert!(wrong.stderr.contains(allowed), "{}", wrong.stderr);
}

/// The same, with the command that is tested as `$O`.
fn asking(script: &str) -> Place {
    let place = place("");
    let o = env!("CARGO_BIN_EXE_offshoot");
    place.file("notify.sh", format!("O={o}\ncat >> told\n{script}"));
    place
}

/// Two pieces: the first fails, the second does this.
fn fails_and(place: &Place, script: &str) -> crate::command::Outcome {
    place.file("a", "a\n");
    place.file("b", "b\n");
    let script = format!("read x; [ $x = b ] || exit 9; {script}");
    place.run(&["-q", "map", "--config", "c.toml", "a", "b", "--", "sh", "-c", &script])
}

fn said(place: &Place, file: &str) -> String {
    fs::read_to_string(place.path().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

#[test]
fn a_command_that_is_told_looks_and_stops_and_does_no_more() {
    let place = asking(
        "[ ! -e asked ] || { $O -q show last --json > after; exit 0; }
         : > asked
         $O -q show a --json > shown; echo $? > codes
         $O budget last --add-tokens 5 2> why; echo $? >> codes
         $O run x -- true 2>> why; echo $? >> codes
         $O -q cancel last; echo $? >> codes",
    );
    fails_and(&place, "exec sleep 600").expect_code(1);
    assert_eq!(told(&place), [pair("failed", "a"), pair("ended", "")]);
    assert_eq!(said(&place, "codes"), "0\n3\n3\n0\n", "{}", said(&place, "why"));
    let shown = |file| -> Value { serde_json::from_str(&said(&place, file)).expect("JSON") };
    assert_eq!((&shown("shown")["label"], &shown("after")["depth"]), (&"a".into(), &0.into()));
    let why = said(&place, "why");
    assert!(why.contains("may look, cancel and pause, and nothing more"), "{why}");
    assert!(why.contains("`run` opens a tree"), "{why}");
}

#[test]
fn an_agent_cannot_pass_for_the_command_that_is_told() {
    let place = asking("[ -e asked ] || { : > asked; : > up; cat go; }");
    ["up", "go", "done"].iter().for_each(|name| named_pipe(place.path().join(name)));
    // The command lives while the agent asks: with its ticket, without, and from where nothing names its run.
    let attack = "cat up
         try() { \"$OFFSHOOT\" --data-dir .offshoot pause last 2>> why; echo $? >> codes; }
         try
         unset OFFSHOOT_SOCKET OFFSHOOT_TICKET OFFSHOOT_TICKET_FILE OFFSHOOT_TASK
         try
         export OFFSHOOT
         (setsid sh -c '\"$OFFSHOOT\" --data-dir .offshoot pause last 2>> why; echo $? >> codes; : > done' &)
         cat done; echo x 1<> go";
    fails_and(&place, attack).expect_code(1);
    let told = told(&place);
    assert_eq!(told.first(), Some(&pair("failed", "a")), "{told:?}");
    assert_eq!(said(&place, "codes"), "3\n3\n3\n", "{}", said(&place, "why"));
    let events = place.run(&["events", "last"]).expect_code(0);
    assert!(!events.stdout().contains("paused"), "{}", events.stdout());
}
