//! `offshoot merge`.

use crate::command::{Place, Table, check};

const THREE: &str = "{\"key\":\"a\",\"value\":2}\n{\"key\":\"b\",\"value\":\"x\\ny\"}\n{\"key\":\"c\",\"value\":2}\n";

#[test]
fn every_strategy_has_its_output() {
    let place = Place::new();
    for (strategy, expected) in [
        ("concatenate", "2\n---\nx\ny\n---\n2\n"),
        ("structured", "{\"a\":2,\"b\":\"x\\ny\",\"c\":2}\n"),
        (
            "summarize",
            "[Result 1 from a]:\n2\n\n[Result 2 from b]:\nx\ny\n\n[Result 3 from c]:\n2\n",
        ),
        ("first", "2\n"),
        ("quorum:2", "2\n"),
        (
            "vote",
            "{\"winner\":2,\"votes\":{\"2\":{\"count\":2,\"value\":2},\"\\\"x\\\\ny\\\"\":{\"count\":1,\"value\":\"x\\ny\"}}}\n",
        ),
    ] {
        let outcome = place.feed(&["merge", "--strategy", strategy], THREE).expect_code(0);
        assert_eq!(outcome.stdout(), expected, "{strategy}");
    }
    let sum = "{\"key\":\"a\",\"value\":2}\n{\"key\":\"b\",\"value\":\" 0.5\\n\"}";
    assert_eq!(
        place.feed(&["merge", "--strategy", "sum", "-"], sum).expect_code(0).stdout(),
        "2.5\n"
    );
}

/// The answer of no runs is no number: a merge of a merge, and of a run without children, is refused.
#[test]
fn a_run_without_children_has_nothing_to_merge() {
    let place = Place::new();
    place.run(&["-q", "fanout", "--task", "3", "--task", "4", "--", "cat"]).expect_code(0);
    let sum = ["merge", "--children", "last", "--strategy", "sum"];
    assert_eq!(place.run(&sum).expect_code(0).stdout(), "7\n");
    let asks = ["-q", "merge", "--children", "last", "--strategy", "command:cat"];
    place.run(&asks).expect_code(0);
    // The newest tree is that of the merge now.
    let again = place.run(&sum).expect_code(2);
    assert!(again.stderr.contains("nothing runs below last that has a result"), "{}", again.stderr);
    place.run(&["-q", "run", "5", "--", "cat"]).expect_code(0);
    place.run(&sum).expect_code(2);
    let fails = ["-q", "fanout", "--task", "3", "--task", "4", "--", "sh", "-c", "exit 9"];
    place.run(&fails).expect_code(1);
    let none = place.run(&sum).expect_code(2);
    assert!(none.stderr.contains("none of the 2 children of last"), "{}", none.stderr);
}

#[test]
fn results_come_from_a_file_or_standard_input() {
    let place = Place::new();
    place.file("r.jsonl", THREE);
    let from_file = place.run(&["merge", "r.jsonl"]).expect_code(0);
    assert_eq!(from_file.stdout(), place.feed(&["merge"], THREE).expect_code(0).stdout());
    check("merge_empty", &place.feed(&["merge", "--strategy", "structured"], ""));
}

#[test]
fn what_does_not_merge_is_named() {
    let mut table = Table::default();
    let place = Place::new();
    table.row(&place.feed(&["merge", "--strategy", "concat"], THREE));
    table.row(&place.feed(&["merge", "--strategy", "best-of"], THREE));
    table.row(&place.feed(&["merge", "--strategy", "structured:hex"], THREE));
    table.row(&place.feed(&["merge"], format!("{THREE}\n{{\"key\":\"d\"}}\n")));
    table.row(&place.feed(&["merge"], "hello\n"));
    table.row(&place.feed(&["merge"], b"{\"key\":\"\xff\",\"value\":1}\n"));
    table.row(&place.feed(&["merge", "--strategy", "sum"], THREE));
    table.row(&place.feed(&["merge", "--strategy", "quorum:3"], THREE));
    table.row(&place.run(&["merge", "nowhere.jsonl"]));
    table.row(&place.run(&["merge", "home"]));
    table.row(&place.run(&["merge", "--result", "0198"]));
    table.check("merge_wrong");
}

#[test]
fn a_tie_is_marked_and_bytes_are_no_text() {
    let place = Place::new();
    let script = "read x; case $x in a) echo yes;; b) echo no;; c) printf 'x\\377';; esac";
    let map = |merge: &str, of: &[&str]| {
        of.iter().for_each(|name| drop(place.file(name, format!("{name}\n"))));
        let map = ["map", "--merge", merge, "--max-concurrent", "1"];
        place.run(&[&map[..], of, &["--", "sh", "-c", script]].concat())
    };
    let tie = map("vote", &["a", "b"]).expect_code(0);
    assert!(tie.stdout().starts_with(r#"{"winner":"yes","tie":true,"votes":"#), "{}", tie.stdout());
    let said = "warning: vote: a tie: 2 values were given once each, and the winner is the first";
    assert!(tie.stderr.contains(said), "{}", tie.stderr);
    let clear = map("vote", &["a"]).expect_code(0);
    assert!(!clear.text().contains("tie"), "{}", clear.text());
    for merge in ["structured", "vote", "summarize"] {
        let refused = map(merge, &["a", "c"]).expect_code(1);
        let said = format!("error: {merge}: the result of `c` is not UTF-8 text");
        assert!(refused.stderr.contains(&said), "{}", refused.text());
    }
    assert_eq!(map("concatenate", &["a", "c"]).expect_code(0).stdout, b"yes\n---\nx\xff\n");
    // Base64 is what carries them where it is asked for, now and of what was kept.
    let expected = "{\"a\":\"yes\",\"c\":{\"base64\":\"eP8=\"}}\n";
    assert_eq!(map("structured:base64", &["a", "c"]).expect_code(0).stdout(), expected);
    let kept = ["merge", "--children", "last", "--strategy", "structured:base64"];
    assert_eq!(place.run(&kept).expect_code(0).stdout(), expected);
}

/// A program that reads the output of `quorum` or `first` has what was agreed on, or nothing.
#[test]
fn what_was_not_agreed_on_is_not_printed() {
    let place = Place::new();
    let script = "read task; case $task in c) exit 3;; *) echo $task;; esac";
    let run = |merge: &str, tasks: &[&str], on_failure: &str| {
        let tasks: Vec<&str> = tasks.iter().flat_map(|task| ["--task", task]).collect();
        let words = ["--on-failure", on_failure, "--merge", merge, "--", "sh", "-c", script];
        place.run(&[&["fanout"], &tasks[..], &words].concat()).expect_code(1)
    };
    let split = run("quorum:2", &["a", "b", "c"], "fail");
    assert_eq!(split.stdout(), "", "{}", split.text());
    let quiet = run("quorum:2", &["a", "b"], "skip");
    assert_eq!(quiet.stdout(), "", "{}", quiet.text());
    for on_failure in ["skip", "include"] {
        for (merge, said) in
            [("first", "first: no piece completed"), ("quorum:2", "quorum: no piece completed")]
        {
            let none = run(merge, &["c", "c"], on_failure);
            assert_eq!(none.stdout(), "", "{}", none.text());
            assert!(none.stderr.contains(said), "{}", none.text());
        }
    }
}

/// A quorum that cannot come is refused before any agent is paid for it, and one that did not come is the reason of the tree.
#[test]
fn a_quorum_has_as_many_answers_as_it_needs() {
    let place = Place::new();
    place.file("in", "1\n2\n");
    let words = ["--merge", "quorum:3", "--", "sh", "-c", "echo $$"];
    let fanout = place.run(&[&["fanout", "--task", "a", "--task", "b"][..], &words].concat());
    let map = [&["map", "--split", "lines:1", "in", "--dry-run"][..], &words].concat();
    for refused in [fanout, place.run(&map)] {
        let text = refused.expect_code(2).text();
        assert!(text.contains("needs 3 equal answers, and at most 2 answers will come"), "{text}");
    }
    let words = ["--merge", "quorum:2", "--", "sh", "-c", "echo $$"];
    let split = place.run(&[&["fanout", "--task", "a", "--task", "b"][..], &words].concat());
    let hint = "--strategy STRATEGY` merges them in another way, and nothing runs again";
    assert!(split.expect_code(1).stderr.contains(hint));
    let shown = place.run(&["show", "last"]).expect_code(0);
    let said = "no value was given 2 times; the most frequent was given once";
    // What was paid for is not lost.
    let again = place.run(&["merge", "--children", "last", "--strategy", "vote"]).expect_code(0);
    assert!(again.stdout().contains("\"count\":1"), "{}", again.text());
    assert!(shown.stdout().contains(said), "{}", shown.text());
    // A failure that is left out is not why there is no answer.
    let words = ["--on-failure", "skip", "--merge", "quorum:2", "--", "sh", "-c"];
    let tasks = ["fanout", "--task", "a", "--task", "b", "--task", "c"];
    let script = "read task; [ $task = c ] && exit 3; echo $task";
    place.run(&[&tasks[..], &words, &[script]].concat()).expect_code(1);
    let shown = place.run(&["show", "last"]).expect_code(0);
    assert!(shown.stdout().contains(said), "{}", shown.text());
    // A run is told the same of its children.
    let script = r#""$OFFSHOOT" fanout --task a --task b --merge quorum:3 -- echo hi; echo $?; "$OFFSHOOT" list"#;
    let inside = place.tree(&[], script).expect_code(0);
    let printed = inside.stdout();
    assert!(printed.starts_with("2\n") && printed.lines().count() == 3, "{}", inside.text());
}

/// A failed piece has no number, so that each failure would lose the sum after all pieces were paid for.
#[test]
fn a_sum_takes_no_failures_in_place_of_numbers() {
    let place = Place::new();
    place.file("in", "1\n2\n");
    let words = ["map", "--merge", "sum", "--split", "lines:1", "--on-failure"];
    let refused = place.run(&[&words[..], &["include", "in", "--", "cat"]].concat()).expect_code(2);
    for said in ["--merge sum cannot have --on-failure include", "--on-failure skip"] {
        assert!(refused.stderr.contains(said), "{}", refused.stderr);
    }
    let none = place.run(&["list", "--all", "--json"]).json();
    assert_eq!(none.as_array().map(Vec::len), Some(0), "nothing was started");
    // One that asks from inside a tree is told the same.
    let outcome = place.tree(
        &[],
        "printf '2\\n3\\n' > part\n\
         \"$OFFSHOOT\" map --merge sum --on-failure include --split lines:1 part -- cat 2>&1 || true",
    );
    let said = outcome.expect_code(0).text();
    assert!(said.contains("--merge sum cannot have --on-failure include"), "{said}");
    let skips = place.run(&[&words[..], &["skip", "in", "--", "cat"]].concat()).expect_code(0);
    assert_eq!(skips.stdout(), "3\n");
}
