//! Runs in folders of their own, as users see them.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use offshoot_test_support::named_pipe;
use serde_json::json;

use crate::command::Place;
use crate::doomed::Doomed;
use crate::mcp::Client;

/// A place that is a repository, whose data folder git ignores.
pub(crate) fn repository() -> Place {
    let place = Place::new();
    place.file("a", "one\ntwo\nthree\n");
    place.file("d/b", "b\n");
    place.file(".gitignore", "home\nfifo\ngo\n");
    git(&place, &["init", "-q", "-b", "main"]);
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-q", "-m", "begin"]);
    place
}

/// Runs git in a place, and returns what it wrote.
pub(crate) fn git(place: &Place, arguments: &[&str]) -> String {
    let mut command = place.command_of("git", arguments);
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "A").env(format!("GIT_{who}_EMAIL"), "a@b.example");
    }
    place.outcome(command, &[]).expect_code(0).stdout().trim_end().to_owned()
}

/// Checks that the place is as its user left it, and that no folder of a run is left.
fn check_untouched(place: &Place) {
    assert_eq!(git(place, &["status", "--porcelain"]), "");
    assert_eq!(git(place, &["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
    check_no_folder(place);
}

fn check_no_folder(place: &Place) {
    assert_eq!(git(place, &["worktree", "list"]).lines().count(), 1);
    let left = fs::read_dir(place.path().join(".offshoot/isolated")).expect("a shelf");
    let left: Vec<_> = left.map(|entry| entry.expect("an entry").file_name()).collect();
    assert_eq!(left, [".git"]);
}

#[test]
fn a_model_gives_a_child_a_folder_of_its_own() {
    let place = repository();
    let script = "echo 2 >> a; pwd";
    let mut client = Client::start(&place, &["--", "sh", "-c", script]);
    let spawn = json!({ "task": "x", "wait": true, "isolation": "worktree" });
    let spawned = client.call("sessions_spawn", spawn);
    let id = spawned["runId"].as_str().expect("a run");
    let folder = place.path().join(".offshoot/isolated").join(id);
    assert_eq!(spawned["outcome"]["data"], folder.display().to_string(), "{spawned}");
    assert_eq!(spawned["outcome"]["changes"]["files"], 1, "{spawned}");
    let wrong = json!({ "task": "x", "isolation": "cage" });
    let wrong = client.call("sessions_spawn", wrong).to_string();
    assert!(wrong.contains("no isolation is called `cage`"), "{wrong}");
    assert_eq!(client.leave().0, 0);
    check_untouched(&place);
}

#[test]
fn changes_come_back_as_a_patch_and_the_folder_goes() {
    let place = repository();
    let script = "echo 2 >> a; echo new > new; pwd";
    for isolation in ["worktree", "copy", "worktree:main"] {
        let run = ["-q", "run", "--isolation", isolation, "--json", "x", "--", "sh", "-c", script];
        let report = place.run(&run).expect_code(0).json();
        let id = report["runId"].as_str().expect("a run");
        let folder = place.path().join(".offshoot/isolated").join(id);
        assert_eq!(report["data"], folder.display().to_string());
        assert_eq!(report["changes"]["files"], 2, "{report}");
        assert_eq!(report["changes"]["isolation"], isolation);
        assert_eq!(report["changes"]["base"], git(&place, &["rev-parse", "main"]));
        let shown = place.run(&["show", id, "--json"]).expect_code(0).json();
        assert_eq!(shown["changes"], report["changes"]);
        let shown = place.run(&["show", id]).expect_code(0);
        assert!(shown.stdout().contains("2 files since commit"), "{}", shown.stdout());
        let patch = place.run(&["show", id, "--patch"]).expect_code(0).stdout().to_owned();
        assert!(patch.contains("+++ b/new") && patch.contains("+2"), "{patch}");
        place.run(&["audit", id]).expect_code(0);
        check_untouched(&place);
    }
}

#[test]
fn an_agent_a_task_and_a_child_have_folders_of_their_own() {
    let place = repository();
    let config = r#"[[agents.list]]
id = "apart"
isolation = "worktree"
"#;
    place.file("home/.config/offshoot/config.toml", config);
    let lines = r#"{"task":"by its agent","agent":"apart","runtime":"exec"}
{"task":"by its line","isolation":"copy"}
{"task":"no","isolation":"none"}
"#;
    place.file("home/tasks.jsonl", lines);
    let fanout = ["-q", "fanout", "--tasks", "home/tasks.jsonl", "--jsonl", "--"];
    let script = "pwd; [ -e .git ] && echo x >> a; true";
    let outcome = place.run(&[&fanout[..], &["sh", "-c", script]].concat()).expect_code(0);
    let kinds: Vec<String> = outcome
        .stdout()
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter_map(|line| line["envelope"]["changes"]["isolation"].as_str().map(str::to_owned))
        .collect();
    assert!(kinds.contains(&"worktree".to_owned()), "{}", outcome.stdout());
    git(&place, &["checkout", "-q", "a"]);
    // A child works where its parent does, unless it has a folder of its own.
    let script = r#"
        "$OFFSHOOT" spawn --wait one -- sh -c 'pwd; echo child >> a' > where
        "$OFFSHOOT" spawn --wait --isolation worktree two -- sh -c 'pwd; echo apart >> a' >> where
        [ "$(head -n 1 where)" = "$PWD" ] || exit 7
        [ "$(tail -n 1 where)" != "$PWD" ] || exit 8
        grep -q child a || exit 9
        ! grep -q apart a || exit 10"#;
    let outcome = place.tree(&["--isolation", "worktree", "--json"], script).expect_code(0);
    assert_eq!(outcome.json()["changes"]["files"], 2);
    check_untouched(&place);
}

#[test]
fn a_child_that_outlives_its_parent_brings_its_changes_back() {
    let place = repository();
    named_pipe(place.path().join("go"));
    let script = r#""$OFFSHOOT" spawn late -- sh -c 'cat ../../../go; echo late >> a' > id
        echo early > early; cat id"#;
    let words = ["run", "--allow-recursive-spawn", "--isolation", "worktree", "x", "--"];
    let mut command = place.command(&[&words[..], &["sh", "-c", script]].concat());
    let mut running = command.spawn().expect("the program was built for this test");
    // The answer is printed as soon as the root is over.
    let mut answer = BufReader::new(running.stdout.take().expect("a pipe")).lines();
    let child = answer.next().expect("a line").expect("text");
    fs::write(place.path().join("go"), "go").expect("the child reads it");
    place.finish(running, &command, &[]).expect_code(0);
    let root = place.run(&["show", "last", "--json"]).expect_code(0).json();
    assert_eq!(root["changes"]["files"], 2, "{root}");
    let shown = place.run(&["show", &child, "--json"]).expect_code(0).json();
    assert_eq!(shown["changes"]["files"], 3, "early, id and a: {shown}");
    check_no_folder(&place);
}

#[test]
fn what_cannot_be_isolated_is_said_before_anything_runs() {
    let place = Place::new();
    let check = |isolation: &str, message: &str| {
        let run = ["-q", "run", "--isolation", isolation, "x", "--", "touch", "ran"];
        let outcome = place.run(&run).expect_code(2);
        assert!(outcome.stderr.contains(message), "{}", outcome.stderr);
    };
    check("worktree", "is in no git repository");
    check("worktree", "--isolation copy");
    check(
        "branch",
        "--isolation: found \"branch\", allowed is none, worktree, worktree:COMMIT or copy",
    );
    git(&place, &["init", "-q"]);
    check("worktree", "has no commit `HEAD`");
    let bare = place.path().join("home/bin");
    fs::create_dir(&bare).expect("a folder");
    symlink("/bin/true", bare.join("true")).expect("a link");
    let run = ["-q", "run", "--isolation", "worktree", "x", "--", "true"];
    let outcome = place.run_with("PATH", &bare, &run).expect_code(2);
    assert!(outcome.stderr.contains("install git"), "{}", outcome.stderr);
    assert!(!place.path().join("ran").exists());
}

#[test]
fn a_killed_tree_loses_nothing_and_leaves_no_worktree() {
    let place = repository();
    let script = "echo work > work; echo up > ../../../fifo; exec sleep 600";
    let run = ["-q", "run", "--isolation", "worktree", "x", "--", "sh", "-c", script];
    let doomed = Doomed::start(place, &run);
    let place = doomed.kill();
    // Until its tree goes on nothing of it is on record, which is said with what to type.
    for words in [["show", "--patch", "last"], ["--verbose", "apply", "last"]] {
        let early = place.run(&words).expect_code(2);
        assert!(early.stderr.contains("is not over"), "{}", early.stderr);
        assert!(early.stderr.contains("goes on with it, and keeps what the run has changed"));
    }
    // The next tree of the folder brings back what was left.
    let outcome = place.run(&["run", "y", "--", "true"]).expect_code(0);
    assert!(outcome.stderr.contains("has changed: 1 file"), "{}", outcome.stderr);
    assert_eq!(git(&place, &["worktree", "list"]).lines().count(), 1);
    let resumed = place.run(&["-q", "--json", "resume"]).expect_code(1).json();
    assert_eq!(resumed["error"]["code"], "interrupted", "{resumed}");
    assert_eq!(resumed["changes"]["files"], 1, "{resumed}");
    let id = resumed["runId"].as_str().expect("a run");
    let patch = place.run(&["show", id, "--patch"]).expect_code(0).stdout().to_owned();
    assert!(patch.contains("+work"), "{patch}");
    place.run(&["audit", id]).expect_code(0);
    check_untouched(&place);
}

#[test]
fn a_killed_tree_that_is_cancelled_keeps_what_it_has_changed() {
    let place = repository();
    let script = "echo work > work; echo up > ../../../fifo; exec sleep 600";
    let run = ["-q", "run", "--isolation", "worktree", "x", "--", "sh", "-c", script];
    let place = Doomed::start(place, &run).kill();
    place.run(&["cancel", "last"]).expect_code(0);
    let patch = place.run(&["show", "last", "--patch"]).expect_code(0).stdout().to_owned();
    assert!(patch.contains("+work"), "{patch}");
    assert_eq!(git(&place, &["worktree", "list"]).lines().count(), 1);
    place.run(&["audit", "last"]).expect_code(0);
    check_untouched(&place);
}

#[test]
fn a_piece_that_runs_again_keeps_what_its_first_attempt_changed() {
    let place = repository();
    let script = r#"home=../../../home
        if [ -e $home/killed ]; then [ ! -e first ] && echo second > second; exit; fi
        echo first > first; echo up > ../../../fifo; exec sleep 600"#;
    let fanout = ["-q", "fanout", "--isolation", "worktree", "--task", "x", "--"];
    let doomed = Doomed::start(place, &[&fanout[..], &["sh", "-c", script]].concat());
    let place = doomed.kill();
    place.file("home/killed", "");
    let resumed = place.run(&["-q", "--json", "resume"]).expect_code(0).json();
    let root = resumed["runId"].as_str().expect("a run");
    let events = place.run(&["events", "--json", root]).expect_code(0);
    let kept = events.stdout().lines().filter(|line| line.contains("\"changes\"")).count();
    assert_eq!(kept, 2, "that of each attempt: {}", events.stdout());
    place.run(&["audit", root]).expect_code(0);
    check_untouched(&place);
}

/// Tasks of which each writes a file of its own, the third one a line that fails the check, and the last one a line that another has
/// changed.
const EDITS: &str = r#"task=$(head -n 1); echo "$task" > "part-$task"
case $task in
3) echo broken > broken ;;
1|5) sed -i "s/two/by $task/" a ;;
esac"#;

#[test]
fn many_patches_become_one_tested_branch_that_is_brought_here() {
    let place = repository();
    let tasks: Vec<String> =
        (1..=5).flat_map(|task| ["--task".to_owned(), task.to_string()]).collect();
    let tasks: Vec<&str> = tasks.iter().map(String::as_str).collect();
    let merge = ["--merge", "patch", "--check", "test ! -e broken", "--check-timeout", "60"];
    let fanout = ["-q", "--json", "fanout", "--isolation", "worktree"];
    let command = ["--", "sh", "-c", EDITS];
    let report = place.run(&[&fanout[..], &merge, &tasks, &command].concat()).expect_code(0).json();
    let data = &report["data"];
    let keys = |list: &str| -> Vec<String> {
        let items = data[list].as_array().expect("a list");
        items.iter().map(|item| item["key"].as_str().expect("a key").to_owned()).collect()
    };
    assert_eq!(keys("applied"), ["1", "2", "4"], "{data}");
    assert_eq!(keys("leftOut"), ["3"]);
    assert_eq!(keys("conflicts"), ["5"]);
    assert_eq!(data["conflicts"][0]["files"]["a"], serde_json::json!(["1"]));
    assert_eq!(data["check"]["passes"], true);
    let root = report["runId"].as_str().expect("a root").to_owned();
    assert_eq!(data["branch"], format!("offshoot/{root}"));
    assert_eq!(git(&place, &["status", "--porcelain"]), "");
    check_no_folder(&place);
    place.run(&["audit", &root]).expect_code(0);
    // Refused by name, and then brought.
    place.file("a", "mine\n");
    let outcome = place.run(&["apply", &root]).expect_code(1);
    assert!(outcome.stderr.contains("not committed: a"), "{}", outcome.stderr);
    assert!(!place.path().join("part-1").exists());
    git(&place, &["checkout", "-q", "a"]);
    let outcome = place.run(&["apply", &root]).expect_code(0);
    assert_eq!(outcome.stdout(), "a\npart-1\npart-2\npart-4\n");
    assert_eq!(fs::read_to_string(place.path().join("a")).expect("a"), "one\nby 1\nthree\n");
    assert_eq!(git(&place, &["diff", "--cached", "--name-only"]), "");
    // The patch of one run of them.
    git(&place, &["checkout", "-q", "a"]);
    let outcome = place.run(&["--json", "apply", "5"]).expect_code(0).json();
    assert_eq!(outcome["files"], serde_json::json!(["a", "part-5"]));
    // What the merge has left out can be brought, and why it was left out is said.
    let warned = |label: &str| {
        git(&place, &["checkout", "-q", "."]);
        git(&place, &["clean", "-fdq"]);
        place.run(&["apply", label]).expect_code(0).stderr
    };
    let said = "warning: --merge patch has left this patch out: ";
    assert!(warned("3").contains(&format!("{said}with it the check exited with code 1")));
    assert!(warned("5").contains(&format!("{said}others have changed")), "{}", warned("5"));
    assert!(!warned("4").contains(said), "{}", warned("4"));
    let shown = place.run(&["show", &root]).expect_code(0).stdout().to_owned();
    assert!(shown.contains("merged    patch: 5 results"), "{shown}");
}

/// An agent chooses the names of its files: a change of the user's is seen whatever they are, and no name reaches the terminal as it is.
#[test]
fn names_of_files_are_bytes_and_may_hold_anything() {
    let place = repository();
    let name = OsStr::from_bytes(b"b\xff");
    fs::write(place.path().join(name), "1\n2\n3\n4\n5\n6\n").expect("a file");
    git(&place, &["add", "."]);
    git(&place, &["commit", "-qm", "bytes"]);
    let isolated = |script: &str| {
        let run = ["-q", "run", "--isolation", "worktree", "x", "--", "sh", "-c", script];
        place.run(&run).expect_code(0);
    };
    isolated(r#"echo agent >> "$(printf 'b\377')""#);
    fs::write(place.path().join(name), "mine\n2\n3\n4\n5\n6\n").expect("a file");
    let refused = place.run(&["apply", "last"]).expect_code(1);
    assert!(refused.stderr.contains("not committed: b\u{fffd}"), "{}", refused.stderr);
    git(&place, &["checkout", "-q", "."]);
    isolated(r#"printf x > "$(printf 'q\033[31m\nhint: y')""#);
    let brought = place.run(&["apply", "last"]).expect_code(0);
    assert!(!brought.stdout().contains('\u{1b}'), "{}", brought.stdout());
    assert_eq!(brought.stdout().lines().count(), 1, "{}", brought.stdout());
    let refused = place.run(&["apply", "last"]).expect_code(1).stderr;
    assert!(!refused.contains('\u{1b}') && !refused.contains("\nhint: y"), "{refused}");
}

#[test]
fn a_check_that_fails_without_any_patch_is_no_success() {
    let place = repository();
    let fanout =
        ["-q", "fanout", "--isolation", "worktree", "--merge", "patch", "--check", "false"];
    let rest = ["--task", "1", "--", "sh", "-c", EDITS];
    let outcome = place.run(&[&fanout[..], &rest].concat()).expect_code(1);
    assert!(outcome.stderr.contains("also without any patch"), "{}", outcome.stderr);
    let outcome = place.run(&["-q", "fanout", "--check", "true", "--task", "1", "--", "true"]);
    outcome.expect_code(2);
}

#[test]
fn patches_without_folders_are_refused_before_anything_runs() {
    let place = Place::new();
    place.file(
        "apart.toml",
        "[[agents.list]]\nid = \"apart\"\nisolation = \"worktree\"\ncommand = [\"true\"]\n",
    );
    let merge = ["--config", "apart.toml", "fanout", "--merge", "patch"];
    let refuse = |words: &[&str]| {
        let refused = place.run(&[&merge[..], words].concat()).expect_code(2);
        assert!(refused.stderr.contains("folders of their own"), "{}", refused.stderr);
        assert!(refused.stderr.contains("add --isolation worktree"), "{}", refused.stderr);
        assert!(!place.path().join("ran").exists());
    };
    refuse(&["--task", "x", "--", "touch", "ran"]);
    refuse(&["--isolation", "none", "--agent", "apart", "--task", "x"]);
    place.file("tasks", "{\"task\":\"a\",\"agent\":\"apart\"}\n{\"task\":\"b\"}\n");
    refuse(&["--tasks", "tasks", "--", "touch", "ran"]);
    let map = ["map", "--merge", "patch", "--split", "lines:1", "tasks", "--", "touch", "ran"];
    let refused = place.run(&map).expect_code(2);
    assert!(refused.stderr.contains("add --isolation worktree"), "{}", refused.stderr);
    assert!(!place.path().join("ran").exists());
    // With a folder of its own it is asked for a repository.
    let apart = ["--agent", "apart", "--task", "x"];
    let apart = place.run(&[&merge[..], &apart].concat());
    assert!(!apart.stderr.contains("would work in yours"), "{}", apart.stderr);
}
