//! The door, treated badly by real agents and by bad luck: the tree goes on.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;

use offshoot_test_support::named_pipe;
use rustix::process::{Pid, Signal, kill_process};

use crate::command::Place;

#[test]
fn a_socket_that_is_removed_ends_no_wait() {
    let place = Place::new();
    let outcome = place.tree(
        &[],
        r#""$OFFSHOOT" spawn --wait x -- sh -c '
             rm "$OFFSHOOT_SOCKET"
             "$OFFSHOOT" spawn y -- cat 2>said; echo $?; grep -o "no supervisor at" said'"#,
    );
    assert_eq!(outcome.expect_code(0).stdout(), "1\nno supervisor at\n");
}

#[test]
fn garbage_at_the_door_hurts_no_run() {
    let place = Place::new();
    let outcome = place.tree(
        &[],
        r#""$FAKE" say 'GET / HTTP/1.1' | grep -o '"error"'
           "$FAKE" say '{"jsonrpc":"2.0","id":1,"method":"spawn","params":{"task":"x"}}' | grep -o '"error"'
           "$FAKE" ask spawn '{"task":1}' | grep -o invalid_request
           "$FAKE" ask fly '{}' | grep -o '"error"'
           "$OFFSHOOT" spawn --wait x -- echo well"#,
    );
    let expected = "\"error\"\n\"error\"\ninvalid_request\n\"error\"\nwell\n";
    assert_eq!(outcome.expect_code(0).stdout(), expected);
}

#[test]
fn a_line_without_end_is_not_kept() {
    let place = Place::new();
    let outcome = place.tree(
        &[],
        r#""$FAKE" flood-door 104857600
           sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' /proc/$PPID/status
           "$OFFSHOOT" spawn --wait x -- echo well"#,
    );
    let outcome = outcome.expect_code(0);
    let lines: Vec<&str> = outcome.stdout().lines().collect();
    let [said, peak, well] = lines[..] else { panic!("three lines: {lines:?}") };
    assert!(
        said.contains("a line has at most") && !said.ends_with(" 0 bytes were not taken"),
        "{said}"
    );
    let kilobytes: u64 = peak.parse().expect("a number");
    assert!(kilobytes < 100 * 1024, "the supervisor has had {kilobytes} kB");
    assert_eq!(well, "well");
}

#[test]
fn a_thousand_connections_of_one_agent_shut_no_other_out() {
    let place = Place::new();
    let outcome = place.tree(
        &[],
        r#"mkfifo crowded over
           "$OFFSHOOT" spawn x -- sh -c '"$1" crowd 1000 block-on over > crowded; echo gone' sh "$FAKE" >/dev/null
           read counts < crowded; echo "$counts"
           "$OFFSHOOT" spawn --wait y -- echo well
           echo > over
           "$OFFSHOOT" wait"#,
    );
    let text = outcome.expect_code(0);
    // The answer of the second was heard already.
    assert_eq!(text.stdout(), "64 936\nwell\ngone\n");
}

#[test]
fn who_closes_the_connection_in_the_middle_of_a_wait_may_ask_again() {
    let place = Place::new();
    let outcome = place.tree(
        &[],
        r#"mkfifo over
           "$OFFSHOOT" spawn x -- sh -c 'cat over; echo well' >/dev/null
           "$FAKE" ask-and-go wait '{}' ask-and-go wait '{}'
           echo > over
           "$OFFSHOOT" wait; "$OFFSHOOT" wait"#,
    );
    assert_eq!(outcome.expect_code(0).stdout(), "\nwell\n\nwell\n");
    let tree = place.run(&["tree", "--json"]).json();
    assert_eq!(tree[0]["children"][0]["status"], "completed", "{tree}");
}

#[test]
fn the_child_of_a_parent_that_is_killed_while_it_waits_goes_on() {
    let place = Place::new();
    let outcome = place.tree(
        &[],
        r#""$OFFSHOOT" --json spawn --wait --label parent x -- sh -c '
             echo $$ > pid
             "$OFFSHOOT" spawn --wait --label child y -- sh -c "kill -9 \$(cat pid); echo on"' | grep -o '"code": *"[a-z]*"'"#,
    );
    assert_eq!(outcome.expect_code(0).stdout().replace(' ', ""), "\"code\":\"signal\"\n");
    let tree = place.run(&["tree", "--json"]).json();
    let parent = &tree[0]["children"][0];
    assert_eq!((&parent["label"], &parent["status"]), (&"parent".into(), &"failed".into()));
    let child = &parent["children"][0];
    assert_eq!((&child["label"], &child["status"]), (&"child".into(), &"completed".into()));
    let id = child["runId"].as_str().expect("the run has no id");
    assert_eq!(place.run(&["show", id, "--answer"]).expect_code(0).stdout(), "on\n");
}

#[test]
fn the_socket_of_a_dead_supervisor_is_swept_away() {
    let place = Place::new();
    let count = "ls .offshoot/doors | wc -l";
    let [ready, never] = ["ready", "never"].map(|name| place.path().join(name));
    for pipe in [&ready, &never] {
        named_pipe(pipe);
    }
    let script = format!("{count} > ready; cat never");
    let mut command = place.command(&["-q", "run", "x", "--", "sh", "-c", &script]);
    let supervisor = command.spawn().expect("the program cannot be started");
    assert_eq!(line(&ready), "1");
    let pid = i32::try_from(supervisor.id()).ok().and_then(Pid::from_raw).expect("it has a number");
    kill_process(pid, Signal::KILL).expect("the process cannot be signalled");
    assert_eq!(place.finish(supervisor, &command, &[]).code, -9);
    let doors = place.path().join(".offshoot/doors");
    let left = || fs::read_dir(&doors).expect("the folder cannot be read").count();
    assert_eq!(left(), 1, "no process was left to remove it");
    // The next one finds it, and is not taken for it.
    let script = format!("\"$OFFSHOOT\" spawn --wait y -- sh -c '{count}'");
    let next = place.run(&["-q", "run", "x", "--", "sh", "-c", &script]);
    assert_eq!(next.expect_code(0).stdout(), "1\n");
    assert_eq!(left(), 0);
}

fn line(pipe: &Path) -> String {
    let mut line = String::new();
    let file = File::open(pipe).expect("the agent opens its side");
    BufReader::new(file).read_line(&mut line).expect("the agent writes a line");
    line.trim().to_owned()
}
