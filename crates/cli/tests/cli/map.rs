//! `offshoot map`.

use offshoot_test_support::named_pipe;

use crate::command::{Outcome, Place, Table, check};

/// A place with a log of 30 lines, of which every third has ERROR in it.
fn with_log() -> Place {
    let place = Place::new();
    let line = |n: u32| format!("{n} {}\n", if n.is_multiple_of(3) { "ERROR" } else { "fine" });
    place.file("big.log", (1..=30).map(line).collect::<String>());
    place
}

fn id_in(outcome: &Outcome) -> String {
    let (_, id) = outcome.stderr.rsplit_once("tree ").expect("the last line names the tree");
    id.split_whitespace().next().expect("the line has no id").to_owned()
}

#[test]
fn the_sum_of_the_pieces_is_what_grep_counts() {
    let place = with_log();
    let grep = ["--", "grep", "-c", "ERROR"];
    for split in
        ["files", "lines:1", "lines:7", "chunks:4", "bytes:10", "bytes:20@lines", "bytes:1m@lines"]
    {
        let map = ["map", "--split", split, "--merge", "sum", "--ok-exit", "0,1", "big.log"];
        let outcome = place.run(&[&map[..], &grep].concat()).expect_code(0);
        if split != "bytes:10" {
            assert_eq!(outcome.stdout(), "10\n", "{split}");
        }
    }
}

#[test]
fn answers_keep_the_order_of_the_pieces() {
    let place = with_log();
    let outcome = place.run(&["-q", "map", "--split", "lines:10", "big.log", "--", "head", "-n1"]);
    check("map_concatenate", &outcome);
    let outcome = place.run(&[
        "-q",
        "map",
        "--split",
        "lines:10",
        "--merge",
        "structured",
        "big.log",
        "--",
        "head",
        "-n1",
    ]);
    check("map_structured", &outcome);
}

#[test]
fn standard_input_is_cut_like_a_file() {
    let place = Place::new();
    let arguments = ["-q", "map", "--split", "lines:2", "--merge", "structured", "-", "--", "cat"];
    check("map_stdin", &place.feed(&arguments, "a\nb\nc\n"));
    let twice = place.feed(&["map", "-", "-", "--", "cat"], "a");
    check("map_stdin_twice", &twice);
    // Nothing of it is left but the value in the store.
    let spool = std::fs::read_dir(place.path().join(".offshoot/spool")).expect("it was made");
    assert_eq!(spool.count(), 0);
}

#[test]
fn each_piece_of_a_table_has_its_header() {
    let place = Place::new();
    place.file("table.csv", "n,m\n1,a\n2,b\n3,c\n");
    let map = ["-q", "map", "--header", "1", "--split", "lines:2", "--json"];
    let agent = ["--", "sh", "-c", "cat; wc -c < /dev/stdin >&2"];
    for input in ["table.csv", "-"] {
        let arguments = [&map[..], &[input], &agent].concat();
        let outcome = place.feed(&arguments, "n,m\n1,a\n2,b\n3,c\n").expect_code(0);
        let report = outcome.json();
        assert_eq!(report["data"], "n,m\n1,a\n2,b\n---\nn,m\n3,c", "{input}");
        let root = report["runId"].as_str().expect("a run");
        place.run(&["audit", root]).expect_code(0);
    }
    let rows = place.run(&["show", "table.csv:2"]).expect_code(0);
    assert!(rows.stdout().contains("from byte 12, after its first 4 B"), "{}", rows.stdout());
    let dry = [&map[..], &["--dry-run", "table.csv"], &agent].concat();
    assert_eq!(place.run(&dry).expect_code(0).json()["pieces"][0]["bytes"], 12);
    place.run(&["map", "--header", "0", "table.csv", "--", "cat"]).expect_code(2);
}

#[test]
fn a_map_inside_an_agent_makes_children_of_it() {
    let place = Place::new();
    place.file("table.csv", "n\n1\n2\n3\n");
    place.file("other", "4\n5\n");
    let outcome = place.tree(
        &["--max-concurrent", "2"],
        r#"map() { "$OFFSHOOT" -q map "$@"; }
           map --split lines:2 --merge structured table.csv other -- tr '\n' ' '; echo $?
           map --header 1 --split lines:2 table.csv -- tr '\n' ' '; echo $?
           cat table.csv | map --split chunks:2 --header 1 --merge sum - -- sh -c 'read n; wc -l'; echo $?
           map --json --split lines:1 --on-failure skip --ok-exit 0,1 --merge sum table.csv -- grep -c 2 | tr -d ' \n'; echo
           map --split lines:1 other -- false 2>/dev/null; echo $?
           map --split lines:1 nowhere -- cat 2>/dev/null; echo $?
           map other 2>/dev/null; echo $?
           : > empty; map --split lines:1 empty -- cat; echo $?
           cd /; map --split files "$OLDPWD/other" -- sh -c 'cat; pwd'"#,
    );
    let expected = [
        "{\"table.csv:1\":\"n 1 \",\"table.csv:2\":\"2 3 \",\"other:1\":\"4 5 \"}\n0\n",
        "n 1 2 \n---\nn 3 \n0\n",
        "3\n0\n",
    ]
    .concat();
    let said = outcome.expect_code(0);
    let said = said.stdout();
    let (ours, rest) = said.split_at(expected.len());
    assert_eq!(ours, expected);
    assert!(rest.contains("\"data\":1"), "{rest}");
    assert!(rest.ends_with("1\n2\n2\n\n0\n4\n5\n/\n"), "{rest}");
    let list = place.run(&["list", "--json"]).json();
    assert_eq!(list.as_array().map(Vec::len), Some(1), "no other tree was opened");
    let root = list[0]["runId"].as_str().expect("a run");
    let tree = place.run(&["tree", "--all", "--json"]).json();
    let children = tree[0]["children"].as_array().expect("children");
    assert!(children.iter().all(|child| child["depth"] == 1), "{tree}");
    assert_eq!(children.len(), 3 + 2 + 2 + 4 + 2 + 1);
    place.run(&["audit", root]).expect_code(0);
}

#[test]
fn children_of_a_map_may_write_to_the_files_that_it_handed_in() {
    let place = Place::new();
    place.file("in", "1\n2\n");
    let map = r#""$OFFSHOOT" -q map --split lines:1 in -- sh -c 'cat; echo other > in'"#;
    let told = place.tree(&["--max-concurrent", "1"], map).expect_code(0);
    assert_eq!((told.stdout(), &*told.stderr), ("1\n---\n2\n", ""));
}

#[test]
fn a_map_inside_an_agent_tells_of_each_child_as_it_ends() {
    let place = Place::new();
    place.file("in", "3\n1\n2\n");
    // The last piece ends first. What it prints lets the second one end, and that the first.
    ["one", "three"].iter().for_each(|name| named_pipe(place.path().join(name)));
    let outcome = place.tree(
        &["--max-concurrent", "4"],
        r#"map() { "$OFFSHOOT" -q map --split lines:1 in "$@"; }
           map --stream -- sh -c 'read n; case $n in 3) cat three;; 1) cat one;; esac; echo $n' | while read n; do
             [ -z "$n" ] || echo $n; case $n in 2) : > one;; 1) : > three;; esac
           done
           map --separator '|' -- cat; echo " $?"
           map --null -- cat | tr '\0' 0; echo
           map --stream --keep-order -- cat; echo $?
           map --stream --keep-order --separator ';' -- tr -d '\n'; echo $?
           map --jsonl --keep-order --on-failure skip -- sh -c 'read n; [ $n = 1 ] && exit 7; yes $n | head -c 300000' > lines; echo $?
           map --merge sum --on-failure skip --joblog jobs --junit report.xml -- sh -c 'read n; case $n in 1) exit 7;; 2) kill -9 $$;; esac; echo $n'; echo $?
           map --separator x --merge sum -- cat 2>&1; echo $?
           map --keep-order -- cat 2>/dev/null; echo $?
           map --stream --max-fail 0 -- sh -c 'read n; [ $n = 1 ] && exit 7; exec sleep 600' 2>why; echo $?
           "$OFFSHOOT" -q fanout --task a --task b --jsonl --keep-order -- cat | cut -c1-11"#,
    );
    let expected = "2\n1\n3\n3|1|2\n 0\n30102\n\n3\n1\n2\n0\n3;1;2;0\n0\n3\n0\n";
    let said = outcome.expect_code(0);
    let rest = said.stdout().strip_prefix(expected).unwrap_or_else(|| panic!("{}", said.stdout()));
    let refused = "error: a separator is of concatenated answers, and not of `sum`\nhint: leave it out, or use --merge concatenate\n2\n2\n1\n";
    assert_eq!(rest, format!("{refused}{{\"key\":\"a\",\n{{\"key\":\"b\",\n"));
    let read = |name: &str| std::fs::read_to_string(place.path().join(name)).expect("a file");
    assert!(read("why").contains("more than 0 pieces did not complete"), "{}", read("why"));
    let lines: Vec<serde_json::Value> = read("lines")
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0]["key"], "in:1");
    let size = |line: &serde_json::Value| line["envelope"]["data"].as_str().map(str::len);
    assert!(size(&lines[0]) >= Some(299_999), "a large answer is whole: {:?}", size(&lines[0]));
    assert_eq!(lines[1]["envelope"]["error"]["code"], "exit_code");
    let jobs = read("jobs");
    let column = |line: &str, at: usize| line.split('\t').nth(at).unwrap_or("").to_owned();
    let mut ended: Vec<_> = jobs
        .lines()
        .skip(1)
        .map(|line| [0, 4, 6, 7].map(|at| column(line, at)).join(" "))
        .collect();
    ended.sort();
    assert_eq!(ended, ["1 2 0 0", "2 2 7 0", "3 2 0 9"]);
    let report = read("report.xml");
    assert!(report.contains("tests=\"3\"") && report.contains("failures=\"2\""), "{report}");
    let root = place.run(&["list", "--json"]).json()[0]["runId"].clone();
    place.run(&["audit", root.as_str().expect("a run")]).expect_code(0);
}

#[test]
fn a_budget_of_a_map_inside_an_agent_is_divided() {
    let place = Place::new();
    place.file("in", "1\n2\n3\n4\n");
    let map = r#""$OFFSHOOT" -q map --split lines:1 --budget-tokens 400 --budget-usd 1 in -- cat"#;
    place.file("c.toml", "[runtimes.exec]\ncost = \"none\"\n");
    let limits = ["--config", "c.toml", "--budget-tokens", "1000", "--budget-usd", "2"];
    place.tree(&limits, map).expect_code(0);
    let shown = place.run(&["events", "--json", "last"]).expect_code(0);
    let granted: Vec<serde_json::Value> = shown
        .stdout()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("a line of JSON"))
        .filter(|event| event["kind"]["type"] == "admitted" && event["kind"]["depth"] == 1)
        .map(|event| event["kind"]["grant"]["budget"].clone())
        .collect();
    let quarter = serde_json::json!({"tokens": 100, "usd": 0.25});
    assert_eq!(granted, vec![quarter; 4], "{}", shown.stdout());
}

#[test]
fn a_command_without_its_dashes_is_named() {
    let place = Place::new();
    place.file("in", "1\n");
    let script = place.file("agent.sh", "#!/bin/sh\ncat\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(script, mode).expect("the mode is set");
    let run = |words: &[&str]| place.run(words).expect_code(2).stderr;
    let said = run(&["map", "in", "./agent.sh"]);
    let named = "error: `./agent.sh` is taken for an input: a command stands behind `--`\n";
    assert!(said.contains(named), "{said}");
    assert!(said.contains("hint: `offshoot map in -- ./agent.sh`"), "{said}");
    let said = run(&["map", "--split", "lines:1", "in", "wc", "in"]);
    assert!(said.contains("hint: `offshoot map in -- wc in`"), "{said}");
    // Inputs that are only files are none of it.
    let said = place.run(&["map", "in", "in"]).stderr;
    assert!(!said.contains("behind `--`:") && !said.contains("taken for"), "{said}");
}

#[test]
fn a_map_inside_an_agent_is_held_to_its_limits() {
    let place = Place::new();
    place.file("in", "1\n2\n3\n4\n");
    let map =
        r#""$OFFSHOOT" -q map --split lines:1 --merge sum in -- cat 2>said; echo $?; sort -u said"#;
    let spawns = place.tree(&["--max-spawns", "3"], map).expect_code(0);
    assert!(spawns.stdout().starts_with("6\n3\n"), "{}", spawns.stdout());
    let deep = place
        .tree(&["--max-depth", "1"], &format!("\"$OFFSHOOT\" -q spawn --wait x -- sh -c '{map}'"));
    let deep = deep.expect_code(0);
    assert!(deep.stdout().contains("Maximum subagent depth reached (1)"), "{}", deep.stdout());
}

#[test]
fn json_has_envelope_tree_and_failures() {
    let place = Place::new();
    place.file("good", "x");
    place.file("bad", "y");
    let report = place
        .run(&[
            "map",
            "--json",
            "good",
            "bad",
            "--",
            "sh",
            "-c",
            "read a || true; echo got $a; [ \"$a\" = x ] || exit 7",
        ])
        .expect_code(1)
        .json();
    assert_eq!(report["status"], "failed");
    assert_eq!(report["data"], "got x");
    assert_eq!(report["partial"], true);
    assert_eq!(report["error"]["code"], "pieces_failed");
    assert_eq!(report["tree"]["children"].as_array().map(Vec::len), Some(2));
    assert_eq!(report["failures"][0]["key"], "bad");
    let envelope = &report["failures"][0]["envelope"];
    assert_eq!(envelope["error"]["code"], "exit_code");
    assert_eq!(envelope["data"], "got y", "what it printed is kept");
    assert_eq!(envelope["partial"], true);
}

#[test]
fn json_lists_the_first_of_many_failures_and_counts_the_others() {
    let place = Place::new();
    place.file("in", "x\n".repeat(1_203));
    let map = ["map", "--json", "--yes", "--split", "lines:1", "--max-fail", "0", "in"];
    let outcome = place.run(&[&map[..], &["--", "false"]].concat());
    let report = outcome.expect_code(1).json();
    assert_eq!(report["failures"].as_array().map(Vec::len), Some(1000));
    assert_eq!(report["failures"][999]["key"], "in:1000");
    assert_eq!(report["moreFailures"], 203);
}

#[test]
fn a_dry_run_inside_an_agent_has_the_limits_of_its_tree() {
    let place = Place::new();
    place.file("in", "a\n");
    let script = "\"$OFFSHOOT\" map --dry-run in -- cat";
    let words = ["--allow-recursive-spawn", "--max-depth", "2", "--budget-tokens", "500"];
    let agent = ["x", "--", "sh", "-c", script];
    let out = place.run(&[&["-q", "run"], &words[..], &agent].concat()).expect_code(0);
    let (_, limits) = out.stdout().split_once("limits of this run in its tree:\n").expect("limits");
    let words: Vec<&str> = limits.split_whitespace().collect();
    let text = words.join(" ");
    assert!(text.starts_with("depth 0 maxDepth 2 may spawn yes budget left 500 tokens"), "{text}");
    assert_eq!(place.run(&["list", "--json"]).json().as_array().map(Vec::len), Some(1));
}

#[test]
fn a_dry_run_runs_nothing() {
    let place = with_log();
    place.file("c.toml", "[agents.defaults.subagents]\nmaxConcurrent = 2\n");
    let arguments = [
        "map",
        "--dry-run",
        "--split",
        "lines:12",
        "--merge",
        "sum",
        "--timeout",
        "9",
        "--config",
        "c.toml",
        "big.log",
        "--",
        "grep",
        "-c",
        "ERROR",
    ];
    check("map_dry_run", &place.run(&arguments));
    let plan = place.run(&[&["--json"], &arguments[..]].concat()).expect_code(0).json();
    assert_eq!(plan["agents"], 3);
    assert_eq!(plan["limits"]["runTimeoutSeconds"]["origin"], "flag --timeout");
    assert!(!place.path().join(".offshoot").exists(), "nothing was made");
}

#[test]
fn a_task_travels_in_the_environment() {
    let place = Place::new();
    place.file("in", "x");
    let outcome = place.run(&[
        "-q",
        "map",
        "--task",
        "count it",
        "in",
        "--",
        "sh",
        "-c",
        "echo \"$OFFSHOOT_TASK\" $OFFSHOOT_DEPTH",
    ]);
    assert_eq!(outcome.expect_code(0).stdout(), "count it 1\n");
}

#[test]
fn nothing_in_is_an_empty_answer() {
    let place = Place::new();
    place.file("empty", "");
    for (merge, expected) in [("concatenate", "\n"), ("structured", "{}\n"), ("sum", "0\n")] {
        let map = ["map", "--split", "lines:1", "--merge", merge, "empty", "--", "cat"];
        let outcome = place.run(&map).expect_code(0);
        assert_eq!(outcome.stdout(), expected, "{merge}");
    }
}

#[test]
fn input_that_is_no_text_passes_through() {
    let place = Place::new();
    place.file("latin1", b"caf\xe9\n\xff\0x\n");
    let outcome =
        place.run(&["-q", "map", "--split", "lines:1", "latin1", "--", "cat"]).expect_code(0);
    assert_eq!(outcome.stdout, b"caf\xe9\n---\n\xff\0x\n");
    // JSON has no bytes: nothing is replaced.
    let words = ["-q", "map", "--json", "--split", "lines:1", "latin1", "--", "cat"];
    let answer = place.run(&words).expect_code(0).json();
    assert_eq!(answer["data"]["base64"], "Y2Fm6QotLS0K/wB4", "{answer}");
}

#[test]
fn input_that_cannot_be_used_is_named_before_anything_runs() {
    let mut table = Table::default();
    let place = Place::new();
    place.file("there", "x");
    place.file("no.jsonl", "{}\nnope\n");
    table.row(&place.run(&["map", "there", "nowhere", "--", "cat"]));
    table.row(&place.run(&["map", "home", "--", "cat"]));
    table.row(&place.run(&["map", "/dev/null", "--", "cat"]));
    table.row(&place.run(&["map", "--split", "jsonl:1", "no.jsonl", "--", "cat"]));
    table.row(&place.run(&["map", "--split", "words:3", "there", "--", "cat"]));
    table.row(&place.run(&["map", "--merge", "best", "there", "--", "cat"]));
    table.row(&place.run(&["map", "--", "cat"]));
    table.row(&place.run_with("PATH", "/nowhere", &["map", "there"]));
    table.row(&place.run(&["map", "--runtime", "other", "there"]));
    table.row(&place.run(&["map", "--runtime", "claude", "there", "--", "cat"]));
    table.row(&place.run(&["map", "there", "--", "no-such-program"]));
    table.row(&place.run(&["map", "--context", "a=nowhere", "there", "--", "cat"]));
    table.row(&place.run(&["map", "--context", "a", "there", "--", "cat"]));
    table.row(&place.run(&["map", "--ok-exit", "0,256", "there", "--", "cat"]));
    table.row(&place.run(&["map", "--max-concurrent", "0", "there", "--", "cat"]));
    assert_eq!(place.run(&["list"]).expect_code(0).stdout(), "", "no tree was opened");
    table.check("map_wrong");
}

#[test]
fn an_input_that_is_written_to_while_it_is_read_has_no_answer() {
    let place = Place::new();
    let map = |more: &str| {
        place.file("in", "1\n2\n3\n");
        let work = format!("cat; {more}");
        let map = ["map", "--split", "lines:1", "--max-concurrent", "1", "--merge", "sum", "in"];
        place.run(&[&map[..], &["--", "sh", "-c", &work]].concat())
    };
    assert_eq!(map("echo 9 >> in").expect_code(0).stdout(), "6\n", "what is appended is not read");
    let changed = map("echo 1 > in; echo 20 >> in; echo 3 >> in").expect_code(1);
    assert_eq!(changed.stdout(), "");
    let why = "/in was written to while its pieces ran: bytes 2 to 4 are not what was cut";
    assert!(changed.stderr.contains(why), "{}", changed.stderr);
    let ended = place.run(&["list", "--json"]).json();
    assert_eq!(ended[1]["status"], "failed", "{ended}");
}

#[test]
fn each_file_is_a_piece_also_where_it_is_empty() {
    let place = Place::new();
    place.file("full", "1\n2\n");
    place.file("nothing", "");
    let map = ["map", "--merge", "structured", "full", "nothing", "--", "wc", "-l"];
    let counted = place.run(&map).expect_code(0).json();
    assert_eq!(counted, serde_json::json!({"full": "2", "nothing": "0"}));
}

#[test]
fn a_failing_piece_does_not_hurt_its_siblings() {
    let place = Place::new();
    for name in ["a", "b", "c"] {
        place.file(name, name);
    }
    let script = "read x || true; echo $x; [ $x != b ] || { echo broken >&2; exit 7; }";
    let map = |more: &[&str]| {
        let command = ["a", "b", "c", "--", "sh", "-c", script];
        place.run(&[&["map", "--max-concurrent", "1"], more, &command].concat())
    };
    check("map_failing", &map(&[]));
    check("map_failing_quiet", &map(&["-q"]));
    check("map_failing_skip", &map(&["--on-failure", "skip"]));
    let included = map(&["--on-failure", "include", "--merge", "structured"]).expect_code(0).json();
    assert_eq!(
        (&included["a"], &included["b"]["error"]["code"]),
        (&"a".into(), &"exit_code".into())
    );
    let merged = place.run(&["merge", "--children", &id_in(&map(&[]))]);
    assert_eq!(merged.expect_code(0).stdout(), "a\n---\nc\n");
}

#[test]
fn an_answer_that_stands_needs_no_other_piece() {
    let place = Place::new();
    for name in ["a", "b", "c"] {
        place.file(name, format!("{name}\n"));
    }
    let script = "read x; case $x in a) exit 7;; b) echo $x;; c) exec sleep 1000;; esac";
    let map = ["-q", "map", "--max-concurrent", "1", "--merge", "first", "a", "b", "c"];
    check("map_first", &place.run(&[&map[..], &["--", "sh", "-c", script]].concat()));
}

#[test]
fn answers_that_do_not_merge_are_kept() {
    let place = Place::new();
    place.file("a", "1");
    place.file("b", "x");
    let outcome = place.run(&["map", "--merge", "sum", "a", "b", "--", "cat"]);
    check("map_does_not_merge", &outcome);
    let merged = place.run(&["-q", "merge", "--children", &id_in(&outcome)]).expect_code(0);
    assert_eq!(merged.stdout(), "1\n---\nx\n");
}

#[test]
fn nothing_at_all_is_no_success() {
    let place = Place::new();
    place.file("a", "1");
    let map = ["-q", "map", "--on-failure", "skip", "a", "--", "false"];
    check("map_all_skipped", &place.run(&map));
}

#[test]
fn a_program_that_cannot_start_is_no_agent_that_failed() {
    let place = Place::new();
    place.file("a", "1");
    place.file("broken", "#!/no/such/interpreter\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.path().join("broken"), mode).expect("the mode cannot be set");
    check("map_cannot_start", &place.run(&["-q", "map", "a", "--", "./broken"]));
}

#[test]
fn too_many_failures_cancel_the_rest() {
    let place = Place::new();
    for name in ["a", "b", "c"] {
        place.file(name, format!("{name}\n"));
    }
    let script = "read x; case $x in a) echo $x;; b) exit 7;; c) exec sleep 1000;; esac";
    let map = ["map", "--max-concurrent", "1", "--max-fail", "0", "a", "b", "c"];
    check("map_max_fail", &place.run(&[&map[..], &["--", "sh", "-c", script]].concat()));
}

#[test]
fn no_piece_starts_after_the_failure_that_is_one_too_many() {
    let place = Place::new();
    place.file("in", "1\n2\n3\n4\n5\n6\n");
    for most in [0, 1, 3].into_iter().cycle().take(9) {
        place.file("ran", "");
        let most_text = most.to_string();
        let map = ["map", "--split", "lines:1", "--max-concurrent", "1", "--max-fail", &most_text];
        let work = ["in", "--", "sh", "-c", "echo x >> ran; exit 1"];
        let outcome = place.run(&[&map[..], &work].concat()).expect_code(1);
        let ran =
            std::fs::read_to_string(place.path().join("ran")).expect("the file cannot be read");
        assert_eq!(ran.lines().count(), most + 1, "--max-fail {most}: {}", outcome.stderr);
    }
}

#[test]
fn agents_of_the_configuration_bring_their_command() {
    let place = Place::new();
    place.file("in", "x\ny\n");
    place.file("c.toml", "[[agents.list]]\nid = \"counter\"\ncommand = [\"grep\", \"-c\", \"\"]\n");
    let map = ["-q", "map", "--config", "c.toml", "--agent", "counter", "in"];
    assert_eq!(place.run(&map).expect_code(0).stdout(), "2\n");
}

#[test]
fn two_trees_share_one_data_folder() {
    let place = with_log();
    let arguments =
        ["-q", "map", "--split", "lines:1", "--merge", "sum", "big.log", "--", "grep", "-c", ""];
    let mut first = place.command(&arguments);
    let mut second = place.command(&arguments);
    let children =
        [first.spawn(), second.spawn()].map(|child| child.expect("the program cannot be started"));
    let [one, two] = children;
    for outcome in [place.finish(one, &first, &[]), place.finish(two, &second, &[])] {
        assert_eq!(outcome.expect_code(0).stdout(), "30\n");
    }
    let trees = place.run(&["tree", "--json"]).expect_code(0).json();
    assert_eq!(trees.as_array().map(Vec::len), Some(2));
}

#[test]
fn what_was_stopped_is_one_line_and_failures_stand_last() {
    let place = Place::new();
    let names: Vec<String> = (0..30).map(|n| format!("f{n}")).collect();
    names.iter().for_each(|name| drop(place.file(name, "")));
    let map = |how: &[&str]| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let map = ["map", "--max-concurrent", "1", "--max-fail", "0"];
        let script = ["--", "sh", "-c", "echo broken >&2; exit 7"];
        place.run(&[how, &map, &names, &script].concat()).expect_code(1).stderr
    };
    let loud = map(&[]);
    let lines: Vec<&str> = loud.lines().filter(|line| !line.contains(" % ")).collect();
    assert_eq!(
        lines[..3],
        [
            "failed  main: f0  exited with code 7: broken",
            "cancelled  29 runs  by too many failures beside it",
            "error: more than 0 pieces did not complete, so the rest was cancelled",
        ],
        "{loud}"
    );
    let quiet = map(&["-q"]);
    assert_eq!(
        quiet.lines().collect::<Vec<_>>()[..3],
        [
            "error: 29 pieces: cancelled by too many failures beside it",
            "error: piece f0: exited with code 7: broken",
            "error: more than 0 pieces did not complete, so the rest was cancelled",
        ],
        "{quiet}"
    );
}
