//! `offshoot logs`: what agents said, while they run and after their end.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command};

use offshoot_fake_model_api::{Condition, Reply, Rule};
use offshoot_real_clients::install;
use offshoot_test_support::named_pipe;
use serde_json::{Value, json};

use crate::command::Place;
use crate::openai;
use crate::plugin_program::python;
use crate::stage::Stage;

/// The id of the newest tree.
fn newest(place: &Place) -> String {
    let listed = place.run(&["list", "--json"]).expect_code(0).json();
    let last = listed.as_array().and_then(|runs| runs.last()).expect("a tree");
    last["runId"].as_str().expect("the run has no id").to_owned()
}

#[test]
fn both_streams_are_kept_of_one_that_succeeds_and_of_one_that_fails() {
    let place = Place::new();
    let script = "for i in $(seq 200); do echo line $i >&2; done; echo answer; exit ";
    for code in ["0", "3"] {
        let script = format!("{script}{code}");
        let run = place.run(&["-q", "run", "x", "--", "sh", "-c", &script]);
        assert_eq!(run.code.to_string(), code.replace('3', "1"));
        let id = newest(&place);
        let expected: String = (1..=200).map(|i| format!("line {i}\n")).collect();
        let stderr = place.run(&["logs", &id, "--stderr"]).expect_code(0);
        assert_eq!(stderr.stdout(), expected);
        assert_eq!(place.run(&["logs", &id, "--stdout"]).expect_code(0).stdout(), "answer\n");
        let tail = place.run(&["logs", &id, "--stderr", "--tail", "2"]).expect_code(0);
        assert_eq!(tail.stdout(), "line 199\nline 200\n");
        let both = place.run(&["logs", &id, "-f"]).expect_code(0);
        assert_eq!(both.stdout().lines().count(), 201);
        assert_eq!(
            place.run(&["logs", &id, "--since", "1h"]).expect_code(0).stdout(),
            both.stdout()
        );
        let lines = place.run(&["logs", &id, "--json", "--stdout"]).expect_code(0);
        let line: Value = serde_json::from_str(lines.stdout().trim()).expect("a line of JSON");
        assert_eq!((&line["text"], &line["stream"]), (&"answer".into(), &"stdout".into()));
        assert_eq!((&line["attempt"], &line["runId"]), (&1.into(), &id.as_str().into()));
        let timed = place.run(&["logs", &id, "--stderr", "--tail", "1", "-t"]).expect_code(0);
        let (time, line) = timed.stdout().split_once("  ").expect("a time stands before the line");
        assert!(time.ends_with('Z') && time.starts_with("20"), "{time}");
        assert_eq!(line, "line 200\n");
        let late = place.run(&["logs", &id, "--since", "0s"]).expect_code(0);
        assert!(
            late.stderr.contains("has said nothing since then: its last line is of 20"),
            "{}",
            late.stderr
        );
        // The record has none of it but the last words of a failure.
        let events = place.run(&["events", &id, "--json"]).expect_code(0);
        assert!(!events.stdout().contains("line 150"), "{}", events.stdout());
    }
    let silent = place.run(&["-q", "run", "x", "--", "true"]).expect_code(0);
    assert_eq!(silent.stderr, "");
    let nothing = place.run(&["logs", &newest(&place)]).expect_code(0);
    assert!(nothing.stderr.starts_with("nothing that run "), "{}", nothing.stderr);
}

#[test]
fn pieces_stand_behind_their_labels() {
    let place = Place::new();
    place.file("a", "a\n");
    place.file("b", "b\n");
    let script = "read x; echo $x; echo err $x >&2; [ $x != b ]";
    place.run(&["-q", "map", "--max-concurrent", "1", "a", "b", "--", "sh", "-c", script]);
    let logs = place.run(&["logs", &newest(&place)]).expect_code(0);
    let mut lines: Vec<&str> = logs.stdout().lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["a | a", "a | err a", "b | b", "b | err b"]);
    let failed = place.run(&["list", "--all", "--json"]).expect_code(0).json();
    let failed = failed.as_array().expect("runs").iter().find(|run| run["label"] == "b");
    let id = failed.expect("a piece")["runId"].as_str().expect("the run has no id");
    assert_eq!(place.run(&["logs", id, "--stderr"]).expect_code(0).stdout(), "err b\n");
}

#[test]
fn lines_of_a_further_attempt_stand_below_its_number() {
    let place = Place::new();
    // The second of three attempts says nothing.
    let script = "echo x >> tried; case $(wc -l < tried) in 1) echo one; exit 75;; 2) exit 75;; esac; echo three; echo end >&2";
    let run = ["-q", "run", "--retries", "2", "--retry-on", "exit:75", "--backoff", "0", "x"];
    place.run(&[&run[..], &["--", "sh", "-c", script]].concat()).expect_code(0);
    let check = |more: &[&str], expected: &str| {
        let logs = place.run(&[&["logs", "last"], more].concat()).expect_code(0);
        assert_eq!(logs.stdout(), expected, "{more:?}");
    };
    check(&[], "one\n── attempt 3 ──\nthree\nend\n");
    check(&["--tail", "1"], "── attempt 3 ──\nend\n");
    check(&["--tag", "--stdout"], "main | one\nmain | ── attempt 3 ──\nmain | three\n");
    let lines = place.run(&["logs", "last", "--json"]).expect_code(0);
    let attempt =
        |line: &str| serde_json::from_str::<Value>(line).expect("JSON")["attempt"].clone();
    let attempts: Vec<Value> = lines.stdout().lines().map(attempt).collect();
    assert_eq!(attempts, [1, 3, 3]);
}

#[test]
fn more_than_is_kept_is_named_and_secrets_are_struck_out() {
    let place = Place::new();
    place.file("c.toml", "[logs]\nkeepOutputBytes = 4096\n[runtimes.exec]\nenv = [\"MY_TOKEN\"]\n");
    let script = r#"i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo "line $i"; done
        printf 'a token: %s' "${MY_TOKEN%??????}"; printf '%s\n' "${MY_TOKEN#????????}""#;
    let words = ["-q", "run", "--config", "c.toml", "x", "--", "sh", "-c", script];
    let mut command = place.command(&words);
    command.env("MY_TOKEN", "abcdefghABCDEF");
    place.outcome(command, &[]).expect_code(0);
    let logs = place.run(&["logs", &newest(&place)]).expect_code(0);
    let lines: Vec<&str> = logs.stdout().lines().collect();
    assert_eq!((lines[0], lines.last()), ("line 1", Some(&"a token: [redacted]")));
    let gaps: Vec<_> = lines.iter().filter(|line| line.contains("are missing here")).collect();
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    assert!(lines.contains(&"line 2000") && !lines.contains(&"line 1000"));
    let kept = fs::read_dir(place.path().join(".offshoot/output")).expect("a folder").count();
    assert_eq!(kept, 1);

    place.file("none.toml", "[logs]\nkeepOutputBytes = 0\n");
    place.run(&["-q", "run", "--config", "none.toml", "x", "--", "echo", "x"]).expect_code(0);
    assert_eq!(place.run(&["logs", &newest(&place)]).expect_code(0).stdout(), "");
}

/// A run of this script, once its process has started, and its id.
fn started(place: &Place, script: &str) -> (Command, Child, String) {
    let mut command = place.command(&["-v", "run", "x", "--", "sh", "-c", script]);
    let mut child = command.spawn().expect("the program cannot be started");
    let mut stderr = BufReader::new(child.stderr.take().expect("the stream is not a pipe"));
    let mut line = String::new();
    while !line.contains("  started  ") {
        line.clear();
        assert!(stderr.read_line(&mut line).expect("text") > 0, "it did not start");
    }
    // What follows is read too, so that nothing waits for it.
    std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
    let id = newest(place);
    (command, child, id)
}

#[test]
fn a_follower_hears_a_line_before_the_end_and_the_last_one_too() {
    let place = Place::new();
    named_pipe(place.path().join("go"));
    let (run, child, id) = started(&place, "echo first; cat go > /dev/null; echo second >&2");
    let mut follow = place.command(&["logs", "--follow", &id]);
    let mut follower = follow.spawn().expect("the program cannot be started");
    let stdout = follower.stdout.take().expect("the stream is not a pipe");
    let mut lines = BufReader::new(stdout).lines().map(|line| line.expect("text"));
    assert_eq!(lines.next().as_deref(), Some("first"));
    fs::write(place.path().join("go"), "").expect("the agent reads");
    assert_eq!(lines.next().as_deref(), Some("second"));
    assert_eq!(lines.next(), None);
    place.finish(follower, &follow, &[]).expect_code(0);
    place.finish(child, &run, &[]).expect_code(0);
    assert_eq!(place.run(&["logs", &id]).expect_code(0).stdout(), "first\nsecond\n");
}

#[test]
fn what_a_killed_supervisor_did_not_write_is_named() {
    let place = Place::new();
    named_pipe(place.path().join("never"));
    named_pipe(place.path().join("said"));
    let script = "echo written; echo > said; cat never";
    let (_, mut child, id) = started(&place, script);
    fs::read(place.path().join("said")).expect("the agent writes");
    // To look at it has it written.
    let live = place.run(&["logs", &id]).expect_code(0);
    assert_eq!(live.stdout(), "written\n");
    child.kill().expect("the process cannot be killed");
    child.wait().expect("it was ours");
    let logs = place.run(&["logs", "-f", &id]).expect_code(0);
    let missing =
        "[the supervisor was killed here: what was said in the two seconds before may be missing]";
    assert_eq!(logs.stdout(), format!("written\n{missing}\n"));
}

/// Two agents work without a word for ten seconds, and nothing looks at them. Then their supervisor is killed.
#[test]
fn what_was_said_long_before_a_kill_is_kept_and_the_time_of_work_too() {
    let place = Place::new();
    place.file("in", "one\ntwo\n");
    named_pipe(place.path().join("said"));
    let script = "read t; echo \"out $t\"; echo \"waits $t\" >&2; [ -e again ] && exit; \
                  [ $t = two ] || echo > said; exec sleep 1000";
    let mut map =
        place.command(&["-q", "map", "--split", "lines:1", "in", "--", "sh", "-c", script]);
    let mut supervisor = map.spawn().expect("the program cannot be started");
    fs::read(place.path().join("said")).expect("the agent writes");
    let id = newest(&place);
    let mut follow = place.command(&["events", "--follow", &id]);
    let mut follower = follow.spawn().expect("the program cannot be started");
    let stdout = follower.stdout.take().expect("the stream is not a pipe");
    let lines = BufReader::new(stdout).lines().map(|line| line.expect("text"));
    let alive: Vec<_> = lines.take_while(|line| !line.contains("alive")).collect();
    assert!(alive.iter().any(|line| line.contains("started")), "{alive:?}");
    follower.kill().expect("it is a child that was not waited for");
    follower.wait().expect("it was ours");
    let locks = place.locks_of(supervisor.id());
    supervisor.kill().expect("it is a child that was not waited for");
    supervisor.wait().expect("it was ours");
    locks.wait();
    let missing =
        "[the supervisor was killed here: what was said in the two seconds before may be missing]";
    for piece in ["one", "two"] {
        let label = if piece == "one" { "in:1" } else { "in:2" };
        let logs = place.run(&["logs", label]).expect_code(0).stdout().to_owned();
        assert!(logs.contains(&format!("out {piece}\n")), "{logs}");
        assert!(logs.contains(&format!("waits {piece}\n")), "{logs}");
        assert!(logs.ends_with(&format!("{missing}\n")), "{logs}");
        let timed = place.run(&["logs", label, "--timestamps"]).expect_code(0);
        assert!(!timed.stdout().contains("1970"), "{}", timed.stdout());
        let shown = place.run(&["show", label]).expect_code(0);
        assert!(
            shown.stdout().contains(": 10.") || shown.stdout().contains(": 11."),
            "{}",
            shown.stdout()
        );
    }
    place.file("again", "");
    place.run(&["-q", "resume", "last"]).expect_code(0);
    let stats = place.run(&["stats", "last", "--json"]).expect_code(0).json();
    assert_eq!(stats["cutOff"], 2, "{stats}");
    let worked = stats["run"]["p50"].as_u64().expect("a time");
    assert!((10_000..20_000).contains(&worked), "{stats}");
    place.run(&["audit", "last"]).expect_code(0);
}

/// Of an attempt whose supervisor was killed nothing may be kept; that is said after a resume too.
#[test]
fn an_attempt_of_which_nothing_was_written_is_named_after_a_resume() {
    let place = Place::new();
    named_pipe(place.path().join("said"));
    let script =
        "read t; echo \"first words $t\"; [ -e again ] || { echo > said; exec sleep 1000; }";
    place.file("in", "bean\n");
    let mut map =
        place.command(&["-q", "map", "--split", "lines:1", "in", "--", "sh", "-c", script]);
    let mut supervisor = map.spawn().expect("the program cannot be started");
    fs::read(place.path().join("said")).expect("the agent writes");
    let locks = place.locks_of(supervisor.id());
    supervisor.kill().expect("it is a child that was not waited for");
    supervisor.wait().expect("it was ours");
    locks.wait();
    place.file("again", "");
    place.run(&["-q", "resume", "last"]).expect_code(0);
    let logs = place.run(&["logs", "in:1"]).expect_code(0);
    let missing =
        "[the supervisor was killed here: what was said in the two seconds before may be missing]";
    assert_eq!(logs.stdout(), format!("{missing}\n── attempt 2 ──\nfirst words bean\n"));
    let lines = place.run(&["logs", "in:1", "--json"]).expect_code(0);
    assert_eq!(
        lines.stdout().lines().next().map(|line| line.contains("\"attempt\":1")),
        Some(true)
    );
    // The time of a run is that of its work: none passed for it while no supervisor was there.
    let stats = place.run(&["stats", "last", "--json"]).expect_code(0).json();
    assert_eq!(stats["statuses"]["completed"], 1, "{stats}");
}

#[test]
fn the_words_of_a_model_and_its_tools_are_kept_without_its_key() {
    const KEY: &str = "dummy-key-of-a-test";
    let step = |step, reply| Rule::always(reply).and(Condition::Step(step));
    let rules = [
        step(1, Reply::call("sessions_status", json!({}))),
        step(2, Reply::text(format!("first line\nwith {KEY} in the second"))),
    ];
    let (place, _api) = openai::stage(rules, "keyVariable = \"LOGS_KEY\"\n");
    let run = ["-q", "run", "--config", "c.toml", "--runtime", "openai", "look"];
    let mut command = place.command(&run);
    command.env("LOGS_KEY", KEY);
    place.outcome(command, &[]).expect_code(0);
    let stdout = place.run(&["logs", "last", "--stdout"]).expect_code(0);
    assert_eq!(stdout.stdout(), "first line\nwith [redacted] in the second\n");
    let stderr = place.run(&["logs", "last", "--stderr"]).expect_code(0);
    let tools: Vec<&str> = stderr.stdout().lines().collect();
    assert!(matches!(tools[..], [tool] if tool.starts_with("sessions_status")), "{tools:?}");
}

#[test]
fn the_transcript_of_claude_code_is_kept_as_text() {
    let Some(clients) = install("the_transcript_of_claude_code_is_kept_as_text") else { return };
    let step = |step, reply| Rule::always(reply).and(Condition::Step(step));
    let shell = json!({"command": "echo seen by the tool", "description": "looks"});
    let rules = [
        step(1, Reply::call("Bash", shell)),
        step(2, Reply::text("the model has answered {{prompt}}")),
    ];
    let stage = Stage::new(clients, rules);
    stage.run(&["-q", "run", "look here"]).expect_code(0);
    let logs = stage.place.run(&["logs", "last"]).expect_code(0);
    let logs = logs.stdout();
    let place = |text: &str| {
        logs.lines()
            .position(|line| line.contains(text))
            .unwrap_or_else(|| panic!("{text}: {logs}"))
    };
    let order = ["Bash", "seen by the tool", "the model has answered look here"].map(place);
    assert!(order.is_sorted(), "{logs}");
    assert!(!logs.contains("{\"type\""), "it is no JSON: {logs}");
}

#[test]
fn what_a_plugin_tells_is_kept() {
    let place = Place::new();
    python(&place, "plugins");
    let how = ["-q", "run", "--plugin-path", "plugins", "--runtime", "python-agent", "two words"];
    place.run(&how).expect_code(0);
    let logs = place.run(&["logs", "last", "--stdout"]).expect_code(0);
    assert_eq!(logs.stdout(), "TWO WORDS\n");
    let logs = place.run(&["logs", "last", "--json", "--stdout"]).expect_code(0);
    let line: Value = serde_json::from_str(logs.stdout().trim()).expect("a line of JSON");
    assert_eq!((&line["text"], &line["attempt"]), (&"TWO WORDS".into(), &1.into()));
}

#[test]
fn a_tree_keeps_no_more_than_its_bound_and_the_earliest_of_it() {
    const BOUND: usize = 100_000;
    let place = Place::new();
    place.file("c.toml", format!("[logs]\nkeepOutputBytesPerTree = {BOUND}\n"));
    place.file("none.toml", "[logs]\nkeepOutputBytesPerTree = 0\n");
    place.file("in", "a\nb\n");
    // Eighty thousand bytes each.
    let script = "read x; seq -f \"$x %037.0f\" 2000";
    let map = |config: &str| {
        let how = ["-q", "map", "--config", config, "--split", "lines:1", "-j", "1", "in"];
        place.run(&[&how[..], &["--", "sh", "-c", script]].concat()).expect_code(0);
        place.run(&["logs", "last"]).expect_code(0).stdout().to_owned()
    };
    let logs = map("c.toml");
    let count = |text: &str| logs.lines().filter(|line| line.contains(text)).count();
    assert_eq!(count("| a 0"), 2000, "the first piece is whole");
    let kept = count("| b 0");
    assert!(kept < 2000 && (2000 + kept) * 40 <= BOUND, "{kept}");
    assert_eq!(count("are missing here: more than is kept"), 1, "what is missing is named");
    assert_eq!(map("none.toml"), "");
}
