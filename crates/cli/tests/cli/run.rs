//! `offshoot run`.

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::command::{Place, Table, check};

#[test]
fn the_answer_is_printed_and_the_task_arrives_byte_for_byte() {
    let place = Place::new();
    let outcome = place.run(&["-q", "run", "a b\n\n", "--", "od", "-c"]).expect_code(0);
    check("run", &outcome);
    let report = place.run(&["run", "--json", "--output", "json", "[1, 2]", "--", "cat"]);
    let report = report.expect_code(0).json();
    assert_eq!(report["data"], serde_json::json!([1, 2]));
    assert_eq!((&report["status"], &report["depth"]), (&"completed".into(), &0.into()));
    assert_eq!(report["tree"]["runId"], report["runId"]);
}

#[test]
fn what_was_printed_before_a_failure_is_printed() {
    let place = Place::new();
    check(
        "run_failed",
        &place.run(&["run", "x", "--", "sh", "-c", "echo half; echo why >&2; exit 7"]),
    );
    let report = place.run(&["run", "--json", "x", "--", "sh", "-c", "echo half; exit 7"]);
    let report = report.expect_code(1).json();
    assert_eq!((&report["data"], &report["partial"]), (&"half".into(), &true.into()));
    assert_eq!(report["error"]["code"], "exit_code");
    let allowed =
        place.run(&["-q", "run", "--ok-exit", "7", "x", "--", "sh", "-c", "echo half; exit 7"]);
    assert_eq!(allowed.expect_code(0).stdout(), "half\n");
}

#[test]
fn awkward_agents_have_honest_ends() {
    let place = Place::new();
    let run = |more: &[&str], script: &str| {
        place.run(&[&["run"], more, &["x", "--", "sh", "-c", script]].concat())
    };
    place.file("grace.toml", "[agents.defaults.subagents]\ngraceSeconds = 1\n");
    check("run_signal", &run(&[], "kill -SEGV $$"));
    check("run_silent", &run(&[], "true"));
    check("run_deaf", &run(&[], "exec <&-; echo ok"));
    check("run_hangs", &run(&["--timeout", "1"], "sleep 1000"));
    check(
        "run_ignores_term",
        &run(&["--timeout", "1", "--config", "grace.toml"], "trap '' TERM; sleep 1000 & wait"),
    );
}

#[test]
fn a_deadline_of_the_tree_has_an_exit_code_of_its_own() {
    let place = Place::new();
    place.file("c.toml", "[agents.defaults.subagents]\ndeadlineSeconds = 1\n");
    check("run_deadline", &place.run(&["run", "--config", "c.toml", "x", "--", "sleep", "1000"]));
}

#[test]
fn an_agent_without_a_definition_is_refused_with_the_nearest_name() {
    let place = Place::new();
    place.file("c.toml", "[[agents.list]]\nid = \"reviewer\"\n");
    place.file("in", "x\n");
    place.file("tasks", "{\"task\":\"x\"}\n{\"task\":\"x\",\"agent\":\"reviwer\"}\n");
    let with = |words: &[&str]| place.run(&[&["--config", "c.toml"], words].concat());
    let mut table = Table::default();
    table.row(&with(&["run", "--agent", "Reviwer", "x", "--", "cat"]));
    table.row(&with(&["run", "--agent", "nobody", "x", "--", "cat"]));
    table.row(&with(&["run", "--agent", "no body", "x", "--", "cat"]));
    table.row(&with(&["map", "--agent", "mian", "in", "--", "cat"]));
    table.row(&with(&["map", "--agent", "nobody", "--dry-run", "in", "--", "cat"]));
    table.row(&with(&["fanout", "--agent", "nobody", "--task", "x", "--", "cat"]));
    table.row(&with(&["fanout", "--tasks", "tasks", "--", "cat"]));
    table.row(&with(&["mcp", "--agent", "nobody", "--", "cat"]));
    table.row(&with(&["config", "resolve", "--agent", "nobody"]));
    table.row(&with(&["agents", "show", "reviewers"]));
    table.check("undefined_agents");
    // Nothing was started, or recorded.
    assert_eq!(
        place.run(&["list", "--all", "--json"]).expect_code(0).json(),
        serde_json::json!([])
    );
    // What is always there, and the names as they are written.
    for agent in ["main", "REVIEWER"] {
        with(&["run", "--agent", agent, "x", "--", "cat"]).expect_code(0);
    }
}

#[test]
fn details_are_every_event() {
    let place = Place::new();
    let outcome = place.run(&["-v", "run", "x", "--", "cat"]).expect_code(0);
    for word in ["admitted", "starting", "started", "completed"] {
        assert!(outcome.stderr.contains(word), "{word}: {}", outcome.stderr);
    }
    assert_eq!(outcome.stdout(), "x\n");
}

#[test]
fn agents_see_no_more_of_the_environment_than_they_may() {
    let place = Place::new();
    place.file("c.toml", "[runtimes.exec]\nenv = [\"MY_*\"]\n");
    let mut command = place.command(&["-q", "run", "--config", "c.toml", "x", "--", "env"]);
    command.env("MY_KEY", "given").env("SECRET", "kept");
    let outcome = place.outcome(command, &[]).expect_code(0);
    assert!(outcome.stdout().contains("MY_KEY=given") && !outcome.stdout().contains("SECRET"));
    let offshoot = format!("OFFSHOOT={}\n", env!("CARGO_BIN_EXE_offshoot"));
    assert!(outcome.stdout().contains(&offshoot), "{}", outcome.stdout());
}

#[test]
fn no_process_outlives_its_run() {
    let place = Place::new();
    for start in ["sleep 1000", "setsid sleep 1000"] {
        let script = format!("{start} > /dev/null 2>&1 < /dev/null & echo $!");
        let outcome = place.run(&["-q", "run", "x", "--", "sh", "-c", &script]).expect_code(0);
        let grandchild = outcome.stdout().trim().parse().ok().and_then(Pid::from_raw);
        let grandchild = grandchild.expect("the agent told its number");
        assert_eq!(test_kill_process(grandchild), Err(Errno::SRCH), "{start} lives on");
    }
}

#[test]
fn a_hundred_megabytes_come_through() {
    let place = Place::new();
    let outcome =
        place.run(&["-q", "run", "x", "--", "head", "-c", "104857600", "/dev/zero"]).expect_code(0);
    assert_eq!(outcome.stdout.len(), 104_857_601);
    assert!(outcome.stdout.starts_with(b"\0\0") && outcome.stdout.ends_with(b"\0\n"));
}

#[test]
fn what_cannot_run_is_said_before() {
    let mut table = Table::default();
    let place = Place::new();
    table.row(&place.run(&["run", "", "--", "cat"]));
    table.row(&place.run_with("PATH", "/nowhere", &["run", "x"]));
    place.file("plain", "not a program");
    table.row(&place.run(&["run", "x", "--", "./plain"]));
    table.row(&place.run(&["run", "--dry-run", "x", "--", "cat"]));
    table.check("run_wrong");
}

#[test]
fn a_program_that_may_call_a_model_is_not_free() {
    let place = Place::new();
    let agent = "[[agents.list]]\nid = \"codex\"\ncommand = [\"echo\", \"done\"]\n";
    let exec = |cost: &str| format!("{agent}[runtimes.exec]\ncost = \"{cost}\"\n");
    place.file("agent.toml", agent);
    place.file("unknown.toml", exec("unknown"));
    place.file("none.toml", exec("none"));
    let run = |config: &str, flag: &[&str], what: &[&str]| {
        place.run(&[&["-q", "run", "--config", config], flag, what].concat())
    };
    let (codex, plain) = (&["--agent", "codex", "x"][..], &["x", "--", "true"][..]);
    for (config, what, is_refused) in [
        ("agent.toml", codex, true),
        ("unknown.toml", codex, true),
        ("none.toml", codex, false),
        ("agent.toml", plain, false),
        ("unknown.toml", plain, true),
    ] {
        let outcome = run(config, &["--budget-usd", "0.000001"], what);
        let refused = outcome
            .stderr
            .contains("the cost of the runtime `exec` is neither reported nor bounded");
        assert_eq!(refused, is_refused, "{config} {what:?}: {}", outcome.stderr);
    }
    for (config, what, unknown_runs) in [("agent.toml", codex, 1), ("agent.toml", plain, 0)] {
        let report = run(config, &["--json"], what).expect_code(0).json();
        assert_eq!(report["cost"]["unknownRuns"], unknown_runs, "{report}");
        assert_eq!(report["usage"]["input"].is_null(), unknown_runs == 1, "{report}");
    }
}
