//! A supervisor that was killed together with its keeper leaves its agents; the next one ends them and says so.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use offshoot_test_support::{Watched, named_pipe};
use rustix::process::{Pid, Signal, kill_process};

use crate::command::Place;

/// Kills one process that this test has started, or that was started for it.
fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}

fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().filter(|pid| *pid > 1).and_then(Pid::from_raw);
    kill_process(pid.expect("a number of a process"), signal)
        .expect("the process cannot be signalled");
}

/// The keeper among the children of a supervisor.
fn keeper(supervisor: u32) -> u32 {
    let tasks = fs::read_dir(format!("/proc/{supervisor}/task"))
        .expect("the folder cannot be read")
        .flatten();
    let children = tasks
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    let is_keeper = |pid: &String| {
        fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.split(|byte| *byte == 0).nth(1) == Some(b"keeper"))
    };
    let mut found = children.filter(is_keeper);
    found.next().expect("there is a keeper").parse().expect("a number")
}

/// A tree whose supervisor and keeper were both killed, and the processes of its agent that live on: the agent, one that has left
/// its group, and one that has also thrown off the name of its run.
fn left_behind(place: &Place) -> (Vec<u32>, Vec<Watched>) {
    let fifo = place.path().join("fifo");
    named_pipe(&fifo);
    let script = r#"
        setsid sleep 1000 </dev/null >/dev/null 2>&1 & a=$!
        env -u OFFSHOOT_RUN_ID setsid sleep 1000 </dev/null >/dev/null 2>&1 & b=$!
        echo $$ $a $b > fifo
        exec sleep 1000"#;
    let mut command = place.command(&["run", "x", "--", "sh", "-c", script]);
    let mut child = command.spawn().expect("the program cannot be started");
    let mut line = String::new();
    BufReader::new(File::open(&fifo).expect("a pipe")).read_line(&mut line).expect("a line");
    let agents: Vec<u32> =
        line.split_whitespace().map(|pid| pid.parse().expect("a number")).collect();
    let watched: Vec<Watched> = agents.iter().map(|pid| Watched::new(*pid)).collect();
    // So that it cannot replace the keeper.
    signal(child.id(), Signal::STOP);
    kill(keeper(child.id()));
    kill(child.id());
    child.wait().expect("the supervisor cannot be waited for");
    assert!(watched.iter().all(|agent| !agent.is_gone()), "no process is there to end them");
    (agents, watched)
}

#[test]
fn what_a_tree_left_is_ended_before_the_tree_is_deleted() {
    let place = Place::new();
    let (agents, watched) = left_behind(&place);
    let pruned = place.run(&["prune", "--older-than", "0s"]).expect_code(0);
    for agent in &agents {
        assert!(pruned.stderr.contains(&format!("ending process {agent}")), "{}", pruned.stderr);
    }
    assert!(watched.iter().all(|agent| agent.is_gone_within(Duration::from_secs(60))));
    let trees = place.run(&["list", "--all", "--json"]).expect_code(0).json();
    assert_eq!(trees, serde_json::json!([]), "the tree is deleted");
}

#[test]
fn what_was_left_by_a_supervisor_and_its_keeper_is_ended_by_the_next() {
    let place = Place::new();
    let (agents, watched) = left_behind(&place);
    let sockets = |place: &Path| {
        let doors = fs::read_dir(place.join(".offshoot/doors")).expect("a folder of sockets");
        doors.flatten().filter(|entry| entry.path().extension().is_some()).count()
    };
    assert_eq!(sockets(&place.path()), 1);

    // Looking changes nothing.
    place.run(&["list"]).expect_code(0);
    assert!(watched.iter().all(|agent| !agent.is_gone()));

    let next = place.run(&["run", "y", "--", "cat"]).expect_code(0);
    assert_eq!(next.stdout(), "y\n");
    for agent in &agents {
        let said = format!("ending process {agent}");
        assert!(next.stderr.contains(&said), "{}", next.stderr);
    }
    assert!(
        next.stderr.contains("ended 3 processes that an earlier supervisor left"),
        "{}",
        next.stderr
    );
    assert!(watched.iter().all(|agent| agent.is_gone_within(Duration::from_secs(60))));
    assert_eq!(sockets(&place.path()), 0, "the stale socket went too");
    let trees = place.run(&["tree", "--all", "--json"]).json();
    assert_eq!(trees[0]["status"], "lost", "{trees}");
    place.run(&["audit", trees[0]["runId"].as_str().expect("the run has no id")]).expect_code(0);

    // And they are not looked for again.
    let later = place.run(&["run", "z", "--", "cat"]).expect_code(0);
    assert!(!later.stderr.contains("earlier supervisor"), "{}", later.stderr);
}

/// Ends with its test.
struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended by itself where the test went well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_keeper_that_fails_is_replaced_on_record_and_doctor_shows_it() {
    let place = Place::new();
    let pipe = |name| {
        let path = place.path().join(name);
        named_pipe(&path);
        path
    };
    let (up, go) = (pipe("up"), pipe("go"));
    let mut command = place.command(&["run", "x", "--", "sh", "-c", "echo up > up; read a < go"]);
    command.stderr(std::process::Stdio::piped());
    let mut child = Running(command.spawn().expect("the program cannot be started"));
    let child = &mut child.0;
    fs::read(up).expect("a pipe");
    let supervisor = child.id();
    let looked = || {
        // Its exit code is about all supervisors of the user, those of other tests among them.
        let found = place.run(&["doctor", "--json"]).json();
        let found = found["supervisors"].as_array().expect("a list").clone();
        let ours = found.into_iter().find(|found| found["pid"] == supervisor);
        ours.expect("the run is over")
    };
    let first = keeper(supervisor);
    let found = looked();
    assert_eq!(found["keeper"], serde_json::json!({"pid": first, "state": "holds"}), "{found}");
    kill(first);
    // It says so when there is another one.
    let mut said = String::new();
    let mut stderr = BufReader::new(child.stderr.take().expect("the stream is not a pipe"));
    while !said.contains("the keeper") {
        said.clear();
        assert!(
            stderr.read_line(&mut said).expect("the line cannot be read") > 0,
            "it says something"
        );
    }
    assert!(
        said.contains(&format!("the keeper, process {first}, had ended; another one")),
        "{said}"
    );
    let found = looked();
    assert_eq!(found["keeper"]["state"], "holds", "{found}");
    assert_ne!(found["keeper"]["pid"], first, "{found}");
    let shown = place.run(&["doctor"]);
    assert!(shown.stdout().contains(&format!("supervisor {supervisor} at ")), "{}", shown.stdout());
    fs::write(go, "go\n").expect("a pipe");
    assert!(child.wait().expect("the child cannot be waited for").success());

    let trees = place.run(&["tree", "--all", "--json"]).json();
    let root = trees[0]["runId"].as_str().expect("the run has no id");
    let events = place.run(&["events", root, "--json"]).expect_code(0);
    let failed: Vec<serde_json::Value> = events
        .stdout()
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .map(|event| event["kind"].clone())
        .filter(|kind| kind["type"] == "keeper_failed")
        .collect();
    assert_eq!(
        failed,
        [serde_json::json!({"type": "keeper_failed", "pid": first, "found": "ended"})]
    );
    let shown = place.run(&["show", root]).expect_code(0);
    let shown = shown.stdout();
    assert!(shown.contains("had ended; another one has taken its place"), "{shown}");
    place.run(&["audit", root]).expect_code(0);
    let none = place.run(&["doctor", "--json"]).json();
    let left = none["supervisors"].as_array().expect("a list");
    assert!(left.iter().all(|found| found["pid"] != supervisor));
}

/// Leaves two daemons that nothing names, one after the other, and prints their numbers.
const DAEMONS: &str = r#"
    daemon() { "$OFFSHOOT" spawn --wait x -- "$FAKE" fork-grandchild --setsid $1 exit 0; }
    a=$(daemon --no-env) b=$(daemon --other-env)"#;

#[test]
fn a_daemon_that_nothing_names_ends_with_the_tree_and_is_on_record() {
    let place = Place::new();
    let script = format!("{DAEMONS}\n kill -0 $a && kill -0 $b && echo $a $b");
    let outcome = place.tree(&[], &script).expect_code(0);
    let daemons: Vec<u64> =
        outcome.stdout().split_whitespace().map(|pid| pid.parse().expect("a number")).collect();
    assert_eq!(daemons.len(), 2, "they lived as long as the root");
    for pid in &daemons {
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "{pid} has outlived its tree");
    }
    let trees = place.run(&["tree", "--all", "--json"]).json();
    let root = trees[0]["runId"].as_str().expect("the run has no id");
    let events = place.run(&["events", root, "--json"]).expect_code(0);
    let mut named: Vec<u64> = events
        .stdout()
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .map(|event| event["kind"].clone())
        .filter(|kind| kind["type"] == "stray_ended" && kind["name"] == "fake-agent")
        .map(|stray| stray["pid"].as_u64().expect("a number"))
        .collect();
    named.sort_unstable();
    let mut expected = daemons;
    expected.sort_unstable();
    assert_eq!(named, expected);
    place.run(&["audit", root]).expect_code(0);
    let shown = place.run(&["show", root]).expect_code(0);
    assert!(shown.stdout().contains("(fake-agent), which had left its run"), "{}", shown.stdout());
}

#[test]
fn a_daemon_that_nothing_names_does_not_outlive_a_killed_supervisor() {
    let place = Place::new();
    let fifo = place.path().join("fifo");
    named_pipe(&fifo);
    let agent = offshoot_test_support::fake_agent().display();
    let script = format!("FAKE={agent}\n{DAEMONS}\n echo $$ $a $b > fifo; exec sleep 1000");
    let words = ["run", "--allow-recursive-spawn", "x", "--", "sh", "-c", &script];
    let mut child = place.command(&words).spawn().expect("the program cannot be started");
    let mut line = String::new();
    BufReader::new(File::open(&fifo).expect("a pipe")).read_line(&mut line).expect("a line");
    let left: Vec<Watched> =
        line.split_whitespace().map(|pid| Watched::new(pid.parse().expect("a number"))).collect();
    assert!(left.len() == 3 && left.iter().all(|process| !process.is_gone()));
    kill(child.id());
    child.wait().expect("it was ours");
    assert!(left.iter().all(|process| process.is_gone_within(Duration::from_secs(60))));
}

#[test]
fn a_run_completes_where_its_supervisors_group_cannot_be_seen() {
    let place = Place::new();
    let script = "setsid sleep 600 </dev/null >/dev/null 2>&1 & sleep 600 & echo done";
    if !outside_is_hidden(&place) {
        return;
    }
    let unshared = |words: &[&str]| in_new_namespace(&place, words);
    let words = [env!("CARGO_BIN_EXE_offshoot"), "-q", "run", "x", "--", "sh", "-c", script];
    for _ in 0..2 {
        let outcome = place.outcome(unshared(&words), &[]).expect_code(0);
        assert_eq!(outcome.stdout(), "done\n");
    }
}

#[test]
fn what_was_listed_is_found_where_the_session_cannot_be_seen() {
    let place = Place::new();
    if !outside_is_hidden(&place) {
        return;
    }
    place.run(&["-q", "run", "x", "--", "true"]).expect_code(0);
    for _ in 0..2 {
        for (words, printed) in [(&["list", "--all"][..], "@1 "), (&["show", "@1"], "completed")] {
            let words = [&[env!("CARGO_BIN_EXE_offshoot")], words].concat();
            let outcome = place.outcome(in_new_namespace(&place, &words), &[]).expect_code(0);
            assert!(outcome.stdout().contains(printed), "{}", outcome.stdout());
        }
    }
    // A link in place of the listings leads no write out of the data folder.
    let listings = place.path().join(".offshoot/listings");
    fs::remove_dir_all(&listings).expect("the listings are ours");
    let outside = place.path().join("outside");
    fs::create_dir(&outside).expect("a folder");
    std::os::unix::fs::symlink(&outside, &listings).expect("a link");
    place.run(&["list", "--all"]).expect_code(0);
    assert_eq!(fs::read_dir(&outside).expect("the folder").count(), 0);
    place.run(&["show", "@1"]).expect_code(2);
}

/// In a new namespace of processes the group and the session of the first one were made outside: both are 0 there.
fn in_new_namespace(place: &Place, words: &[&str]) -> Command {
    let namespaces = ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"];
    place.command_of("unshare", &[&namespaces, words].concat())
}

/// True if this machine lets the tests make such a namespace.
fn outside_is_hidden(place: &Place) -> bool {
    let there = in_new_namespace(place, &["true"]).status().is_ok_and(|status| status.success());
    if !there {
        offshoot_test_support::skip("a group outside", "there are no namespaces of processes");
    }
    there
}
