//! The names by which runs are found: labels of several trees, beginnings of ids, rows as they are printed.

use std::fs;
use std::io::Read;
use std::process::{Child, Command};

use offshoot_test_support::named_pipe;

use crate::command::Place;
use crate::finding::{pipe, with_failures};

#[test]
fn a_label_of_several_trees_is_looked_at_in_the_newest_and_changes_nothing() {
    let place = with_failures();
    let again = ["-q", "map", "--label", "beans", "in", "--", "true"];
    place.run(&again).expect_code(0);
    let ambiguous = place.run(&["cancel", "beans"]).expect_code(2).stderr;
    assert!(ambiguous.contains("`beans` may be any of 2 runs"), "{ambiguous}");
    for status in ["failed", "completed"] {
        assert!(
            ambiguous.lines().any(|line| line.contains(status) && line.contains("ago  beans")),
            "{ambiguous}"
        );
    }
    let newest = place.run(&["show", "last", "--json"]).expect_code(0).json();
    assert_eq!(newest["status"], "completed");
    let looked = place.run(&["show", "beans", "--json"]).expect_code(0);
    assert_eq!(looked.json()["runId"], newest["runId"]);
    assert!(looked.stderr.contains("`beans` stands in several trees"), "{}", looked.stderr);
    for command in ["tree", "logs", "events", "stats", "export", "history"] {
        place.run(&[command, "beans"]).expect_code(0);
    }
    // A newer tree without it hides none.
    place.run(&["-q", "run", "other", "--", "true"]).expect_code(0);
    let looked = place.run(&["show", "beans", "--json"]).expect_code(0);
    assert_eq!(looked.json()["runId"], newest["runId"]);
    // Where the newest tree that has it has it twice, it means none.
    let twice = ["-q", "fanout", "--task", "x", "--task", "y", "--label", "beans", "--tasks", "t"];
    place.file("t", "{\"task\": \"z\", \"label\": \"beans\"}\n");
    place.run(&[&twice[..], &["--", "true"]].concat()).expect_code(0);
    place.run(&["show", "beans"]).expect_code(2);
    assert_eq!(place.run(&["show", "in:3", "--json"]).expect_code(0).json()["status"], "completed");
}

/// A map of one piece that waits for its pipe, beside an older tree whose piece has the same label.
fn twice_labelled() -> (Place, Child, Command) {
    let place = Place::new();
    place.file("in", "bean\n");
    let map = ["-q", "map", "--split", "lines:1", "in", "--", "sh", "-c"];
    place.run(&[&map[..], &["echo old"]].concat()).expect_code(0);
    named_pipe(place.path().join("go"));
    let mut up = pipe(&place, "up");
    let script = "echo new; echo up > up; read go < go";
    let mut command = place.command(&[&map[..], &[script]].concat());
    let child = command.spawn().expect("the program was built for this test");
    up.read_exact(&mut [0; 3]).expect("the piece writes into it");
    // It is on record when it is told, and so is all that was recorded before.
    place.run(&["pause", "last"]).expect_code(0);
    place.run(&["unpause", "last"]).expect_code(0);
    (place, child, command)
}

#[test]
fn a_label_means_the_live_run_to_every_command() {
    let (place, child, command) = twice_labelled();
    // A tree that is over may be newer than the one that lives.
    let over = ["-q", "map", "--split", "lines:1", "--label", "later", "in", "--", "true"];
    place.run(&over).expect_code(0);
    let listed =
        place.run(&["list", "--all", "--status", "running", "--json"]).expect_code(0).json();
    let live = listed.as_array().expect("runs").iter().find(|run| run["label"] == "in:1");
    let live = live.expect("it waits for its pipe")["runId"].as_str().expect("an id").to_owned();
    for command in ["logs", "show", "history", "events", "export"] {
        let looked = place.run(&[command, "in:1"]).expect_code(0);
        let said = format!("means the one run of them that is not over: {live}");
        assert!(looked.stderr.contains(&said), "{command}: {}", looked.stderr);
    }
    let paused = place.run(&["pause", "in:1"]).expect_code(0);
    assert!(paused.stderr.contains("the one run of them that is not over"), "{}", paused.stderr);
    place.run(&["unpause", "in:1"]).expect_code(0);
    let cancelled = place.run(&["cancel", "main: in:1"]).expect_code(0);
    assert_eq!(cancelled.stderr.matches("that is not over").count(), 1, "{}", cancelled.stderr);
    assert!(cancelled.stderr.contains("1 run is asked to end"), "{}", cancelled.stderr);
    place.finish(child, &command, &[]).expect_code(1);
    // None lives any more: to look, it is the newest tree's; to change something, none.
    let shown = place.run(&["show", "in:1"]).expect_code(0);
    assert!(shown.stderr.contains("means that of the newest tree that has it"), "{}", shown.stderr);
    let refused = place.run(&["cancel", "in:1"]).expect_code(2).stderr;
    assert!(refused.contains("in:1 of later"), "the tree is named: {refused}");
}

#[test]
fn a_label_of_more_runs_than_are_looked_at_means_none_of_them_to_an_act() {
    let place = Place::new();
    named_pipe(place.path().join("go"));
    let mut up = pipe(&place, "up");
    let run = ["-q", "run", "--label", "review", "x", "--", "sh", "-c"];
    let mut command = place.command(&[&run[..], &["echo up > up; read go < go"]].concat());
    let child = command.spawn().expect("the program was built for this test");
    up.read_exact(&mut [0; 3]).expect("it writes into it");
    for _ in 0..20 {
        place.run(&[&run[..], &["exit 0"]].concat()).expect_code(0);
    }
    for act in [&["cancel", "review"][..], &["pause", "review"], &["resume", "review"]] {
        let refused = place.run(act).expect_code(2);
        assert!(
            refused.stderr.contains("`review` may be any of 20 or more runs"),
            "{}",
            refused.stderr
        );
    }
    fs::write(place.path().join("go"), "go\n").expect("it is read");
    place.finish(child, &command, &[]).expect_code(0);
}

#[test]
fn a_run_is_found_by_what_rows_print_and_by_a_part_of_its_label() {
    let place = with_failures();
    let printed = place.run(&["show", "main: in:4", "--json"]).expect_code(0).json();
    assert_eq!(printed["label"], "in:4");
    place.run(&["show", "other: in:4"]).expect_code(2);
    let part = place.run(&["show", ":4"]).expect_code(2);
    assert!(
        part.stderr.contains("labels of the newest tree with this in them: `in:4`;"),
        "{}",
        part.stderr
    );
    // The beginning of an id that a root and its pieces share.
    let root = place.run(&["show", "last", "--json"]).expect_code(0).json()["runId"].clone();
    let root = root.as_str().expect("an id").to_owned();
    let shown = place.run(&["show", &root[..8], "--json"]).expect_code(0);
    assert_eq!(shown.json()["runId"], *root);
    assert!(shown.stderr.contains("it means the root"), "{}", shown.stderr);
    let act = place.run(&["cancel", &root[..8]]).expect_code(2).stderr;
    let first = act.lines().nth(1).expect("a list");
    assert!(first.contains(&root), "the root comes first: {act}");
    place.run(&["resume", &root[..8], "--failed", "--dry-run"]).expect_code(0);
}

#[test]
fn main_is_the_root_of_the_newest_tree() {
    let place = Place::new();
    place.run(&["show", "main"]).expect_code(2);
    let id = |words: &[&str]| {
        place.run(words).expect_code(0).json()["runId"]
            .as_str()
            .expect("it names the run")
            .to_owned()
    };
    // A file can be called so, and its piece does not stand between an operator and the newest tree.
    place.file("main", "bean\n");
    let first = id(&["map", "--json", "--split", "files", "main", "--", "true"]);
    assert_eq!(place.run(&["tree", "last", "--json"]).json()[0]["children"][0]["label"], "main");
    let second = id(&["run", "--json", "x", "--", "true"]);
    let shown = || place.run(&["show", "main"]).expect_code(0).stdout().to_owned();
    assert!(shown().contains(&second), "{}", shown());
    // A label that is given does not mean another run.
    for name in ["main", "last", "@1"] {
        let refused = place.run(&["run", "--label", name, "x", "--", "true"]).expect_code(2);
        assert!(refused.stderr.contains("is reserved"), "{}", refused.stderr);
        place.file("tasks", format!("{{\"task\": \"x\", \"label\": \"{name}\"}}\n"));
        let refused = place.run(&["fanout", "--tasks", "tasks", "--", "true"]).expect_code(2);
        assert!(refused.stderr.contains("is reserved"), "{}", refused.stderr);
        let inside = "\"$OFFSHOOT\" spawn --label \"$1\" x -- true";
        let script = ["run", "--allow-recursive-spawn", "x", "--", "sh", "-c", inside, "sh", name];
        let refused = place.run(&script);
        assert!(refused.stderr.contains("is reserved"), "{}", refused.stderr);
    }
    let newest = id(&["run", "--json", "x", "--", "true"]);
    for name in ["main", "last"] {
        let pruned = place.run(&["prune", name, "--dry-run", "--json"]).expect_code(0);
        assert!(pruned.stdout().contains(&newest), "{name}: {}", pruned.stdout());
    }
    place.run(&["show", &first]).expect_code(0);
}

/// In each of two trees that were killed one piece was at work, and one stood in line.
#[test]
fn the_list_of_runs_that_may_be_meant_has_the_status_of_each() {
    let place = Place::new();
    place.file("in", "bean\npea\n");
    named_pipe(place.path().join("up"));
    let script = "echo > up; exec sleep 1000";
    for _ in 0..2 {
        let map = ["-q", "map", "-j", "1", "--split", "lines:1", "in", "--", "sh", "-c", script];
        let mut map = place.command(&map);
        let mut supervisor = map.spawn().expect("the program cannot be started");
        fs::read(place.path().join("up")).expect("the agent writes");
        let locks = place.locks_of(supervisor.id());
        supervisor.kill().expect("it is a child that was not waited for");
        supervisor.wait().expect("it was ours");
        locks.wait();
    }
    // Each view of them says how to go on, and that their time is no more than what is known of it.
    for view in ["list", "tree"] {
        let shown = place.run(&[view]).expect_code(0);
        assert!(shown.stdout().contains("≥ "), "{}", shown.text());
        let hint = "2 trees have lost their supervisor: `offshoot resume RUN` goes on with one";
        assert!(shown.stderr.contains(hint), "{}", shown.text());
        let of_one =
            if view == "list" { &["list", "--tree", "last"][..] } else { &["tree", "last"] };
        let shown = place.run(of_one).expect_code(0);
        let hint = "1 tree has lost its supervisor: `offshoot resume ";
        assert!(shown.stderr.contains(hint), "{}", shown.text());
    }
    let late = place.run(&["pause", "last"]).expect_code(2).stderr;
    assert!(late.contains("goes on with it, and `offshoot cancel` of its root ends it"), "{late}");
    for (label, status) in [("in:1", "  lost  "), ("in:2", "  queued  ")] {
        let ambiguous = place.run(&["cancel", label]).expect_code(2).stderr;
        assert_eq!(ambiguous.matches(status).count(), 2, "{ambiguous}");
    }
}
