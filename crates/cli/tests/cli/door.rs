//! Programs that run as agents, and ask for children of their own.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::command::{Outcome, Place};

const DEEP: &[&str] = &["-q", "run", "--allow-recursive-spawn"];

/// Runs a shell script as the root of a tree; `$OFFSHOOT` is the command that is tested.
fn tree(place: &Place, more: &[&str], script: &str) -> Outcome {
    place.run(&[DEEP, more, &["root", "--", "sh", "-c", script, "sh"]].concat())
}

#[test]
fn a_child_answers_to_the_one_that_asked() {
    let place = Place::new();
    let outcome = tree(
        &place,
        &[],
        r#"a=$("$OFFSHOOT" spawn one -- sh -c 'cat; echo " done"')
           b=$("$OFFSHOOT" spawn two -- cat)
           "$OFFSHOOT" wait $b $a
           "$OFFSHOOT" spawn --wait three -- cat"#,
    );
    assert_eq!(outcome.expect_code(0).stdout(), "two\none done\nthree\n");
    let tree = place.run(&["tree", "--json"]).json();
    let children = tree[0]["children"].as_array().expect("the root has children");
    assert_eq!(children.len(), 3);
    assert!(children.iter().all(|child| child["parent"] == tree[0]["runId"]), "{tree}");
}

#[test]
fn ten_levels_finish_with_one_slot() {
    let place = Place::new();
    let script = place.file(
        "down.sh",
        r#"below=$((OFFSHOOT_TASK - 1))
           if [ $below -ge 0 ]; then "$OFFSHOOT" spawn --wait $below -- sh "$0"; fi
           echo "$OFFSHOOT_DEPTH""#,
    );
    let script = script.to_str().expect("a plain name");
    let limits = ["--max-depth", "10", "--max-concurrent", "1"];
    let outcome = place.run(&[DEEP, &limits, &["10", "--", "sh", script]].concat());
    assert_eq!(outcome.expect_code(0).stdout(), "10\n9\n8\n7\n6\n5\n4\n3\n2\n1\n0\n");
}

#[test]
fn a_refusal_is_an_answer_with_a_code_of_its_own() {
    let place = Place::new();
    let spawn = r#""$OFFSHOOT" --json spawn --wait deeper -- sh -c '"$OFFSHOOT" --json spawn x -- cat; echo $?'"#;
    let refusal = |outcome: Outcome| {
        let envelope = outcome.expect_code(0).json();
        let text = envelope["data"].as_str().expect("what the child printed").to_owned();
        let (refusal, code) = text.trim_end().rsplit_once('\n').expect("a refusal and a code");
        assert_eq!(code, "3");
        serde_json::from_str::<Value>(refusal).expect("a refusal is JSON")
    };
    let deep = refusal(tree(&place, &["--max-depth", "1"], spawn));
    assert_eq!((&deep["status"], &deep["code"]), (&"forbidden".into(), &"depth_limit".into()));
    assert_eq!(deep["message"], "Maximum subagent depth reached (1). Cannot spawn deeper.");
    assert_eq!(deep["governedBy"]["key"], "subagents.maxDepth");
    let off = refusal(place.run(&["-q", "run", "root", "--", "sh", "-c", spawn]));
    assert_eq!(off["code"], "recursion_disabled");
}

#[test]
fn lineage_comes_from_us() {
    let place = Place::new();
    // Whatever a child says of itself, the record decides; and a ticket that belongs to no run is worth nothing.
    let outcome = tree(
        &place,
        &["--max-depth", "1"],
        r#""$OFFSHOOT" spawn --wait child -- sh -c '
             export OFFSHOOT_DEPTH=0 OFFSHOOT_SESSION_KEY=agent:main:main OFFSHOOT_RUN_ID=x
             "$OFFSHOOT" -q spawn x -- cat 2>/dev/null; echo $?
             OFFSHOOT_TICKET=00000000000000000000000000000000 "$OFFSHOOT" -q spawn x -- cat 2>/dev/null; echo $?
             unset OFFSHOOT_TICKET; "$OFFSHOOT" -q spawn x -- cat 2>/dev/null; echo $?'"#,
    );
    assert_eq!(outcome.expect_code(0).stdout(), "3\n3\n3\n");
    let tree = place.run(&["tree", "--json"]).json();
    assert_eq!(tree[0]["children"][0]["children"], Value::Array(Vec::new()), "no run got deeper");
}

#[test]
fn limits_hold_over_everything_below() {
    let place = Place::new();
    let script = r#"for n in 1 2 3 4; do "$OFFSHOOT" -q spawn $n -- cat >/dev/null 2>&1 && echo yes || echo no; done
                    "$OFFSHOOT" -q wait"#;
    let outcome = tree(&place, &["--max-spawns", "2"], script);
    assert_eq!(outcome.expect_code(0).stdout(), "yes\nyes\nno\nno\n1\n2\n");
}

#[test]
fn a_child_that_fails_is_named_and_hurts_no_other_run() {
    let place = Place::new();
    let outcome = tree(
        &place,
        &[],
        r#""$OFFSHOOT" spawn good -- cat >/dev/null; "$OFFSHOOT" spawn bad -- sh -c 'echo half; exit 7' >/dev/null
           "$OFFSHOOT" --json wait; echo $?"#,
    );
    let outcome = outcome.expect_code(0);
    let (envelopes, code) = outcome.stdout().trim_end().rsplit_once('\n').expect("JSON and a code");
    let envelopes: Value = serde_json::from_str(envelopes).expect("an array of envelopes");
    assert_eq!(
        (&envelopes[0]["status"], &envelopes[0]["data"]),
        (&"completed".into(), &"good".into())
    );
    assert_eq!(
        (&envelopes[1]["status"], &envelopes[1]["data"]),
        (&"failed".into(), &"half".into())
    );
    assert_eq!(envelopes[1]["error"]["code"], "exit_code");
    assert_eq!(code, "1");
}

#[test]
fn a_wait_can_be_given_up_and_a_child_cancelled() {
    let place = Place::new();
    let outcome = tree(
        &place,
        &[],
        r#"run=$("$OFFSHOOT" spawn slow -- sleep 1000)
           "$OFFSHOOT" -q wait --timeout 0 2>/dev/null; echo $?
           "$OFFSHOOT" cancel $run
           "$OFFSHOOT" --json -q wait $run 2>/dev/null | grep -q '"status": *"cancelled"' && echo cancelled"#,
    );
    assert_eq!(outcome.expect_code(0).stdout(), "1\ncancelled\n");
}

#[test]
fn a_large_answer_and_a_context_travel_as_files() {
    let place = Place::new();
    place.file("notes.txt", "remember this\n");
    let outcome = tree(
        &place,
        &[],
        r#""$OFFSHOOT" spawn --wait --context notes=notes.txt x -- sh -c '
             sed -n "s/^Read //p" | xargs cat; yes | head -c 300000' | cksum"#,
    );
    let expected = {
        let mut answer = "remember this\n".to_owned();
        answer.push_str(&"y\n".repeat(150_000));
        place.file("whole", answer);
        place.run(&["-q", "run", "x", "--", "sh", "-c", "cksum < whole"])
    };
    assert_eq!(outcome.expect_code(0).stdout(), expected.expect_code(0).stdout());
}

#[test]
fn a_model_finds_the_tools_of_its_session() {
    let place = Place::new();
    place.file(
        "calls.jsonl",
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":1,"method":"tools/list"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"sessions_spawn","arguments":{"task":"deeper"}}}
"#,
    );
    // It answers in any order.
    let answers = |outcome: Outcome| {
        let outcome = outcome.expect_code(0);
        let parse = |line| serde_json::from_str(line).expect("an answer is JSON");
        let mut answers: Vec<Value> = outcome.stdout().lines().map(parse).collect();
        answers.sort_by_key(|answer| answer["id"].as_u64());
        assert_eq!(answers.len(), 3, "{answers:?}");
        let tool = answers[1]["result"]["tools"][0]["name"].as_str().expect("a tool").to_owned();
        (tool, answers[2]["result"].clone())
    };
    let below = r#""$OFFSHOOT" spawn --wait x -- sh -c '"$OFFSHOOT" mcp < calls.jsonl'"#;
    let (tool, result) = answers(tree(&place, &["--max-depth", "1"], below));
    assert_eq!(tool, "sessions_report", "what it cannot use is not listed");
    assert_eq!(result["isError"], true);
    assert_eq!(result["structuredContent"]["code"], "depth_limit");
    let (tool, result) = answers(tree(&place, &[], r#""$OFFSHOOT" mcp < calls.jsonl"#));
    assert_eq!(tool, "sessions_spawn");
    assert_eq!(result["structuredContent"]["status"], "accepted");
}

#[test]
fn outside_a_tree_there_is_no_supervisor_to_ask() {
    let place = Place::new();
    for command in [&["spawn", "x"][..], &["wait"], &["report", "x"], &["context", "info"]] {
        let outcome = place.run(command).expect_code(2);
        assert!(outcome.stderr.contains("there is no supervisor to ask"), "{}", outcome.stderr);
    }
    let gone = place.run_with("OFFSHOOT_SOCKET", "/nonexistent/door", &["wait"]).expect_code(1);
    assert!(gone.stderr.contains("no supervisor at `/nonexistent/door`"), "{}", gone.stderr);
}

#[test]
fn a_socket_that_is_gone_does_not_hide_the_one_beside_it() {
    let place = Place::new();
    // A supervisor of several trees has written down a socket for each of them.
    let script = r#"cd "/tmp/offshoot-$(id -u)"
        own=$(grep -lF "\"$OFFSHOOT_SOCKET\"" *.json)
        for gone in 1 2 3 4 5 6 7 8; do
            sed "s#$OFFSHOOT_SOCKET#/nonexistent/$gone#" "$own" > "$gone$own"
        done
        env -i PATH="$PATH" "$OFFSHOOT" -q report 'still here'; echo $?"#;
    let outcome = place.tree(&[], script).expect_code(0);
    assert_eq!(outcome.stdout(), "0\n", "{}", outcome.text());
}

#[test]
fn the_census_counts_what_git_counts() {
    let place = Place::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/census/census.sh");
    let script = place.file("census.sh", fs::read(script).expect("the example is there"));
    for (path, lines) in [("a", 1), ("b/c", 2), ("b/d/e", 3), ("b/d/f/g/h/i", 4), ("j/k", 5)] {
        place.file(&format!("data/{path}"), "line\n".repeat(lines));
    }
    let git = place.run(&["-q", "run", "x", "--", "sh", "-c", "git init -q . && git add data"]);
    git.expect_code(0);
    let script = script.to_str().expect("a plain name");
    let census = [DEEP, &["--max-spawns", "50", "data", "--", "sh", script]].concat();
    assert_eq!(place.run(&census).expect_code(0).stdout(), "5 15\n");
}
