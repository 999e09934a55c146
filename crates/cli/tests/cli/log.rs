//! The log: what it tells of a tree, what it never tells, and that it holds nothing up.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, symlink};
use std::process::Stdio;

use offshoot_test_support::{Disk, named_pipe};
use rustix::pipe::fcntl_setpipe_size;
use serde_json::Value;

use crate::command::{Place, terminal};
use crate::plugin::plugin;

/// Part of each text that must not be logged.
const SECRET: &str = "canary";

/// Every run of a tree as JSON, with those below it.
fn runs<'a>(node: &'a Value, found: &mut Vec<&'a Value>) {
    found.push(node);
    for child in node["children"].as_array().into_iter().flatten() {
        runs(child, found);
    }
}

#[test]
fn the_log_has_each_run_from_start_to_end_and_no_text_of_an_agent() {
    let place = Place::new();
    place.file("c.toml", "[runtimes.exec]\nenv = [\"API_TOKEN\"]\n");
    place.file("value", "canary-value");
    place.file("lines", "canary-one\ncanary-two\ncanary-three\n");
    let script = r#"
        echo $OFFSHOOT_TICKET > ticket; echo canary-remark >&2
        "$OFFSHOOT" report canary-report
        "$OFFSHOOT" context put canary-name value
        OFFSHOOT_LOG=trace "$OFFSHOOT" spawn --wait --label canary-label --give canary-name canary-task -- sh -c '
          echo canary-answer; "$OFFSHOOT" spawn --wait canary-deep -- sh -c "echo canary-last >&2; exit 7"' 2> nested
        run=$("$OFFSHOOT" spawn canary-cancelled -- sleep 1000)
        "$OFFSHOOT" send $run canary-letter
        "$OFFSHOOT" cancel $run; "$OFFSHOOT" -q wait $run > /dev/null 2>&1
        "$OFFSHOOT" -q spawn --agent canary-agent canary-refused -- true 2> /dev/null
        true"#;
    let logged = |arguments: &[&str]| {
        let mut command =
            place.command(&[&["--config", "c.toml", "--log-file", "log"], arguments].concat());
        command.envs([("OFFSHOOT_LOG", "trace"), ("API_TOKEN", "canary-token")]);
        place.outcome(command, &[])
    };
    let run = ["run", "--allow-recursive-spawn", "canary-root", "--", "sh", "-c", script];
    let answer = logged(&run).expect_code(0);
    // What is logged inside an agent is on the standard error of that command.
    assert_eq!(answer.stdout().trim_end(), "canary-answer");
    assert!(fs::read_to_string(place.path().join("nested")).unwrap().contains("command ends"));
    let before = fs::read_to_string(place.path().join("log")).unwrap();
    let map = ["map", "--split", "lines:1", "lines", "--", "sh", "-c", "cat; echo $API_TOKEN"];
    let answer = logged(&map).expect_code(0);
    assert!(answer.stdout().contains("canary-two") && answer.stdout().contains("canary-token"));
    assert!(answer.stderr.is_empty() || !answer.stderr.contains("offshoot_"), "{}", answer.stderr);

    let log = fs::read_to_string(place.path().join("log")).unwrap();
    assert!(log.starts_with(&before) && log.len() > before.len(), "it is appended to");
    assert_eq!(fs::metadata(place.path().join("log")).unwrap().mode() & 0o777, 0o600);
    let ticket = fs::read_to_string(place.path().join("ticket")).unwrap();
    for secret in [SECRET, ticket.trim()] {
        let line = log.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "{secret}");
    }
    // The record has what the log has not: so the secrets were there to be logged.
    let trees = place.run(&["tree", "--all", "--json"]).expect_code(0).json();
    let (mut statuses, mut count) = (BTreeSet::new(), 0);
    for tree in trees.as_array().expect("trees") {
        let root = tree["runId"].as_str().expect("the run has no id");
        let mut all = Vec::new();
        runs(tree, &mut all);
        for run in all {
            let (id, status) = (run["runId"].as_str().unwrap(), run["status"].as_str().unwrap());
            let span = format!("tree{{root={root}}}:run{{run={id} agent=main");
            let place = |what: &str| {
                log.lines().position(|line| line.contains(&span) && line.contains(what))
            };
            let ended = place(&format!(": run ended status={status} "));
            assert!(ended.is_some(), "{status} {span}\n{log}");
            statuses.insert(status.to_owned());
            count += 1;
            // A root that only holds pieces never starts.
            if id == root && run["runtime"].is_null() {
                continue;
            }
            let started = place(": run started");
            let process = place(
                ":attempt{number=1}: offshoot_process::processes::start: process started pid=",
            );
            assert!(started.is_some() && started < process && process < ended, "{span}\n{log}");
        }
    }
    let seen: Vec<&str> = statuses.iter().map(String::as_str).collect();
    assert_eq!((&seen[..], count), (&["cancelled", "completed", "failed"][..], 8), "{trees}");
    for word in ["request refused code=\"unknown_agent\"", "caller identified", "events written"] {
        assert!(log.contains(word), "{word}\n{log}");
    }
}

#[test]
fn a_log_is_refused_by_name_before_anything_starts() {
    let place = Place::new();
    place.file("target", "");
    symlink("target", place.path().join("link")).expect("the link cannot be made");
    named_pipe(place.path().join("pipe"));
    let check = |log: &str, file: &str, expected: &str| {
        let mut command = place.command(&["--log-file", file, "tree"]);
        command.env("OFFSHOOT_LOG", log);
        let refused = place.outcome(command, &[]).expect_code(2);
        assert!(refused.stderr.starts_with(expected), "{}", refused.stderr);
    };
    check("info", "link", "error: cannot log to link: it is a symbolic link\n");
    check("info", "home", "error: cannot log to home: ");
    check("info", "pipe", "error: cannot log to pipe: ");
    check("info", "none/log", "error: cannot log to none/log: no such file or directory\n");
    check(
        "verbose",
        "log",
        "error: OFFSHOOT_LOG: `verbose` is neither a level nor a part of offshoot\n",
    );
    check(
        "rmcp=trace",
        "log",
        "error: OFFSHOOT_LOG: `rmcp` is neither a level nor a part of offshoot\n",
    );
    check("offshoot_door=loud", "log", "error: OFFSHOOT_LOG: ");
    assert_eq!(fs::read(place.path().join("target")).unwrap(), b"");
    // Without a word of what, a file has what is usual; without either there is no log.
    place.run(&["--log-file", "log", "run", "x", "--", "true"]).expect_code(0);
    let log = fs::read_to_string(place.path().join("log")).unwrap();
    assert!(log.contains(": run ended status=completed") && !log.contains("DEBUG"), "{log}");
    assert_eq!(place.run(&["run", "x", "--", "true"]).expect_code(0).stderr, "");
    let (mut command, some) = (place.command(&["run", "x", "--", "true"]), "offshoot_store=debug");
    command.env("OFFSHOOT_LOG", some);
    let said = place.outcome(command, &[]).expect_code(0).stderr;
    assert!(said.contains("events written") && !said.contains("run started"), "{said}");
}

#[test]
fn a_log_that_cannot_be_written_or_is_not_read_stops_nothing() {
    let place = Place::new();
    let map = ["-q", "map", "--split", "lines:1", "lines", "--", "cat"];
    place.file("lines", "x\n".repeat(100));
    if let Some(disk) = Disk::of(64 << 10) {
        disk.fill();
        let log = disk.path().join("log");
        let log = ["--log-file", log.to_str().expect("a plain name")];
        let answer = place.run(&[&log[..], &map].concat()).expect_code(0);
        assert_eq!(answer.stdout().matches('x').count(), 100);
    }
    let mut command = place.command(&map);
    command.env("OFFSHOOT_LOG", "trace").stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program cannot be started");
    let mut said = child.stderr.take().expect("the stream is not a pipe");
    fcntl_setpipe_size(&said, 4096).expect("it is empty");
    let mut answer = String::new();
    child
        .stdout
        .take()
        .expect("a pipe")
        .read_to_string(&mut answer)
        .expect("the text cannot be read");
    assert_eq!(answer.matches('x').count(), 100);
    assert!(child.wait().expect("the child cannot be waited for").success());
    let mut text = String::new();
    said.read_to_string(&mut text).expect("the text cannot be read");
    assert!(text.len() <= 4096, "{text}");
}

#[test]
fn the_keeper_says_what_it_did_when_the_supervisor_was_killed() {
    let place = Place::new();
    let run = [
        "-q",
        "run",
        "x",
        "--",
        "sh",
        "-c",
        r#""$OFFSHOOT" report up; kill -9 $PPID; exec sleep 1000"#,
    ];
    // Its lines come to the same place, which is read until the keeper has ended too.
    let killed = place.run_with("OFFSHOOT_LOG", "info", &run).expect_code(-9);
    let gone = killed.stderr.find("supervisor gone, its processes are killed groups=1");
    assert!(gone.is_some() && gone > killed.stderr.find("run started"), "{}", killed.stderr);
    assert!(killed.stderr.contains("processes of the supervisor are gone"), "{}", killed.stderr);
}

#[test]
fn lines_of_a_plugin_are_in_the_log_and_what_its_vendor_sends_is_not() {
    let place = Place::new();
    plugin(&place, "plugins", "raw", "raw");
    let run = ["run", "--plugin-path", "plugins", "--runtime", "upper", "kinds"];
    let said = place.run_with("OFFSHOOT_LOG", "trace", &run).expect_code(0).stderr;
    let line = |what: &str| {
        said.lines().find(|line| line.contains(what) && line.contains("offshoot_plugin_host"))
    };
    let warned = line("plugin says part=\"events\"").expect("it was warned of");
    assert!(warned.contains(" WARN ") && warned.contains(":attempt{number=1}: "), "{warned}");
    assert!(line("vendor event bytes=").is_some() && line("acme").is_none(), "{said}");
    assert!(line("plugin loaded name=raw").is_some(), "{said}");
}

#[test]
fn a_bar_on_the_terminal_is_not_torn_by_the_log() {
    let place = Place::new();
    place.file("lines", "x\n".repeat(20));
    let (mut screen, other) = terminal();
    let map = ["map", "--split", "lines:1", "lines", "--", "cat"];
    let mut command = place.command(&map);
    let end: fn(&File) -> Stdio =
        |end| end.try_clone().expect("the system has no room for it").into();
    command
        .env("OFFSHOOT_LOG", "debug")
        .env("TERM", "xterm")
        .stdin(end(&other))
        .stderr(end(&other));
    let mut child = command.stdout(Stdio::null()).spawn().expect("the program cannot be started");
    drop((command, other));
    let (mut said, mut some) = (Vec::new(), [0; 4096]);
    // Once no process has the terminal open, reading from it is an error.
    while let Ok(read @ 1..) = screen.read(&mut some) {
        said.extend_from_slice(&some[..read]);
    }
    assert!(child.wait().expect("the child cannot be waited for").success());
    let said = plain(&String::from_utf8(said).expect("messages are UTF-8"));
    assert!(said.contains(" of 20 done"), "{said}");
    let logged: Vec<&str> = said.lines().filter(|line| line.contains(" offshoot_")).collect();
    assert!(logged.len() > 100, "{said}");
    for line in logged {
        // What stood there before was taken away.
        let last = line.rsplit('\r').find(|part| !part.is_empty()).unwrap_or_default();
        assert!(last.starts_with("20") && !last.contains('━'), "{line:?}");
    }
}

/// Text without the sequences that colour it and move the cursor.
fn plain(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).map_or(part.len(), |at| at + 1);
        plain.push_str(&part[end..]);
    }
    plain
}
