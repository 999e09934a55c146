//! Trees that are over, with which `resume` goes on.

use offshoot_test_support::named_pipe;

use crate::command::{Outcome, Place};
use crate::doomed::Doomed;
use crate::isolation;
use crate::resume::ran;

/// Counts how often each line was worked on. The fourth hangs until the file `go` is there, after it has said so.
const HANGS: &str = "read line; echo ran >> ran-$line; \
    if [ $line = 4 ] && [ ! -e go ]; then echo up > fifo; exec sleep 600; fi; echo $line";

/// Fails for the second and the third line until the file `go` is there.
const FAILS: &str = "read line; echo ran >> ran-$line; \
    case $line in 2|3) [ -e go ] || { echo broken >&2; exit 7; } ;; esac; echo $line";

fn map<'a>(script: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let map = ["map", "--split", "lines:1", "--max-concurrent", "1"];
    [&map, more, &["in", "--", "sh", "-c", script]].concat()
}

fn lines(many: u32) -> String {
    (1..=many).map(|line| format!("{line}\n")).collect()
}

fn place(many: u32) -> Place {
    let place = Place::new();
    place.file("in", lines(many));
    place
}

fn root(place: &Place) -> String {
    let trees = place.run(&["tree", "--all", "--json"]).expect_code(0).json();
    trees[0]["runId"].as_str().expect("a tree").to_owned()
}

fn numbers(outcome: &Outcome) -> Vec<u32> {
    let answers = outcome.stdout().split("---\n").map(str::trim);
    answers.map(|answer| answer.parse().expect("a line of the input")).collect()
}

fn all_ran(place: &Place, many: u32) -> Vec<usize> {
    (1..=many).map(|line| ran(place, line)).collect()
}

/// Each piece has its answer, as if it had never been stopped, and nothing that had one was run again.
#[track_caller]
fn check_whole(place: &Place, resumed: &Outcome, many: u32, again: &[u32]) {
    assert_eq!(numbers(resumed), Vec::from_iter(1..=many), "{}", resumed.stderr);
    let expected: Vec<usize> =
        (1..=many).map(|line| 1 + again.iter().filter(|again| **again == line).count()).collect();
    assert_eq!(all_ran(place, many), expected);
    let root = root(place);
    place.run(&["audit", &root]).expect_code(0);
    let merged = place.run(&["-q", "merge", "--children", &root]);
    assert_eq!(numbers(&merged.expect_code(0)), Vec::from_iter(1..=many), "in its order");
}

#[test]
fn a_map_goes_on_after_ctrl_c_and_once_more() {
    let (place, status) = Doomed::start(place(30), &map(HANGS, &[])).interrupt();
    assert_eq!(status.code(), Some(130));
    assert_eq!(all_ran(&place, 6), [1, 1, 1, 1, 0, 0]);
    let root = root(&place);
    let (place, status) = Doomed::start(place, &["resume", &root]).interrupt();
    assert_eq!(status.code(), Some(130));
    // A supervisor that is killed in between leaves a tree that only lost it.
    let place = Doomed::start(place, &["resume", &root]).kill();
    place.file("go", "");
    let resumed = place.run(&["resume"]).expect_code(0);
    check_whole(&place, &resumed, 30, &[4, 4, 4]);
    let over = place.run(&["resume", &root]).expect_code(0);
    assert!(over.stderr.contains("nothing is left to resume"), "{}", over.stderr);
    assert_eq!(numbers(&over), Vec::from_iter(1..=30));
    let shown = place.run(&["events", &root]).expect_code(0);
    let said = "by the operator: what was cancelled runs again";
    assert_eq!(shown.stdout().matches(said).count(), 2, "{}", shown.stdout());
}

/// The record of a second life is seen by others while it lives, and stays when its supervisor is killed.
#[test]
fn a_second_life_is_seen_and_survives_its_supervisor() {
    let script = "read line; echo ran >> ran-$line; \
        case $line in 2|3) [ -e go ] || { echo up > fifo; cat wait-$line; } ;; esac; echo $line";
    let place = place(4);
    ["wait-2", "wait-3"].iter().for_each(|name| named_pipe(place.path().join(name)));
    // A pause is on record when it is told, and so is all that was recorded before.
    let running = |place: &Place| {
        place.run(&["pause", "last"]).expect_code(0);
        let listed = place
            .run(&["list", "--tree", "last", "--status", "running", "--json"])
            .expect_code(0)
            .json();
        let labels = listed.as_array().expect("runs").iter().map(|run| run["label"].clone());
        labels.filter(|label| label.is_string()).collect::<Vec<_>>()
    };
    let (place, status) = Doomed::start(place, &map(script, &[])).interrupt();
    assert_eq!(status.code(), Some(130));
    let root = root(&place);
    let second = Doomed::start(place, &["resume", &root, "--idle-timeout", "7m"]);
    assert_eq!(running(&second.place), ["in:2"]);
    second.place.run(&["unpause", "last"]).expect_code(0);
    std::fs::write(second.place.path().join("wait-2"), "").expect("the piece reads it");
    let second = second.again();
    assert_eq!(running(&second.place), ["in:3"]);
    let place = second.kill();
    place.file("go", "");
    let resumed = place.run(&["resume"]).expect_code(0);
    assert_eq!(numbers(&resumed), Vec::from_iter(1..=4), "{}", resumed.stderr);
    assert_eq!(all_ran(&place, 4), [1, 2, 2, 1], "the second piece ended in the second life");
    // The limit of the second life holds in the third one.
    for label in ["in:2", "in:3", "in:4"] {
        let shown = place.run(&["show", label, "--json"]).expect_code(0).json();
        assert_eq!(shown["grant"]["idleTimeoutSeconds"], 420, "{label}: {shown}");
    }
    place.run(&["audit", &root]).expect_code(0);
}

#[test]
fn a_tree_that_was_cancelled_goes_on() {
    let tasks =
        ["fanout", "--max-concurrent", "1", "--task", "one", "--task", "two", "--", "sh", "-c"];
    let script = "read task; if [ \"$task\" = two ] && [ ! -e go ]; then echo up > fifo; exec sleep 600; fi; \
        echo $task >> ran; echo did $task";
    let doomed = Doomed::start(Place::new(), &[&tasks[..], &[script]].concat());
    let root = root(&doomed.place);
    doomed.place.run(&["cancel", &root]).expect_code(0);
    let (place, status) = doomed.wait();
    assert_eq!(status.code(), Some(1));
    place.file("go", "");
    let resumed = place.run(&["resume", &root]).expect_code(0);
    assert_eq!(resumed.stdout(), "did one\n---\ndid two\n");
    let runs = |more: &[&str]| {
        let listed = place.run(&[&["list", "--json", "--tree", "last"], more].concat()).json();
        listed.as_array().map(Vec::len)
    };
    assert_eq!((runs(&[]), runs(&["--all"])), (Some(3), Some(4)), "the piece that ran again too");
    let ran = std::fs::read_to_string(place.path().join("ran")).expect("both have run");
    assert_eq!(ran, "one\ntwo\n");
}

#[test]
fn a_dry_run_names_what_would_run_and_runs_nothing() {
    let place = place(5);
    place.run(&map(FAILS, &["--on-failure", "skip"])).expect_code(0);
    let root = root(&place);
    let before = place.run(&["events", &root]).expect_code(0).stdout().to_owned();
    let planned = place.run(&["resume", "last", "--failed", "--dry-run"]).expect_code(0);
    let expected = format!(
        "would go on: tree {root}\n  run: 2 of 5 pieces\n  kept: 3 answers\n  stay without an answer: 0\n  in:2\n  in:3\n"
    );
    assert_eq!(planned.stdout(), expected);
    let only = ["resume", "last", "--failed", "--only", "in:3", "--dry-run", "--json"];
    let only = place.run(&only).expect_code(0).json();
    assert_eq!(only["run"], serde_json::json!(["in:3"]));
    assert_eq!((&only["kept"], &only["without"]), (&3.into(), &1.into()));
    assert_eq!(place.run(&["events", &root]).expect_code(0).stdout(), before);
    // Without an option nothing runs, and the answer that is there is said to lack two.
    for more in [&[][..], &["--dry-run"]] {
        let over = place.run(&[&["resume", "last"], more].concat()).expect_code(0);
        let said = format!(
            "tree {root} is over: nothing is left to resume, although 2 runs of it did not complete"
        );
        assert!(over.stderr.contains(&said), "{}", over.stderr);
        let hint = format!("hint: `offshoot resume {root} --failed` runs them again");
        assert!(over.stderr.contains(&hint), "{}", over.stderr);
        assert_eq!(over.stdout().is_empty(), !more.is_empty());
    }
    assert_eq!(
        place.run(&["resume", "last", "--dry-run", "--json"]).json()["run"],
        serde_json::json!([])
    );
    // One label was asked for: the others are not counted, and the hint can be typed as it is.
    let one = place.run(&["resume", "last", "--only", "in:2", "--dry-run"]).expect_code(0);
    assert!(one.stderr.contains("although 1 run with the label `in:2` did not"), "{}", one.stderr);
    let hint = format!("`offshoot resume {root} --failed --only in:2` runs it again");
    assert!(one.stderr.contains(&hint), "{}", one.stderr);
    // A name that is left out is not a choice that is left out.
    let none = place.run(&["resume", "--failed", "--budget-usd", "2"]).expect_code(2);
    let hint = "`offshoot resume last --failed --budget-usd 2.00` goes on with the newest tree";
    assert!(none.stderr.contains(hint), "{}", none.stderr);
    place.file("go", "");
    let resumed = place.run(&["resume", "last", "--failed"]).expect_code(0);
    check_whole(&place, &resumed, 5, &[2, 3]);
}

#[test]
fn a_dry_run_counts_pieces_that_never_started() {
    let (place, status) = Doomed::start(place(6), &map(HANGS, &[])).interrupt();
    assert_eq!(status.code(), Some(130));
    let planned = |more: &[&str]| {
        let planned = place.run(&[&["resume", "last", "--dry-run", "--json"], more].concat());
        let planned = planned.expect_code(0).json();
        (planned["run"].clone(), planned["kept"].clone(), planned["without"].clone())
    };
    let all = serde_json::json!(["in:4", "in:5", "in:6"]);
    assert_eq!(planned(&[]), (all, 3.into(), 0.into()));
    let one = serde_json::json!(["in:5"]);
    assert_eq!(planned(&["--only", "in:5"]), (one, 3.into(), 2.into()));
    // What was read is compared before, as the resume would.
    place.file("in", "1\n2\n3\nfour\n5\n6\n");
    place.run(&["resume", "last", "--dry-run"]).expect_code(2);
}

#[test]
fn what_failed_runs_again_by_name_or_all_of_it() {
    let place = place(5);
    let failed = place.run(&map(FAILS, &[])).expect_code(1);
    let root = root(&place);
    let hint = format!("`offshoot resume {root} --failed` goes on with the rest");
    assert!(failed.stderr.contains(&hint), "{}", failed.stderr);

    let plain = place.run(&["resume", &root]).expect_code(1);
    assert!(plain.stderr.contains("although 2 runs of it did not complete"), "{}", plain.stderr);
    assert_eq!(all_ran(&place, 5), [1; 5]);

    place.file("go", "");
    let only = ["resume", &root, "--failed", "--only", "in:3"];
    let one = place.run(&only).expect_code(1);
    assert!(one.stderr.contains("4 of 5 pieces completed"), "{}", one.stderr);
    assert_eq!(all_ran(&place, 5), [1, 1, 2, 1, 1]);
    assert!(
        !one.stderr.contains("broken"),
        "failures of before are not told again: {}",
        one.stderr
    );
    let wrong = place.run(&["resume", &root, "--failed", "--only", "3"]).expect_code(2);
    assert!(wrong.stderr.contains("no piece of this tree has the label `3`"), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("in their label: `in:3`"), "{}", wrong.stderr);
    // A label means the run that took the place, and so do the views.
    assert_eq!(place.run(&["show", "in:3", "--json"]).expect_code(0).json()["status"], "completed");
    let tree = place.run(&["tree"]).expect_code(0).stdout().to_owned();
    assert_eq!(tree.matches("in:3").count(), 1, "{tree}");
    assert!(tree.contains("… 1 whose place another run has taken"), "{tree}");
    let none = place.run(&only).expect_code(1);
    assert!(
        none.stderr.contains("nothing is left to resume: `in:3` has its answer"),
        "{}",
        none.stderr
    );

    let resumed = place.run(&["resume", &root, "--failed"]).expect_code(0);
    let progress: Vec<&str> = resumed.stderr.lines().filter(|line| line.contains(" % ")).collect();
    assert!(progress.iter().all(|line| line.starts_with("100 %  5 of 5 done")), "{progress:?}");
    assert_eq!(progress.len(), 1, "{progress:?}");
    let stats = place.run(&["stats", &root]).expect_code(0).stdout().to_owned();
    assert!(stats.contains(": 5 completed; 2 had no answer before and ran again"), "{stats}");
    assert!(!stats.contains("failures"), "{stats}");
    check_whole(&place, &resumed, 5, &[2, 3]);
}

#[test]
fn pieces_run_again_with_the_limits_of_time_that_are_given() {
    let place = place(2);
    // The second piece is silent until the file is there, and fails once more then.
    let script = "read x; [ $x = 2 ] || exit 0; [ -e go ] || read never < pipe; [ -e twice ]";
    named_pipe(place.path().join("pipe"));
    let limits = ["--idle-timeout", "1s", "--timeout", "40s"];
    let failed = place.run(&map(script, &limits)).expect_code(1);
    assert!(failed.stderr.contains("no sign of life for 1 s"), "{}", failed.stderr);
    let granted = || {
        let grant = place.run(&["show", "in:2", "--json"]).expect_code(0).json()["grant"].clone();
        (grant["runTimeoutSeconds"].clone(), grant["idleTimeoutSeconds"].clone())
    };
    assert_eq!(granted(), (40.into(), 1.into()));
    place.file("go", "");
    let longer = ["resume", "last", "--failed", "--idle-timeout", "1h", "--timeout", "2h"];
    place.run(&longer).expect_code(1);
    assert_eq!(granted(), (7_200.into(), 3_600.into()));
    let said = place.run(&["events", "last"]).expect_code(0).stdout().to_owned();
    assert!(said.contains("7200 s of work for each, 3600 s of silence for each"), "{said}");
    // They hold from then on, until others are given.
    place.file("twice", "");
    place.run(&["resume", "last", "--failed", "--timeout", "10m"]).expect_code(0);
    assert_eq!(granted(), (600.into(), 3_600.into()));
    place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn a_tree_without_time_says_what_to_type() {
    let place = place(5);
    place.file("c.toml", "[agents.defaults.subagents]\ndeadlineSeconds = 1\n");
    let (place, status) = Doomed::start(place, &map(HANGS, &["--config", "c.toml"])).wait();
    assert_eq!(status.code(), Some(4));
    place.file("go", "");
    let root = root(&place);
    let refused = place.run(&["resume", &root]).expect_code(2);
    assert!(refused.stderr.contains("the time of the tree is over"), "{}", refused.stderr);
    let hint = format!("`offshoot resume {root} --deadline 2h`");
    assert!(refused.stderr.contains(&hint), "{}", refused.stderr);
    // No time at all would end what was reopened at once.
    let none = place.run(&["resume", &root, "--deadline", "0"]).expect_code(2);
    assert!(none.stderr.contains("a duration that is not 0"), "{}", none.stderr);
    let unbounded = ["resume", &root, "--deadline", "2h", "--budget-usd", "5"];
    let refused = place.run(&unbounded).expect_code(2);
    assert!(refused.stderr.contains("has no budget of usd"), "{}", refused.stderr);
    assert_eq!(all_ran(&place, 5), [1, 1, 1, 1, 0], "nothing runs before that is settled");
    let resumed = place.run(&["resume", &root, "--deadline", "2h"]).expect_code(0);
    check_whole(&place, &resumed, 5, &[4]);
}

/// A sum that could not be made is not printed as far as it had come: a script would take it for the answer.
#[test]
fn a_merge_that_failed_has_no_answer_later_either() {
    let place = Place::new();
    place.file("in", "1\nx\n");
    let map = ["map", "--merge", "sum", "--split", "lines:1", "in", "--", "cat"];
    for words in [&map[..], &["resume", "last"]] {
        let failed = place.run(words).expect_code(1);
        assert_eq!(failed.stdout(), "");
        assert!(
            failed.stderr.contains("the result of `in:2` is not a number"),
            "{}",
            failed.stderr
        );
    }
}

/// The line that begins anew has the options that the run was given beside its limits, a folder of its own above all.
#[test]
fn what_begins_anew_has_the_options_of_the_run() {
    let place = isolation::repository();
    place.file("plan", "a plan");
    let given = ["--isolation", "worktree", "--ok-exit", "0,3", "--context", "a plan=plan"];
    let run = [&["run"], &given[..], &["task", "--", "sh", "-c", "exit 1"]].concat();
    place.run(&run).expect_code(1);
    let refused = place.run(&["resume", "last"]).expect_code(2);
    let anew = "to begin anew: offshoot run --isolation worktree --ok-exit 0,3 --context 'a plan=FILE' task -- sh -c 'exit 1'\n";
    assert!(refused.stderr.contains(anew), "{}", refused.stderr);
}

/// An agent that was stopped is over, as each ended run is. That is said by its name, with and without options.
#[test]
fn a_root_that_is_an_agent_is_refused_by_name() {
    let agent = "[[agents.list]]\nid = \"slow\"\nruntime = \"exec\"\n\
                 command = [\"sh\", \"-c\", \"echo up > fifo; exec sleep 600\"]\n";
    let place = Place::new();
    place.file("c.toml", agent);
    let run = ["--config", "c.toml", "run", "--agent", "slow", "task"];
    let (place, status) = Doomed::start(place, &run).interrupt();
    assert_eq!(status.code(), Some(130));
    let limits = ["run", "--budget-tokens", "900", "--deadline", "2h", "--allow-recursive-spawn"];
    place.run(&[&limits[..], &["task", "--", "sh", "-c", "exit 3"]].concat()).expect_code(1);
    let again =
        "run --deadline 7200 --budget-tokens 900 --allow-recursive-spawn task -- sh -c 'exit 3'";
    let with_config = format!("run --config {}/c.toml --agent slow task", place.path().display());
    for (position, agent, how, anew) in
        [("1", "slow", "cancelled", &*with_config), ("2", "main", "failed", again)]
    {
        place.run(&["list"]).expect_code(0);
        let root = format!("@{position}");
        for options in [&[][..], &["--failed"], &["--deadline", "2h"]] {
            let refused = place.run(&[&["resume", &root][..], options].concat()).expect_code(2);
            let why = format!(
                "its root is the agent `{agent}` on the runtime `exec`, whose run is over ({how}): \
                 only pieces of a map or a fanout run again"
            );
            assert!(refused.stderr.contains(&why), "{options:?}: {}", refused.stderr);
            let hint =
                format!("shows its answer and what it did; to begin anew: offshoot {anew}\n");
            assert!(refused.stderr.contains(&hint), "{}", refused.stderr);
            assert_eq!(refused.stdout(), "");
        }
    }
    place.run(&["run", "task", "--", "echo", "fine"]).expect_code(0);
    let over = place.run(&["resume", "last"]).expect_code(0);
    assert!(over.stderr.contains("nothing is left to resume"), "{}", over.stderr);
    assert_eq!(over.stdout(), "fine\n");
    let asked = place.run(&["resume", "last", "--failed"]).expect_code(2);
    assert!(asked.stderr.contains("(completed)"), "{}", asked.stderr);
}
