//! Tasks that need each other, as users see them.

use crate::command::{Place, Table};
use crate::doomed::Doomed;
use crate::door_methods::ask;

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

#[test]
fn children_of_an_agent_need_each_other_too() {
    let place = Place::new();
    place.file("tasks.jsonl", DIAMOND);
    place.file("says.sh", SAYS);
    let lines = [
        r#"{"id":"bad","task":"bad"}"#,
        r#"{"id":"after","needs":["bad"],"type":"late","task":"after"}"#,
        r#"{"id":"anyway","needs":["bad"],"onNeedFailed":"run","task":"anyway"}"#,
    ];
    place.file("failing.jsonl", lines.join("\n"));
    place.file("cycle.jsonl", r#"{"id":"a","needs":["a"],"task":"x"}"#);
    let outcome = place.tree(
        &["--max-concurrent", "2", "--context", "need_left=says.sh"],
        r#"for time in 1 2; do
            "$OFFSHOOT" -q fanout --tasks tasks.jsonl -- sh says.sh || exit
        done
        "$OFFSHOOT" -q fanout --tasks failing.jsonl --on-failure skip -- sh -c '
            task=$(head -n 1); printf "%s" "$task"; [ "$task" != bad ]' || exit
        "$OFFSHOOT" -q fanout --tasks cycle.jsonl -- cat 2>&1; echo $?
        "$OFFSHOOT" -q map tasks.jsonl -- cat --then -- cat 2>&1 | head -1"#,
    );
    let report =
        "report[left[fetch]][right[fetch]]\n---\nfetch\n---\nleft[fetch]\n---\nright[fetch]\n";
    let said = outcome.expect_code(0).stdout().to_owned();
    let rest = said.strip_prefix(&report.repeat(2)).unwrap_or_else(|| panic!("{said}"));
    let lines: Vec<&str> = rest.lines().collect();
    assert_eq!(lines[0], "anyway", "{rest}");
    assert!(rest.contains("tasks need each other in a cycle: a → a"), "{rest}");
    assert!(rest.contains("--then is for the root of a tree"), "{rest}");
    let tree = place.run(&["tree", "last"]).expect_code(0).stdout().to_owned();
    assert_eq!(tree.matches("needs left, right").count(), 2, "{tree}");
    assert!(tree.contains("not started: `bad`, which it needs, did not complete"), "{tree}");
    place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn a_request_of_the_door_names_what_its_children_need() {
    let place = Place::new();
    let answers = ask(
        &place,
        &["--max-spawns", "5"],
        r#"
def kid(script, **more): return dict(task="x", command=["sh", "-c", script], **more)
many = lambda *kids: ask("spawn_many", wait={}, children=list(kids))
many(kid('"$OFFSHOOT" context get need_one; echo', needs=["one"]), kid("printf 1", id="one"))
many(kid("echo", needs=["none"]))
many(kid("echo", id="a", needs=["b"]), kid("echo", id="b", needs=["a"]))
many(kid("echo", id="a"), kid("echo", id="a"))
many(kid("echo", id=""))
many(kid("echo", id="a"), kid("echo", needs=["a"], context=[{"name": "need_a", "from": "sub-result-" + a[1]["children"][1]["runId"]}]))
ask("spawn", **kid("echo", id="a"))
ask("delegate", **kid("echo", needs=["a"]))
many(kid("echo", id="a", cwd="here"), kid("echo", needs=["a"]), kid("echo ran", needs=["a"], onNeedFailed="run"))
ask("spawn_many", template=kid("echo", needs=["a"]), split={"name": "x", "by": "lines:1"})
"#,
    );
    assert_eq!(answers[0]["waited"]["ended"][0]["data"], "1", "{answers:?}");
    let refused: Vec<String> = answers[1..8]
        .iter()
        .map(|it| format!("{}: {}", it["field"].as_str().unwrap_or_default(), it["message"]))
        .collect();
    assert_eq!(
        refused,
        [
            r#"children[0].needs: "no task has the id `none`""#,
            r#"children[0].needs: "tasks need each other in a cycle: a → b → a""#,
            r#"children[1].needs: "two tasks have the id `a`""#,
            r#"children[0].id: "an id has 1 to 100 characters, and no control characters""#,
            r#"children[1].context: "`need_a` is the name of the answer of `a`""#,
            r#"id: "only the `children` of one `spawn_many` can need each other""#,
            r#"needs: "only the `children` of one `spawn_many` can need each other""#,
        ]
    );
    // What needs a child that was refused ends without a start; what may go without it runs.
    let many = &answers[8];
    assert_eq!(many["children"][0]["refusal"]["field"], "cwd", "{many}");
    let ended: Vec<_> = many["waited"]["ended"].as_array().expect("two").iter().collect();
    assert_eq!(
        (&ended[0]["status"], &ended[0]["error"]["code"]),
        (&"cancelled".into(), &"need_failed".into())
    );
    assert_eq!((&ended[1]["status"], &ended[1]["data"]), (&"completed".into(), &"ran".into()));
    assert_eq!(answers[9]["field"], "needs");
    // None of the wrong requests has started anything.
    let tree = place.run(&["list", "--all", "--json"]).expect_code(0).json();
    assert_eq!(tree.as_array().expect("runs").len(), 5, "{tree}");
    place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn a_killed_agent_leaves_nothing_that_waits_for_its_needs() {
    let place = Place::new();
    let lines = [r#"{"id":"slow","task":"slow"}"#, r#"{"needs":["slow"],"task":"last"}"#];
    place.file("tasks.jsonl", lines.join("\n"));
    let script = r#"task=$(head -n 1); echo "$task" >> ran; [ -e killed ] || { echo up > fifo; exec sleep 600; }; echo "$task""#;
    place.file("work.sh", script);
    let root = r#""$OFFSHOOT" -q fanout --tasks tasks.jsonl -- sh work.sh"#;
    let run = ["-q", "run", "root", "--", "sh", "-c", root];
    let place = Doomed::start(place, &run).kill();
    let tree = place.run(&["tree"]).expect_code(0).stdout().to_owned();
    assert!(tree.contains("needs slow"), "{tree}");
    place.run(&["resume"]);
    let runs = place.run(&["list", "--all", "--json"]).expect_code(0).json();
    let runs = runs.as_array().expect("runs");
    let open = runs
        .iter()
        .filter(|run| ["queued", "running"].contains(&run["status"].as_str().expect("a word")));
    assert_eq!(open.count(), 0, "{runs:?}");
    let ran = std::fs::read_to_string(place.path().join("ran")).expect("what ran");
    assert_eq!(ran, "slow\n");
    place.run(&["audit", "last"]).expect_code(0);
}
