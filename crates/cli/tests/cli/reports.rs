//! Reports of agents while they work, and which of them count as a sign of life.

use std::io::{BufRead, BufReader};

use crate::command::Place;

const IDLE: &str = "[agents.defaults.subagents]\nidleTimeoutSeconds =";

#[test]
fn reports_are_seen_live_and_stay_on_record() {
    let place = Place::new();
    place.file("c.toml", format!("{IDLE} 2\n"));
    place.file(
        "agent.sh",
        r#"read -r task
           case $task in
           reports) for step in 1 2 3 4 5; do sleep 0.5; "$OFFSHOOT" report "step $step"; done;;
           *) for step in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 0.2; echo "$step"; done;;
           esac"#,
    );
    let tasks = ["--task", "reports", "--task", "prints"];
    let fanout = [&["-v", "fanout", "--config", "c.toml"][..], &tasks, &["--", "sh", "agent.sh"]];
    let mut command = place.command(&fanout.concat());
    let mut child = command.spawn().expect("the program cannot be started");
    let mut stderr = BufReader::new(child.stderr.take().expect("the stream is not a pipe")).lines();
    let live = stderr.find(|line| line.as_ref().is_ok_and(|line| line.contains("step 1")));
    assert!(live.is_some(), "the first report is seen while the agent works");
    let root = place.run(&["list", "--json"]).json()[0]["runId"]
        .as_str()
        .expect("the run has no id")
        .to_owned();
    let followed = place.run(&["events", "-f", &root]).expect_code(0);
    place.finish(child, &command, &[]).expect_code(0);

    let read = place.run(&["events", &root]).expect_code(0);
    for events in [&followed, &read] {
        let told = events.stdout().lines().filter_map(|line| line.split_once("  reported  "));
        let told: Vec<_> = told.map(|(_, text)| text).collect();
        assert_eq!(told, ["step 1", "step 2", "step 3", "step 4", "step 5"]);
    }
    let line = read.stdout().lines().find(|line| line.contains("step 5")).expect("just seen");
    let run = line.split_whitespace().nth(1).expect("the run stands after the moment");
    let shown = place.run(&["show", run]).expect_code(0);
    assert!(shown.stdout().contains("step 5 (the last of 5 reports)"), "{}", shown.stdout());
    place.run(&["audit", &root]).expect_code(0);
}

#[test]
fn a_sign_of_life_counts_when_it_happens() {
    let place = Place::new();
    place.file("c.toml", format!("{IDLE} 1\n"));
    // Twice more than half of the limit: only a sign in the middle keeps it alive.
    let script = "echo a; sleep 0.6; echo b; sleep 0.6; echo c";
    let run = ["-q", "run", "--config", "c.toml", "x", "--", "sh", "-c", script];
    assert_eq!(place.run(&run).expect_code(0).stdout(), "a\nb\nc\n");
}
