//! The end of a parent: its meaning for the children, and the end of a whole subtree.

use std::fs;
use std::io::{BufRead, BufReader};

use offshoot_test_support::named_pipe;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use crate::command::Place;

/// The label and status of each run below the root, with how it ended.
fn children(place: &Place) -> Vec<(String, String, String)> {
    let listed = place.run(&["tree", "--json"]).expect_code(0).json();
    let mut open = vec![listed[0].clone()];
    let mut found = Vec::new();
    while let Some(node) = open.pop() {
        open.extend(node["children"].as_array().expect("children").iter().rev().cloned());
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let by = word(&node["reason"]["by"]);
        found.push((word(&node["label"]), word(&node["status"]), by));
    }
    found.remove(0);
    found
}

fn row(label: &str, status: &str, by: &str) -> (String, String, String) {
    (label.to_owned(), status.to_owned(), by.to_owned())
}

#[test]
fn children_that_are_let_finish_outlive_their_parent() {
    let place = Place::new();
    // The child ends when the answer of its parent was read, so it must have been printed before.
    let script = r#"mkfifo one two
        "$OFFSHOOT" spawn --wait --label parent x -- sh -c '
          "$OFFSHOOT" spawn --label child y -- sh -c "cat one; echo late" > /dev/null; echo early'
        "$OFFSHOOT" spawn --label late z -- sh -c "cat two; echo late" > /dev/null
        echo done"#;
    let mut command =
        place.command(&["run", "--allow-recursive-spawn", "x", "--", "sh", "-c", script]);
    let mut running = command.spawn().expect("the program cannot be started");
    let stdout = running.stdout.take().expect("the stream is not a pipe");
    let mut answer = String::new();
    let mut stdout = BufReader::new(stdout);
    while !answer.ends_with("done\n") {
        let read = stdout.read_line(&mut answer).expect("text");
        assert!(read > 0, "it never answered: {answer}");
    }
    assert_eq!(answer, "early\ndone\n");
    for pipe in ["one", "two"] {
        fs::write(place.path().join(pipe), "").expect("the agent reads");
    }
    let outcome = place.finish(running, &command, &[]).expect_code(0);
    assert!(outcome.stderr.contains("more runs go on below it"), "{}", outcome.stderr);
    let expected = [
        row("parent", "completed", ""),
        row("child", "completed", ""),
        row("late", "completed", ""),
    ];
    assert_eq!(children(&place), expected);
}

#[test]
fn children_end_with_their_parent_where_that_is_the_policy() {
    let place = Place::new();
    place.file("c.toml", "[agents.defaults.subagents]\nonParentEnd = \"cascade\"\n");
    let outcome = place.tree(
        &["--config", "c.toml"],
        r#"mkfifo ready never
           "$OFFSHOOT" spawn --wait --label parent x -- sh -c '
             "$OFFSHOOT" spawn --label child y -- sh -c "
               \"\$OFFSHOOT\" spawn --label grandchild z -- sh -c \"echo > ready; cat never\" > /dev/null; cat never" > /dev/null
             read x < ready; echo early'
           "$OFFSHOOT" wait > /dev/null; echo done"#,
    );
    assert_eq!(outcome.expect_code(0).stdout(), "early\ndone\n");
    let expected = [
        row("parent", "completed", ""),
        row("child", "cancelled", "parent_ended"),
        row("grandchild", "cancelled", "parent_ended"),
    ];
    assert_eq!(children(&place), expected);
}

#[test]
fn ctrl_c_on_the_root_reaches_the_last_grandchild() {
    let place = Place::new();
    let pipe = place.path().join("ready");
    named_pipe(&pipe);
    // Each of them has something to say when it is asked to go.
    place.file(
        "agent.sh",
        r#"trap 'echo "half of $OFFSHOOT_DEPTH"; exit 0' TERM
           if [ $OFFSHOOT_DEPTH -lt 2 ]; then "$OFFSHOOT" spawn --label below x -- sh agent.sh > /dev/null
           else echo $OFFSHOOT_DEPTH > ready; fi
           mkfifo never$OFFSHOOT_DEPTH; cat never$OFFSHOOT_DEPTH & wait"#,
    );
    let words = ["-q", "run", "--allow-recursive-spawn", "x", "--", "sh", "agent.sh"];
    let mut command = place.command(&words);
    let running = command.spawn().expect("the program cannot be started");
    assert_eq!(fs::read_to_string(&pipe).expect("the last one is ready"), "2\n");
    let group = i32::try_from(running.id()).ok().filter(|id| *id > 1).and_then(Pid::from_raw);
    kill_process_group(group.expect("a group of its own"), Signal::INT)
        .expect("the group cannot be signalled");
    let outcome = place.finish(running, &command, &[]).expect_code(130);
    assert_eq!(outcome.stdout(), "half of 0\n");
    assert_eq!(
        children(&place),
        [row("below", "cancelled", "operator"), row("below", "cancelled", "operator")]
    );
    let trees = place.run(&["tree", "--json"]).json();
    let last = trees[0]["children"][0]["children"][0]["runId"]
        .as_str()
        .expect("the run has no id")
        .to_owned();
    // What it said in its grace is kept.
    let answer = place.run(&["show", &last, "--answer"]).expect_code(0);
    assert_eq!(answer.stdout(), "half of 2\n");
    assert!(answer.stderr.contains("this is no whole answer: run "), "{}", answer.stderr);
}

#[test]
fn a_subtree_of_several_runtimes_ends_within_its_grace() {
    let place = Place::new();
    // It stands for a Claude Code that does not listen any more; so does the leaf for a program.
    place.file("deaf.sh", "trap '' TERM INT HUP; echo > $1; while :; do cat never; done");
    place.file(
        "c.json5",
        r#"{
            agents: {
                defaults: { subagents: { graceSeconds: 1, allowAgents: ["*"] } },
                list: [{ id: "model", runtime: "claude" }],
            },
            runtimes: { claude: { command: ["sh", "deaf-model.sh"] } },
        }"#,
    );
    place.file("deaf-model.sh", "exec sh deaf.sh model");
    let outcome = place.tree(
        &["--config", "c.json5"],
        r#"mkfifo leaf model never
           middle=$("$OFFSHOOT" spawn --agent main --label middle x -- sh -c '
             "$OFFSHOOT" spawn --agent model --label model think > /dev/null
             "$OFFSHOOT" spawn --agent main --label leaf y -- sh deaf.sh leaf > /dev/null
             "$OFFSHOOT" wait')
           read x < model; read x < leaf
           "$OFFSHOOT" cancel $middle
           "$OFFSHOOT" -q wait $middle > /dev/null; echo $?"#,
    );
    assert_eq!(outcome.expect_code(0).stdout(), "1\n");
    let expected = [
        row("middle", "cancelled", "parent"),
        row("model", "cancelled", "parent"),
        row("leaf", "cancelled", "parent"),
    ];
    assert_eq!(children(&place), expected);
    let id = place.run(&["list", "--json"]).json()[0]["runId"]
        .as_str()
        .expect("the run has no id")
        .to_owned();
    let events = place.run(&["events", &id, "--json", "--format", "1"]).expect_code(0);
    let events = events.stdout().lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let events: Vec<Value> = events.collect();
    let at = |event: &Value| event["at"].as_u64().expect("microseconds");
    let asked = events.iter().find(|event| event["kind"]["stopping"].is_object());
    let asked = at(asked.expect("the subtree was asked to stop"));
    let ended = events
        .iter()
        .filter(|event| event["kind"]["ended"].is_object() && event["run"] != id.as_str());
    let last = ended.map(at).max().expect("they have ended");
    assert!(last - asked < 2_000_000, "{} µs for a grace of one second", last - asked);
}
