//! Tasks that need each other, as users see them.

use crate::command::{Place, Table};
use crate::resume::Doomed;

/// A fetch, two that read what it said, and one that reads both.
const DIAMOND: &str = r#"{"id":"report","needs":["left","right"],"task":"report"}
{"id":"fetch","task":"fetch"}
{"id":"left","needs":["fetch"],"task":"left"}
{"id":"right","needs":["fetch"],"task":"right"}
"#;

/// Says its task, and the answers that it was given in brackets.
const SAYS: &str = r#"said=$(head -n 1); set --
for need in fetch left right; do
    given=$("$OFFSHOOT" context get "need_$need" 2>/dev/null) && said="$said[$given]"
done
printf '%s' "$said""#;

#[test]
fn each_task_reads_the_answers_that_it_needs() {
    let place = Place::new();
    place.file("tasks.jsonl", DIAMOND);
    let fanout = ["-q", "fanout", "--tasks", "tasks.jsonl", "--json", "--", "sh", "-c", SAYS];
    let report = place.run(&fanout).expect_code(0).json();
    let expected =
        "report[left[fetch]][right[fetch]]\n---\nfetch\n---\nleft[fetch]\n---\nright[fetch]";
    assert_eq!(report["data"], expected, "the answer keeps the order of the file");
    let root = report["runId"].as_str().expect("a run");
    let tree = place.run(&["tree", root]).expect_code(0);
    assert!(tree.stdout().contains("main: report "), "{}", tree.stdout());
    assert!(tree.stdout().contains("needs left, right"), "{}", tree.stdout());
    let shown = place.run(&["show", "report"]).expect_code(0);
    assert!(shown.stdout().contains("needs") && shown.stdout().contains("left  completed"));
    let graph = place.run(&["export", "--format", "mermaid", root]).expect_code(0);
    assert_eq!(graph.stdout().matches(" -.-> ").count(), 4, "{}", graph.stdout());
    let graph = place.run(&["export", "--format", "dot", root]).expect_code(0);
    assert_eq!(graph.stdout().matches("[style=dashed]").count(), 4, "{}", graph.stdout());
    place.run(&["audit", root]).expect_code(0);
}

#[test]
fn a_failure_stops_what_needs_it_and_resume_runs_both_again() {
    let place = Place::new();
    let lines = [
        r#"{"id":"bad","task":"bad"}"#,
        r#"{"id":"after","needs":["bad"],"task":"after"}"#,
        r#"{"id":"later","needs":["after"],"task":"later"}"#,
        r#"{"id":"anyway","needs":["bad"],"onNeedFailed":"run","task":"anyway"}"#,
        r#"{"task":"beside"}"#,
    ];
    place.file("tasks.jsonl", lines.join("\n"));
    let script = r#"task=$(head -n 1); printf '%s' "$task"; [ "$task" != bad ] || [ -e mended ]"#;
    let fanout = ["fanout", "--tasks", "tasks.jsonl", "--on-failure", "skip", "--"];
    let outcome = place.run(&[&["-q", "--json"], &fanout[..], &["sh", "-c", script]].concat());
    let report = outcome.expect_code(0).json();
    assert_eq!(report["data"], "anyway\n---\nbeside");
    let root = report["runId"].as_str().expect("a run").to_owned();
    let tree = place.run(&["tree", &root]).expect_code(0).stdout().to_owned();
    assert!(tree.contains("not started: `bad`, which it needs, did not complete"), "{tree}");
    assert!(tree.contains("not started: `after`, which it needs, did not complete"), "{tree}");
    place.file("mended", "");
    let report = place.run(&["-q", "--json", "resume", "--failed", &root]).expect_code(0).json();
    assert_eq!(report["data"], "bad\n---\nafter\n---\nlater\n---\nanyway\n---\nbeside");
    place.run(&["audit", &root]).expect_code(0);
}

#[test]
fn a_killed_tree_goes_on_with_what_was_not_over() {
    let place = Place::new();
    let lines = [
        r#"{"id":"last","needs":["slow"],"task":"last"}"#,
        r#"{"id":"first","task":"first"}"#,
        r#"{"id":"slow","needs":["first"],"task":"slow"}"#,
    ];
    place.file("tasks.jsonl", lines.join("\n"));
    // The second waits for a file in its first life, and says what it was given.
    let script = r#"task=$(head -n 1); echo "$task" >> ran
        if [ "$task" = slow ]; then
            if [ ! -e killed ]; then echo up > fifo; exec sleep 600; fi
            "$OFFSHOOT" context get need_first
        fi
        [ "$task" != last ] || "$OFFSHOOT" context get need_slow
        printf '%s' "<$task>""#;
    let fanout = ["-q", "fanout", "--tasks", "tasks.jsonl", "--", "sh", "-c", script];
    let place = Doomed::start(place, &fanout).kill();
    place.file("killed", "");
    let tree = place.run(&["tree"]).expect_code(0).stdout().to_owned();
    assert!(tree.contains("needs slow"), "{tree}");
    let answer = place.run(&["-q", "resume"]).expect_code(0).stdout().to_owned();
    assert_eq!(answer, "<first><slow><last>\n---\n<first>\n---\n<first><slow>\n");
    let ran = std::fs::read_to_string(place.path().join("ran")).expect("what ran");
    assert_eq!(ran.lines().collect::<Vec<_>>(), ["first", "slow", "slow", "last"]);
    place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn a_dry_run_shows_the_order() {
    let place = Place::new();
    place.file("tasks.jsonl", DIAMOND);
    let fanout = ["fanout", "--tasks", "tasks.jsonl", "--dry-run", "--", "cat"];
    let text = place.run(&fanout).expect_code(0).stdout().to_owned();
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("  ")).take(4).collect();
    let names: Vec<&str> = rows.iter().filter_map(|row| row.split_whitespace().next()).collect();
    assert_eq!(names, ["fetch", "left", "right", "report"], "{text}");
    assert!(rows[3].ends_with("after left, right"), "{text}");
    let json = place.run(&[&["--json"], &fanout[..]].concat()).expect_code(0).json();
    assert_eq!(json["pieces"][0]["wave"], 3, "{json}");
}

#[test]
fn tasks_without_an_order_are_named() {
    let mut table = Table::default();
    let place = Place::new();
    for lines in [
        "{\"id\":\"a\",\"needs\":[\"b\"],\"task\":\"x\"}\n\n{\"id\":\"b\",\"needs\":[\"a\"],\"task\":\"x\"}",
        r#"{"id":"a","needs":["a"],"task":"x"}"#,
        "{\"id\":\"fetch\",\"task\":\"x\"}\n{\"needs\":[\"fecth\"],\"task\":\"x\"}",
        "{\"id\":\"a\",\"task\":\"x\"}\n{\"id\":\"a\",\"task\":\"y\"}",
        r#"{"id":"a","needs":"b","task":"x"}"#,
        r#"{"id":"","task":"x"}"#,
        r#"{"id":"a","onNeedFailed":"stop","task":"x"}"#,
        "{\"id\":\"a\",\"task\":\"x\"}\n{\"needs\":[\"a\"],\"context\":{\"need_a\":\"f\"},\"task\":\"x\"}",
    ] {
        table.row(&place.feed(&["fanout", "--tasks", "-", "--", "cat"], lines));
    }
    table.check("needs_wrong");
}
