//! The outcome of each piece: answers as they come, lines of JSON, job logs and JUnit files.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Child;
use std::time::UNIX_EPOCH;

use offshoot_test_support::named_pipe;
use serde_json::Value;

use crate::command::{Place, Table};

/// Two pieces at once: `a` ends only after the test has said so, `b` at once.
fn started(place: &Place, how: &[&str]) -> Child {
    let script = "read x; [ $x != a ] || read y < fifo; echo $x; [ $x != c ] || exec sleep 1000";
    let what = ["a", "b", "--", "sh", "-c", script];
    let map = [&["-q", "map", "--max-concurrent", "2"], how, &what].concat();
    place.command(&map).spawn().expect("the program cannot be started")
}

/// A place with the files `a`, `b` and `c`, which hold their names.
fn with_files() -> Place {
    let place = Place::new();
    ["a", "b", "c"].iter().for_each(|name| drop(place.file(name, format!("{name}\n"))));
    named_pipe(place.path().join("fifo"));
    place
}

fn go_on(place: &Place) {
    fs::write(place.path().join("fifo"), "go\n").expect("the agent waits for this");
}

#[test]
fn an_answer_is_printed_while_others_still_run() {
    for (how, first, rest) in [
        (&["--stream"][..], "b\n", "a\n"),
        (&["--stream", "--separator", "END\n"], "bEND\n", "aEND\n"),
        (&["--jsonl"], "{\"key\":\"b\"", "{\"key\":\"a\""),
    ] {
        let place = with_files();
        let mut child = started(&place, how);
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("a line");
        assert!(line.starts_with(first), "{how:?}: {line}");
        go_on(&place);
        line.clear();
        stdout.read_line(&mut line).expect("a line");
        assert!(line.starts_with(rest), "{how:?}: {line}");
        line.clear();
        assert_eq!(stdout.read_line(&mut line).expect("the end"), 0, "{how:?}: {line}");
        assert!(child.wait().expect("it ends").success());
    }
}

#[test]
fn answers_are_kept_in_order_where_that_is_asked_for() {
    for (how, expected) in [
        (&["--stream", "--keep-order"][..], "a\nb\n"),
        (&["--stream", "--keep-order", "--null"], "a\0b\0"),
        (&["--null"], "a\0b\n"),
        (&["--separator", ", "], "a, b\n"),
    ] {
        let place = with_files();
        let child = started(&place, how);
        go_on(&place);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{how:?}");
    }
}

#[test]
fn nothing_runs_on_for_an_output_that_has_no_reader() {
    let place = with_files();
    let script = "read x; [ $x != b ] || read y < fifo; echo $x; [ $x != c ] || exec sleep 1000";
    let map = ["-q", "map", "--stream", "a", "b", "c", "--", "sh", "-c", script];
    let mut child = place.command(&map).spawn().expect("the program cannot be started");
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    stdout.read_line(&mut String::new()).expect("a line");
    drop(stdout);
    go_on(&place);
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "as any program before `head`");
    let list = place.run(&["list", "--all", "--json"]).expect_code(0).json();
    assert_eq!(list[0]["status"], "cancelled", "{list}");
}

/// A piece that completes, one that fails, one that is killed, and one that runs into its time limit.
fn mixed(place: &Place, how: &[&str]) -> Vec<u8> {
    place.file(
        "tasks",
        "{\"task\":\"fine\"}\n{\"task\":\"fails\",\"label\":\"<x&y>\"}\n{\"task\":\"killed\"}\n\
         {\"task\":\"hangs\",\"timeout\":1}\n",
    );
    let script = "case $OFFSHOOT_TASK in fine) echo 12345;; fails) printf 'a\\033b <&> \"c\"\\n' >&2; exit 7;;
        killed) kill -9 $$;; hangs) exec sleep 1000;; esac";
    let fanout = ["-q", "fanout", "--tasks", "tasks"];
    let what = ["--", "sh", "-c", script];
    let mut command = place.command(&[&fanout[..], how, &what].concat());
    let output = command.output().expect("the program can be started");
    assert_eq!(output.status.code(), Some(1));
    output.stdout
}

#[test]
fn a_line_of_json_for_each_piece() {
    let place = Place::new();
    let stdout = mixed(&place, &["--jsonl", "--keep-order"]);
    let lines: Vec<Value> = stdout
        .split_inclusive(|byte| *byte == b'\n')
        .map(|line| serde_json::from_slice(line).expect("a line is JSON"))
        .collect();
    let told = |line: &Value| {
        let envelope = &line["envelope"];
        assert!(envelope["runId"].is_string() && envelope["usage"].is_object(), "{line}");
        (line["key"].clone(), envelope["data"].clone(), envelope["error"]["code"].clone())
    };
    let expected = [
        ("fine".into(), "12345".into(), Value::Null),
        ("<x&y>".into(), "".into(), "exit_code".into()),
        ("killed".into(), "".into(), "signal".into()),
        ("hangs".into(), "".into(), "timeout".into()),
    ];
    assert_eq!(lines.iter().map(told).collect::<Vec<_>>(), expected);
}

#[test]
fn a_job_log_has_the_columns_of_gnu_parallel() {
    let place = Place::new();
    mixed(&place, &["--joblog", "log", "--max-concurrent", "1"]);
    let log = fs::read_to_string(place.path().join("log")).expect("it was written");
    let rows: Vec<Vec<&str>> = log.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(
        rows[0],
        [
            "Seq",
            "Host",
            "Starttime",
            "JobRuntime",
            "Send",
            "Receive",
            "Exitval",
            "Signal",
            "Command"
        ]
    );
    let told: Vec<[&str; 6]> =
        rows[1..].iter().map(|row| [row[0], row[1], row[4], row[5], row[6], row[7]]).collect();
    assert_eq!(
        told,
        [
            ["1", ":", "4", "5", "0", "0"],
            ["2", ":", "5", "0", "7", "0"],
            ["3", ":", "6", "0", "0", "9"],
            ["4", ":", "5", "0", "-1", "0"],
        ]
    );
    let number = |text: &str| text.trim().parse::<f64>().expect("a number");
    let started: Vec<f64> = rows[1..].iter().map(|row| number(row[2])).collect();
    let written = |name: &str| {
        let about = fs::metadata(place.path().join(name)).expect("it was written");
        let since = about.modified().expect("a moment").duration_since(UNIX_EPOCH);
        since.expect("after the epoch").as_secs_f64()
    };
    // The last run took a second. What is printed is rounded.
    let while_it_ran = written("tasks") - 0.001..written("log");
    assert!(started.iter().all(|at| while_it_ran.contains(at)), "{started:?} {while_it_ran:?}");
    assert!(number(rows[4][3]) >= 1.0 && number(rows[1][3]) < 60.0, "{log}");
    assert!(rows[2][8].starts_with("sh -c ") && rows[2][8].ends_with(" < <x&y>"), "{log}");
}

#[test]
fn a_junit_file_has_a_case_for_each_piece() {
    let place = Place::new();
    mixed(&place, &["--junit", "junit.xml"]);
    let xml = fs::read_to_string(place.path().join("junit.xml")).expect("it was written");
    for part in [
        "tests=\"4\" ",
        "failures=\"3\" ",
        "<testcase name=\"fine\" classname=\"main\" time=",
        "<testcase name=\"&lt;x&amp;y&gt;\" classname=\"main\"",
        "type=\"exit_code\"",
        "&lt;&amp;&gt;",
        "type=\"timeout\"",
    ] {
        assert!(xml.contains(part), "{part}: {xml}");
    }
    assert!(!xml.contains('\x1b'), "{xml}");
}

#[test]
fn what_cannot_be_told_together_is_refused_before_anything_runs() {
    let place = with_files();
    let mut table = Table::default();
    for how in [
        &["--stream", "--jsonl"][..],
        &["--stream", "--merge", "sum"],
        &["--stream", "--json"],
        &["--jsonl", "--merge", "vote"],
        &["--jsonl", "--null"],
        &["--keep-order"],
        &["--separator", "x", "--merge", "sum"],
        &["--joblog", "nowhere/log"],
        &["--junit", "nowhere/junit.xml"],
    ] {
        table.row(&place.run(&[&["map"], how, &["a", "--", "touch", "ran"]].concat()));
    }
    table.check("outcomes_wrong");
    assert!(!place.path().join("ran").exists());
}
