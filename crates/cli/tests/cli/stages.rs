//! Maps of several stages: each piece goes on as it ends.

use offshoot_test_support::named_pipe;

use crate::command::{Place, Table};
use crate::doomed::Doomed;

/// Notes which line it reads, and hands it on with a mark.
const FIRST: &str = r#"read -r line; echo "1$line" >> ran; echo "<$line>""#;
const SECOND: &str = r#"read -r line; echo "2$line" >> ran; echo "[$line]""#;

fn ran(place: &Place) -> Vec<String> {
    let ran = std::fs::read_to_string(place.path().join("ran")).expect("what ran");
    ran.lines().map(str::to_owned).collect()
}

/// A map over each line of a file, in two stages.
fn map<'a>(options: &[&'a str], first: &'a str, second: &'a str) -> Vec<&'a str> {
    let map = ["-q", "map", "--split", "lines:1", "in"];
    let stages = ["--", "sh", "-c", first, "--then", "--", "sh", "-c", second];
    [&map[..], options, &stages].concat()
}

#[test]
fn each_stage_reads_what_the_one_before_it_printed() {
    let place = Place::new();
    place.file("in", "a\nb\n");
    let third = ["--then", "--", "sh", "-c", "cat; printf %s \"$OFFSHOOT_TASK\" | head -c 4"];
    let json = ["--json", "--max-concurrent", "1"];
    let stages = [&map(&json, FIRST, SECOND)[..], &third].concat();
    let report = place.run(&stages).expect_code(0).json();
    assert_eq!(report["data"], "[<a>]sh -\n---\n[<b>]sh -");
    assert_eq!(ran(&place), ["1a", "2<a>", "1b", "2<b>"], "what was begun is finished first");
    let root = report["runId"].as_str().expect("a run");
    let tree = place.run(&["tree", root]).expect_code(0).stdout().to_owned();
    assert!(tree.contains("in:1 (stage 1)"), "{tree}");
    assert!(tree.contains("needs in:1 (stage 2)"), "{tree}");
    let graph = place.run(&["export", "--format", "mermaid", root]).expect_code(0);
    assert_eq!(graph.stdout().matches(" -.-> ").count(), 4, "{}", graph.stdout());
    place.run(&["audit", root]).expect_code(0);
}

#[test]
fn a_piece_does_not_wait_for_the_others() {
    let place = Place::new();
    place.file("in", "a\nb\n");
    named_pipe(place.path().join("fifo"));
    // The second piece waits in its first stage for the second stage of the first piece.
    let first = "read -r line; [ $line = a ] || read -r go < fifo; echo $line";
    let second = "read -r line; [ $line = b ] || echo go > fifo; echo $line";
    let options = ["--max-concurrent", "2", "--timeout", "60"];
    let answer = place.run(&map(&options, first, second)).expect_code(0);
    assert_eq!(answer.stdout(), "a\n---\nb\n");
}

#[test]
fn an_answer_of_any_size_and_form_is_the_input_of_the_next_stage() {
    let place = Place::new();
    place.file("in", "a\n");
    let bytes = place.run(&map(&[], "head -c 300000 /dev/zero", "wc -c")).expect_code(0);
    assert_eq!(bytes.stdout().trim(), "300000");
    let json = place.run(&map(&["--output", "json"], "echo '{\"n\": 1}'", "cat")).expect_code(0);
    assert_eq!(json.stdout().trim(), "{\"n\":1}");
    let none = place.run(&map(&[], "true", "wc -c")).expect_code(0);
    assert_eq!(none.stdout().trim(), "0");
}

#[test]
fn a_piece_that_fails_is_named_with_its_stage_and_starts_no_later_one() {
    let place = Place::new();
    place.file("in", "a\nb\nc\n");
    let fails =
        r#"read -r line; echo "1$line" >> ran; echo "<$line>"; [ $line != b ] || [ -e mended ]"#;
    let skip = ["--on-failure", "skip", "--max-fail", "1", "--json"];
    let report = place.run(&map(&skip, fails, SECOND)).expect_code(0).json();
    assert_eq!(report["data"], "[<a>]\n---\n[<c>]");
    assert_eq!(report["failures"][0]["key"], "in:2 (stage 1)", "{report}");
    assert_eq!(report["failures"].as_array().map(Vec::len), Some(1), "{report}");
    assert!(!ran(&place).iter().any(|line| line.starts_with("2<b")));
    let root = report["runId"].as_str().expect("a run").to_owned();
    let tree = place.run(&["tree", &root]).expect_code(0).stdout().to_owned();
    let skipped = "not started: `in:2 (stage 1)`, which it needs, did not complete";
    assert!(tree.contains(skipped), "{tree}");
    place.run(&["audit", &root]).expect_code(0);
    place.file("mended", "");
    let report = place.run(&["-q", "--json", "resume", "--failed", &root]).expect_code(0).json();
    assert_eq!(report["data"], "[<a>]\n---\n[<b>]\n---\n[<c>]");
    place.run(&["audit", &root]).expect_code(0);
    // In the last stage, one failure too many.
    let last = map(&["--max-fail", "0", "--on-failure", "skip"], FIRST, "false");
    let outcome = place.run(&[&last[1..]].concat());
    assert!(outcome.stderr.contains("(stage 2)"), "{}", outcome.stderr);
}

#[test]
fn a_killed_map_runs_no_stage_again_that_was_over() {
    let place = Place::new();
    place.file("in", "a\nb\n");
    let hangs = r#"read -r line; echo "2$line" >> ran
        if [ "$line" = "<b>" ] && [ ! -e killed ]; then echo up > fifo; exec sleep 600; fi
        echo "[$line]""#;
    let stages = map(&["--max-concurrent", "1"], FIRST, hangs);
    let third = ["--then", "--", "sed", "s/^/3/"];
    let place = Doomed::start(place, &[&stages[..], &third].concat()).kill();
    place.file("killed", "");
    let answer = place.run(&["-q", "resume"]).expect_code(0).stdout().to_owned();
    assert_eq!(answer, "3[<a>]\n---\n3[<b>]\n");
    assert_eq!(ran(&place), ["1a", "2<a>", "1b", "2<b>", "2<b>"]);
    place.run(&["audit", "in:2 (stage 3)"]).expect_code(0);
}

#[test]
fn a_dry_run_shows_each_stage() {
    let place = Place::new();
    place.file("in", "a\nb\n");
    let mut table = Table::default();
    let dry = ["map", "--dry-run", "--split", "lines:1", "in", "--", "cat", "--then", "--", "wc"];
    let text = place.run(&dry).expect_code(0).stdout().to_owned();
    assert!(text.starts_with("4 agents\n"), "{text}");
    assert!(text.contains("in:2 (stage 2)") && text.contains("after in:2 (stage 1)"), "{text}");
    let json = place.run(&[&["--json"], &dry[..]].concat()).expect_code(0).json();
    assert_eq!(json["pieces"][1]["wave"], 2, "{json}");
    assert_eq!(json["bytes"], 4, "{json}");
    for arguments in [
        &["map", "in", "--", "--then", "--", "cat"][..],
        &["map", "in", "--", "cat", "--then", "--"],
        &["map", "in", "--", "cat", "--then", "--", "offshoot-no-such-program"],
        &["map", "--isolation", "copy", "in", "--", "cat", "--then", "--", "cat"],
        &["map", "--merge", "patch", "in", "--", "cat", "--then", "--", "cat"],
    ] {
        table.row(&place.run(arguments));
    }
    table.check("stages_wrong");
}

#[test]
fn stages_inside_an_agent_are_refused_by_name() {
    let place = Place::new();
    place.file("in", "a\n");
    let script = r#""$OFFSHOOT" map in -- cat --then -- cat 2>&1"#;
    let outcome = place.run(&["-q", "run", "x", "--", "sh", "-c", script]);
    assert!(outcome.stdout().contains("--then is for the root of a tree"), "{}", outcome.stdout());
}
