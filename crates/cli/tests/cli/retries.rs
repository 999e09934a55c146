//! Further attempts of programs, as the operator chooses them.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use offshoot_test_support::named_pipe;

use crate::command::Place;

/// A program that ends with `first` on its first attempt on a piece, and answers on the second.
fn flaky(first: &str) -> String {
    format!("read -r name; if mkdir \"at-$name\" 2>/dev/null; then {first}; fi; echo \"$name\"")
}

const AGAIN: &[&str] = &["map", "--split", "lines:1", "--retries", "2", "--backoff", "0"];

#[test]
fn what_ends_as_chosen_begins_again() {
    let cases = [
        ("exit 75", "exit:75", &[][..]),
        ("exit 3", "exit", &[]),
        ("kill -9 $$", "signal", &[]),
        ("sleep 600", "timeout", &["--timeout", "1s"]),
    ];
    for (first, on, more) in cases {
        let place = Place::new();
        place.file("in", "a\nb\nc\n");
        let agent = flaky(first);
        let words = ["--retry-on", on, "in", "--", "sh", "-c", &agent];
        let outcome = place.run(&[AGAIN, more, &words].concat()).expect_code(0);
        assert_eq!(outcome.stdout(), "a\n---\nb\n---\nc\n", "{first}");
        let runs = place.run(&["list", "--tree", "last", "--json"]).json();
        assert_eq!(runs.as_array().expect("runs").len(), 4, "another attempt is no new run");
        place.run(&["audit", "last"]).expect_code(0);
    }
}

#[test]
fn a_run_that_waits_for_another_attempt_says_so() {
    let place = Place::new();
    named_pipe(place.path().join("up"));
    let up = File::options().read(true).write(true).open(place.path().join("up"));
    let mut up = up.expect("a pipe");
    place.file("in", "a\n");
    let words = ["-q", "map", "--retries", "1", "--backoff", "1h", "--retry-on", "exit:75", "in"];
    let mut command =
        place.command(&[&words[..], &["--", "sh", "-c", "echo up > up; exit 75"]].concat());
    let map = command.spawn().expect("the program was built");
    up.read_exact(&mut [0; 3]).expect("it is open");
    let mut events = place.command(&["events", "-f", "last"]).spawn().expect("it was built");
    let mut lines = BufReader::new(events.stdout.take().expect("it is a pipe")).lines();
    let is_it = |line: &Result<String, _>| line.as_ref().is_ok_and(|it| it.contains("  resumed  "));
    lines.find(is_it).expect("it waits").expect("it is text");
    for view in [&["tree"][..], &["list", "--tree", "last", "--status", "queued"], &["show", "in"]]
    {
        let shown = place.run(view).expect_code(0).stdout().to_owned();
        let row = shown.lines().find(|row| row.contains("parked since 20")).expect(&shown);
        assert!(row.contains(", attempt 2 from 20"), "{row}");
        assert!(row.ends_with("on, after: exited with code 75"), "{row}");
    }
    place.run(&["cancel", "last"]).expect_code(0);
    lines.last().expect("more happens").expect("it is text");
    events.wait().expect("it was started");
    place.finish(map, &command, b"").expect_code(1);
    let tree = place.run(&["tree"]).expect_code(0).stdout().to_owned();
    assert!(!tree.contains("parked since"), "{tree}");
}

#[test]
fn what_is_not_chosen_does_not_begin_again_and_neither_does_what_may_no_more() {
    let place = Place::new();
    place.file("in", "a\n");
    let agent = flaky("exit 75");
    let words = ["--retry-on", "exit:76,timeout", "in", "--", "sh", "-c", &agent];
    place.run(&[AGAIN, &words].concat()).expect_code(1);
    let words = ["--retry-on", "exit:75", "in", "--", "sh", "-c", "echo x >> tried; exit 75"];
    place.run(&[AGAIN, &words].concat()).expect_code(1);
    let tried = std::fs::read_to_string(place.path().join("tried")).expect("it was tried");
    assert_eq!(tried.lines().count(), 3, "once, and twice more");
    place.run(&["audit", "last"]).expect_code(0);
    let failed = place.run(&[AGAIN, &["--retry-on", "fail", "in", "--", "true"]].concat());
    assert!(failed.stderr.contains("exit:CODE, exit, signal, timeout, idle"), "{}", failed.stderr);
    assert_eq!(failed.code, 2);
}

#[test]
fn what_a_runtime_does_not_end_with_is_said() {
    let place = Place::new();
    place.file(
        "c.toml",
        "[[agents.list]]\nid = \"a\"\nruntime = \"openai\"\n\
         [agents.defaults.subagents.retries]\ncount = 2\non = [\"exit:75\", \"timeout\"]\n",
    );
    let checked = place.run(&["config", "check", "c.toml"]).expect_code(0);
    let said = "retries.on = exit:75,timeout: agent `a` runs on `openai`";
    assert!(checked.stderr.contains(said), "{}", checked.stderr);
    let json = place.run(&["config", "check", "c.toml", "--json"]).expect_code(0).json();
    assert_eq!(json["withoutEffect"].as_array().map(Vec::len), Some(1), "{json}");
}

#[test]
fn a_part_of_a_second_counts_as_a_whole_one() {
    let place = Place::new();
    for (flag, value, said) in [
        ("--timeout", "0.5", "time limit 1.0 s"),
        ("--idle-timeout", "1500ms", "limit of silence 2.0 s"),
        ("--backoff", "100ms", ""),
    ] {
        let words = ["run", "--retries", "1", flag, value, "x", "--", "true"];
        place.run(&words).expect_code(0);
        let shown = place.run(&["show", "last"]).expect_code(0);
        assert!(shown.stdout().contains(said), "{flag}: {}", shown.stdout());
    }
    let hangs = ["run", "--timeout", "0.5", "x", "--", "sleep", "1000"];
    let ended = place.run(&hangs).expect_code(1).stderr;
    assert!(ended.contains("timed out after 1 s"), "{ended}");
    place.file("tasks.jsonl", "{\"task\":\"a\",\"timeout\":0.5}\n");
    place.run(&["fanout", "--tasks", "tasks.jsonl", "--", "cat"]).expect_code(0);
    place.file("c.toml", "[agents.defaults.subagents]\nrunTimeoutSeconds = \"1m30s\"\n");
    let resolved = place.run(&["config", "resolve", "--config", "c.toml"]).expect_code(0);
    let is_it = |line: &&str| line.trim_start().starts_with("runTimeoutSeconds ");
    let line = resolved.stdout().lines().find(is_it).expect("it is listed").to_owned();
    assert!(line.contains(" 90 "), "{line}");
}
