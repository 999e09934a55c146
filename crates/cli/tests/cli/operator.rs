//! The actions of the operator on a running tree, which no agent below it can take.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};

use offshoot_test_support::named_pipe;
use serde_json::json;

use crate::command::Place;

#[test]
fn the_operator_raises_a_budget_and_pauses_a_tree() {
    let place = Place::new();
    let steps = place.path().join("steps");
    named_pipe(&steps);
    // Open at both ends, so that neither end waits for the other to open it.
    let mut steps = File::options().read(true).write(true).open(steps).expect("a pipe");
    place.file(
        "agent.sh",
        r#"exec 3< steps
           child() { "$OFFSHOOT" -q run --budget-tokens 150 --json x -- true | grep -o "\"code\": *\"[a-z_]*\""; }
           child
           "$OFFSHOOT" -q budget main --add-tokens 1000 2>/dev/null; echo $?
           "$OFFSHOOT" -q pause main 2>/dev/null; echo $?
           "$OFFSHOOT" report one; read go <&3
           child
           "$OFFSHOOT" report two; read go <&3
           child
           echo done"#,
    );
    let asked = ["-v", "run", "--allow-recursive-spawn", "--budget-tokens", "100", "x", "--"];
    let mut command = place.command(&[&asked[..], &["sh", "agent.sh"]].concat());
    let mut child = command.spawn().expect("the program cannot be started");
    let mut stderr = BufReader::new(child.stderr.take().expect("the stream is not a pipe")).lines();
    let mut until = |word: &str| {
        let found = stderr.find(|line| line.as_ref().is_ok_and(|line| line.contains(word)));
        assert!(found.is_some(), "it says `{word}`");
    };
    until("one");
    let list = place.run(&["list", "--json"]).json();
    let run = list[0]["runId"].as_str().expect("a root").to_owned();
    for wrong in [&["--add", "1"][..], &["--add-tokens", "0"], &["--add", "-1"], &["--add", "nan"]]
    {
        place.run(&[&["budget", &run][..], wrong].concat()).expect_code(2);
    }
    let added = place.run(&["budget", &run, "--add-tokens", "400"]).expect_code(0);
    assert!(added.stdout().contains("of 500 tokens are used"), "{}", added.stdout());
    place.run(&["pause", &run]).expect_code(0);
    steps.write_all(b"go\n").expect("the reader is gone");
    until("two");
    place.run(&["unpause", &run]).expect_code(0);
    steps.write_all(b"go\n").expect("the reader is gone");
    let outcome = place.finish(child, &command, &[]).expect_code(0);
    let told = "\"code\": \"budget_exhausted\"\n3\n3\n\"code\": \"paused\"\ndone\n";
    assert_eq!(outcome.stdout(), told);
    let events = place.run(&["events", "--json", &run]).expect_code(0);
    let raised = json!({ "type": "budget_raised", "tokens": 400, "micro_usd": 0 });
    let is_raise = |line: &str| {
        let event: serde_json::Value = serde_json::from_str(line).expect("a JSON line");
        event["kind"] == raised
    };
    assert_eq!(events.stdout().lines().filter(|line| is_raise(line)).count(), 1);
    place.run(&["audit", &run]).expect_code(0);
    let over = place.run(&["pause", &run]).expect_code(2);
    assert!(over.stderr.contains("no supervisor runs the tree"), "{}", over.stderr);
    let said = format!("`offshoot resume {run}` goes on with it");
    assert!(over.stderr.contains(&said), "{}", over.stderr);
}
