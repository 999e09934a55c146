//! `offshoot prune`, and trees that are archived.

use offshoot_test_support::named_pipe;
use std::fs;
use std::io::{BufRead, BufReader};

use crate::command::Place;
use crate::forged::forge;

fn run(place: &Place, letter: &str) -> String {
    let script = format!("head -c 300000 /dev/zero | tr '\\0' {letter}");
    let report = place.run(&["run", "--json", "x", "--", "sh", "-c", &script]).expect_code(0);
    report.json()["runId"].as_str().expect("it names the run").to_owned()
}

/// As if so many hours had passed since all that is on record, and in the folder.
fn age(place: &Place, hours: u64) {
    let micros = hours * 3_600_000_000;
    let path = place.path().join(".offshoot");
    forge(
        place,
        &format!(
            "UPDATE events SET at = at - {micros}; UPDATE roots SET opened_at = opened_at - {micros};"
        ),
    );
    fn files(folder: &std::path::Path, back: std::time::Duration) {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let there = entry.metadata().expect("the file cannot be examined");
            if there.is_dir() {
                files(&entry.path(), back);
            }
            let file = fs::File::open(entry.path()).expect("the file cannot be opened");
            let at = there.modified().expect("a time") - back;
            file.set_modified(at).expect("the time cannot be set");
        }
    }
    for folder in ["blobs", "runs"] {
        files(&path.join(folder), std::time::Duration::from_secs(hours * 3600));
    }
}

fn values(place: &Place) -> usize {
    let folders = fs::read_dir(place.path().join(".offshoot/blobs")).expect("values").flatten();
    folders.map(|folder| fs::read_dir(folder.path()).expect("a folder").count()).sum()
}

#[test]
fn old_trees_go_with_what_only_they_name() {
    let place = Place::new();
    for letter in ["a", "s"] {
        run(&place, letter);
    }
    age(&place, 48);
    let kept = run(&place, "s");
    assert_eq!(values(&place), 2, "one of them is shared");

    let dry = place.run(&["prune", "--older-than", "1d", "--dry-run", "--json"]).expect_code(0);
    let dry = dry.json();
    assert_eq!(dry["trees"].as_array().map(Vec::len), Some(2));
    // The task is a file of one byte, and of each tree it is kept what its agent said.
    assert_eq!(dry["values"], 1);
    let bytes = dry["bytes"].as_u64().expect("a number");
    assert!((900_001..910_000).contains(&bytes), "{bytes}");
    let said = || fs::read_dir(place.path().join(".offshoot/output")).expect("a folder").count();
    assert_eq!(said(), 3);
    assert_eq!(values(&place), 2, "a dry run deletes nothing");

    let pruned = place.run(&["prune", "--older-than", "1d"]).expect_code(0);
    assert!(pruned.stdout().contains("deleted 2 trees, 1 value, "), "{}", pruned.text());
    assert_eq!((values(&place), said()), (1, 1));
    assert_eq!(place.run(&["logs", &kept]).expect_code(0).stdout.len(), 300_001);
    let list = place.run(&["list", "--json"]).json();
    assert_eq!(list.as_array().map(Vec::len), Some(1));
    assert_eq!(place.run(&["show", &kept, "--answer"]).expect_code(0).stdout.len(), 300_001);
    place.run(&["audit", &kept]).expect_code(0);
    let again = place.run(&["prune", "--older-than", "1d"]).expect_code(0);
    assert!(again.stdout().contains("deleted 0 trees, 0 values"), "{}", again.text());
}

#[test]
fn a_tree_that_runs_and_the_values_beside_it_are_not_touched() {
    let place = Place::new();
    let old = run(&place, "a");
    age(&place, 48);
    let script = "echo up > fifo; cat hold > /dev/null";
    let mut command = place.command(&["run", "x", "--", "sh", "-c", script]);
    for name in ["fifo", "hold"] {
        let path = place.path().join(name);
        named_pipe(path);
    }
    let child = command.spawn().expect("the program was built for this test");
    let up = BufReader::new(fs::File::open(place.path().join("fifo")).expect("a pipe"));
    assert_eq!(up.lines().next().expect("a word").expect("the bytes are not text"), "up");

    let pruned = place.run(&["prune", "--older-than", "0s", "--json"]).expect_code(0).json();
    let trees = pruned["trees"].as_array().expect("a list");
    assert_eq!((trees.len(), &trees[0]["root"]), (1, &old.as_str().into()));
    // What it named goes beside the tree that runs.
    assert_eq!((&pruned["busy"], &pruned["values"]), (&true.into(), &1.into()));
    assert_eq!(values(&place), 0);

    fs::write(place.path().join("hold"), "").expect("the agent reads it");
    place.finish(child, &command, &[]).expect_code(0);
    let pruned = place.run(&["prune", "--older-than", "0s", "--json"]).expect_code(0).json();
    assert_eq!((&pruned["busy"], &pruned["values"]), (&false.into(), &0.into()));
}

#[test]
fn runs_that_ended_long_ago_are_shown_with_all() {
    let place = Place::new();
    let old = run(&place, "a");
    age(&place, 2);
    let new = run(&place, "b");
    for command in ["list", "tree"] {
        let shown = place.run(&[command]).expect_code(0);
        assert!(!shown.stdout().contains(&old[..13]), "{}", shown.text());
        assert!(shown.stderr.contains("1 archived tree is not shown"), "{}", shown.stderr);
        let json = place.run(&[command, "--json"]).json();
        assert_eq!(json.as_array().map(Vec::len), Some(1));
        let all = place.run(&[command, "--all", "--json"]).json();
        let runs: Vec<_> =
            all.as_array().expect("a list").iter().map(|run| &run["runId"]).collect();
        assert_eq!(runs, [old.as_str(), new.as_str()]);
    }
    place.run(&["show", &old]).expect_code(0);
    place.run(&["tree", &old]).expect_code(0);

    // 0 is never.
    place.file("never.toml", "agents.defaults.subagents.archiveAfterMinutes = 0\n");
    place.run(&["run", "--config", "never.toml", "x", "--", "cat"]).expect_code(0);
    age(&place, 999);
    assert_eq!(place.run(&["list", "--json"]).json().as_array().map(Vec::len), Some(1));
}

#[test]
fn a_duration_is_wanted() {
    let place = Place::new();
    place.run(&["prune"]).expect_code(2);
    let bare = place.run(&["prune", "--older-than", "0"]).expect_code(2);
    let said = "--older-than: found \"0\", allowed is a duration with its unit: 0s for seconds";
    assert!(bare.stderr.contains(said), "{}", bare.stderr);
    let wrong = place.run(&["prune", "--older-than", "soon"]).expect_code(2);
    let said = "--older-than: found \"soon\", allowed is a duration such as 90s";
    assert!(wrong.stderr.contains(said), "{}", wrong.stderr);
    place.run(&["prune", "--older-than", "1d"]).expect_code(0);
}

/// A root with two children, one of which has a child. Each but the root answers with a value of its own.
const FAMILY: &str = r#"
letter() { head -c 300000 /dev/zero | tr '\0' "$1"; echo "said $1" >&2; }
below() { "$OFFSHOOT" run --label "$1" "$1" -- sh family.sh "$1" > /dev/null; }
case $1 in
root) below child; below other; echo done ;;
child) below grandchild; letter c ;;
grandchild) letter g ;;
other) letter o ;;
esac
"#;

#[test]
fn a_run_goes_with_everything_below_it_and_the_record_proves_the_rest() {
    let place = Place::new();
    place.file("family.sh", FAMILY);
    let words = ["run", "--allow-recursive-spawn", "x", "--", "sh", "family.sh", "root"];
    place.run(&words).expect_code(0);
    assert_eq!(values(&place), 3);
    let events = place.run(&["events", "last", "--json"]).expect_code(0).stdout().to_owned();
    let logs =
        |label: &str| place.run(&["logs", label, "--stderr"]).expect_code(0).stdout().to_owned();
    assert_eq!((&*logs("child"), &*logs("grandchild")), ("said c\n", "said g\n"));

    let dry = place.run(&["prune", "child", "--dry-run", "--json"]).expect_code(0).json();
    assert_eq!(
        (&dry["values"], dry["runs"].as_array().map(Vec::len)),
        (&2.into(), Some(2)),
        "{dry}"
    );
    assert_eq!((values(&place), &*logs("child")), (3, "said c\n"), "a dry run deletes nothing");

    let pruned = place.run(&["prune", "child"]).expect_code(0);
    assert!(pruned.stdout().contains("deleted what 2 runs left, 2 values, "), "{}", pruned.text());
    assert!(pruned.stderr.contains("events stay"), "{}", pruned.stderr);
    assert_eq!(values(&place), 1);
    for gone in ["child", "grandchild"] {
        let said = logs(gone);
        assert!(!said.contains("said"), "{gone}: {said}");
        let shown = place.run(&["show", gone, "--answer"]);
        let merged = place.run(&["merge", "--result", gone]);
        for refused in [shown, merged] {
            let text = refused.text();
            assert!(refused.code == 2 && refused.stderr.contains("was deleted"), "{text}");
            assert!(!text.contains("store the value"), "{text}");
        }
        let shown = place.run(&["show", gone]).expect_code(0);
        assert!(shown.stdout().contains(", which was deleted"), "{}", shown.stdout());
    }
    assert_eq!(logs("other"), "said o\n");
    assert_eq!(place.run(&["show", "other", "--answer"]).expect_code(0).stdout.len(), 300_001);
    assert_eq!(place.run(&["events", "last", "--json"]).expect_code(0).stdout(), events);
    place.run(&["audit", "last"]).expect_code(0);
    let again = place.run(&["prune", "child"]).expect_code(0);
    assert!(again.stdout().contains("what 2 runs left, 0 values, "), "{}", again.text());

    let whole = place.run(&["prune", "main"]).expect_code(0);
    assert!(whole.stdout().contains("deleted 1 tree, "), "{}", whole.text());
    place.run(&["show", "last"]).expect_code(2);
}

#[test]
fn a_run_that_is_not_over_is_not_deleted() {
    let place = Place::new();
    let script = "\"$OFFSHOOT\" run --label over x -- true; echo up > fifo; cat hold > /dev/null";
    let words = ["run", "--allow-recursive-spawn", "x", "--", "sh", "-c", script];
    let mut command = place.command(&words);
    for name in ["fifo", "hold"] {
        named_pipe(place.path().join(name));
    }
    let child = command.spawn().expect("the program was built for this test");
    let up = BufReader::new(fs::File::open(place.path().join("fifo")).expect("a pipe"));
    assert_eq!(up.lines().next().expect("a word").expect("the bytes are not text"), "up");
    let tree = place.run(&["tree", "--json"]).json();
    let root = tree[0]["runId"].as_str().expect("it names the run");
    for run in ["last", "over"] {
        let refused = place.run(&["prune", run]).expect_code(3);
        let expected = format!("the run {root} is not over");
        assert!(refused.stderr.contains(&expected), "{run}: {}", refused.stderr);
    }
    fs::write(place.path().join("hold"), "").expect("the agent reads it");
    place.finish(child, &command, &[]).expect_code(0);
    place.run(&["prune", "over"]).expect_code(0);
    place.run(&["audit", "last"]).expect_code(0);
}
