//! The cause of a failure, and what a run reported, in every view.

use crate::command::Place;

/// Fails as a Python program does.
const PYTHON: &str = r#"printf 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    open("x")\nFileNotFoundError: [Errno 2] No such file or directory: x\n' >&2; exit 1"#;
const CAUSE: &str = "exited with code 1: FileNotFoundError: [Errno 2] No such file or directory: x";

#[test]
fn a_failure_says_its_cause_in_every_view() {
    let place = Place::new();
    let script = format!("[ $(cat) = well ] || {{ {PYTHON}; }}");
    let fanout =
        place.run(&["fanout", "--task", "well", "--task", "ill", "--", "sh", "-c", &script]);
    assert_eq!(fanout.stderr.matches(CAUSE).count(), 1, "{}", fanout.stderr);
    place.file("ill", "ill");
    let quiet = place.run(&["-q", "map", "--on-failure", "skip", "ill", "--", "sh", "-c", &script]);
    assert_eq!(quiet.stderr.lines().next(), Some(&*format!("error: piece ill: {CAUSE}")));
    let trees = place.run(&["list", "--json"]).expect_code(0).json();
    let tree = trees[0]["runId"].as_str().expect("the run has no id");
    for view in [&["tree"][..], &["list", "--all"], &["events", tree], &["tree", "--json"]] {
        let outcome = place.run(view).expect_code(0);
        let cause = if view.contains(&"--json") { "\"FileNotFoundError: [" } else { CAUSE };
        assert!(outcome.stdout().contains(cause), "{view:?}: {}", outcome.stdout());
        assert!(!outcome.stdout().contains("Traceback"), "{view:?}: {}", outcome.stdout());
    }
    let runs = place.run(&["list", "--all", "--json"]).expect_code(0).json();
    let runs = runs.as_array().expect("runs");
    let ill = runs.iter().find(|run| run["status"] == "failed" && run["depth"] == 1);
    let ill = ill.expect("one failed")["runId"].as_str().expect("the run has no id");
    let show = place.run(&["show", ill]).expect_code(0);
    let shown = show.stdout();
    let mut rows = shown.lines();
    let said = rows.find_map(|row| row.strip_prefix("said ")).expect("its last words");
    assert!(shown.contains(CAUSE) && said.trim_start().starts_with("Traceback"), "{shown}");

    let run = place.run(&["run", "x", "--", "sh", "-c", PYTHON]).expect_code(1);
    let first = format!("error: {CAUSE}\nTraceback (most recent call last):\n");
    assert!(run.stderr.starts_with(&first), "{}", run.stderr);
}

#[test]
fn a_run_names_the_children_that_failed() {
    let place = Place::new();
    let script = format!(
        r#""$OFFSHOOT" spawn --wait --label child x -- sh -c '{}' 2> /dev/null || true; echo done"#,
        "echo no such table >&2; exit 3"
    );
    let run = place.run(&["run", "--allow-recursive-spawn", "x", "--", "sh", "-c", &script]);
    let run = run.expect_code(0);
    assert_eq!(run.stdout(), "\ndone\n");
    assert_eq!(run.stderr, "failed  main: child  exited with code 3: no such table\n");
}

#[test]
fn a_chain_of_failures_names_the_run_that_failed_first() {
    let place = Place::new();
    // Each below the last, and the innermost fails.
    place.file("leaf", "echo warm >&2; echo no such table >&2; exit 3");
    place.file("part", r#"exec "$OFFSHOOT" spawn --wait --label leaf x -- sh leaf"#);
    place.file("all", r#"exec "$OFFSHOOT" spawn --wait --label part x -- sh part"#);
    let run = ["run", "--allow-recursive-spawn", "--max-depth", "3", "x", "--", "sh", "all"];
    let run = place.run(&run).expect_code(1);
    let runs = place.run(&["list", "--all", "--json"]).expect_code(0).json();
    let runs = runs.as_array().expect("runs");
    let leaf = runs.iter().find(|run| run["label"] == "leaf").expect("it ran");
    let first = leaf["runId"].as_str().expect("the run has no id");
    let cause =
        format!("exited with code 1: run {first} (leaf): exited with code 3: no such table");
    let tree = place.run(&["tree"]).expect_code(0);
    assert_eq!(tree.stdout().matches(&cause).count(), 2, "{}", tree.stdout());
    assert!(run.stderr.contains(&format!("error: {cause}\n")), "{}", run.stderr);
    for said in [tree.stdout(), &run.stderr] {
        assert!(said.lines().all(|line| line.matches(": run ").count() <= 1), "{said}");
    }
}

#[test]
fn a_code_is_called_acceptable_only_where_nothing_else_explains_it() {
    let place = Place::new();
    let check = |tasks: &[&str], expected: bool| {
        let mut words = vec!["fanout"];
        tasks.iter().for_each(|task| words.extend(["--task", task]));
        let script = r#"read -r code said; [ -z "$said" ] || echo "$said" >&2; exit "$code""#;
        words.extend(["--", "sh", "-c", script]);
        let outcome = place.run(&words).expect_code(1);
        let hints = outcome.stderr.contains("--ok-exit");
        assert_eq!(hints, expected, "{tasks:?}: {}", outcome.stderr);
    };
    check(&["1\n", "2\n"], true);
    check(&["1\n", "1 broken\n"], false);
    check(&["127\n"], false);
}

#[test]
fn what_was_reported_stands_in_the_tree() {
    let place = Place::new();
    let script = r#""$OFFSHOOT" report "step 1"; "$OFFSHOOT" report "step 2 of 2""#;
    place.run(&["run", "x", "--", "sh", "-c", script]).expect_code(0);
    let tree = place.run(&["tree"]).expect_code(0);
    assert!(tree.stdout().contains("\"step 2 of 2\""), "{}", tree.stdout());
    let tree = place.run(&["tree", "--json"]).expect_code(0).json();
    assert_eq!(tree[0]["reported"], "step 2 of 2");
}

#[test]
fn what_a_child_says_of_its_error_stands_in_the_tree_and_in_the_progress() {
    let place = Place::new();
    let fails = r#"printf %s '{"error": "Git repo not clean\nat all", "recovery_suggestion": "git stash"}'; exit 3"#;
    let map = ["map", "--split", "lines:1", "in", "--", "sh", "-c", fails];
    place.file("in", "1\n2\n");
    let failed = place.run(&map).expect_code(1);
    let said = "exited with code 3; it says: Git repo not clean";
    assert_eq!(failed.stderr.matches(said).count(), 2, "{}", failed.stderr);
    for command in ["tree", "events"] {
        let shown = place.run(&[command, "last"]).expect_code(0).stdout().to_owned();
        assert_eq!(shown.matches(said).count(), 2, "{command}: {shown}");
        assert!(!shown.contains("at all"), "{shown}");
    }
    let tree = place.run(&["tree", "last", "--json"]).expect_code(0).json();
    assert_eq!(tree[0]["children"][0]["said"], "Git repo not clean", "{tree}");
    let whole = place.run(&["show", "in:2"]).expect_code(0).stdout().to_owned();
    assert!(whole.contains("it suggests: git stash"), "{whole}");
    // Failures of one cause stay one, whatever each says of it.
    let stats = place.run(&["stats", "last"]).expect_code(0).stdout().to_owned();
    assert!(stats.contains("2 × ") && !stats.contains("it says"), "{stats}");
}

/// A run that is ended from outside said last what it was at, on whichever stream; the line on standard error is no cause.
#[test]
fn a_run_that_was_ended_from_outside_said_last_what_it_was_at() {
    let place = Place::new();
    let script =
        "echo 'note: the usual' >&2; sleep 1.2; echo 'waiting for a lock'; exec sleep 1000";
    let outcome = place.run(&["run", "--idle-timeout", "2", "x", "--", "sh", "-c", script]);
    let outcome = outcome.expect_code(1);
    let said = "; last said: waiting for a lock";
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    for view in [&["show", "last"][..], &["list"], &["tree"], &["events"], &["stats"]] {
        let shown = place.run(view).expect_code(0).stdout().to_owned();
        assert!(shown.contains(said), "{view:?}: {shown}");
        assert!(!shown.contains("on standard error"), "{view:?}: {shown}");
    }
    let script = "echo 'note: the usual' >&2; sleep 1.2; echo 'waiting for a lock'; kill -9 $$";
    let outcome = place.run(&["run", "x", "--", "sh", "-c", script]).expect_code(1);
    assert!(outcome.stderr.contains(&format!("killed by signal 9{said}")), "{}", outcome.stderr);
}

/// A piece is named by its text where that is still what was cut from the file.
#[test]
fn a_piece_is_shown_with_its_text() {
    let place = Place::new();
    place.file("in", "host-1\nhost-2\n");
    place.run(&["-q", "map", "--split", "lines:1", "in", "--", "true"]).expect_code(0);
    let shown = || place.run(&["show", "in:2"]).expect_code(0).stdout().to_owned();
    assert!(shown().contains("/in from byte 7: host-2\n"), "{}", shown());
    place.file("in", "host-1\nhost-3\n");
    assert!(shown().contains("/in from byte 7\n"), "{}", shown());
}
