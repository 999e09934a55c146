//! Programs that are not Claude Code, or not any more: missing, too old, garbled, gone.

mod common;

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use common::Place;
use offshoot_model::{Reason, RunStatus, ToolUse, Usage};
use offshoot_process::{Options, Processes};
use offshoot_runtime::{Launch, Output, Pass, RunEvent, Stop, StopHandle};
use offshoot_runtime_claude::{CheckError, ClaudeOptions, ClaudeRuntime, Version};
use offshoot_test_support::Watched;
use serde_json::json;
use tempfile::TempDir;

const INIT: &str = r#"echo '{"type":"system","subtype":"init"}'"#;
const ANSWER: &str =
    r#"echo '{"type":"result","subtype":"success","is_error":false,"result":"here"}'"#;

/// A program that does this, whatever it is told.
struct Script {
    _folder: TempDir,
    place: Place,
}

impl Script {
    fn new(lines: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("claude");
        std::fs::write(&path, format!("#!/bin/sh\n{}\n", lines.join("\n"))).expect("a script");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("a mode");
        let place = Place::new(ClaudeOptions {
            command: path.to_str().expect("UTF-8").to_owned(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            linger: Duration::from_millis(100),
            ..ClaudeOptions::default()
        });
        Self { _folder: folder, place }
    }
}

async fn reason(lines: &[&str]) -> Reason {
    let script = Script::new(lines);
    script.place.run(script.place.launch("x")).await.0.reason
}

#[tokio::test]
async fn what_owes_a_result_has_failed() {
    for (lines, expected) in [
        (&[INIT, "exit 0"][..], "runtime error: claude exited with code 0 without a result"),
        (&[INIT, "exit 3"], "runtime error: claude exited with code 3 without a result"),
        (&[INIT, "kill -SEGV $$"], "killed by signal 11"),
        (
            &["echo Welcome", "exit 0"],
            "runtime error: claude exited with code 0 without a result; it printed \"Welcome\"",
        ),
        (
            &[INIT, r#"printf '{"type":"resu'"#, "exit 1"],
            "runtime error: claude exited with code 1 without a result; it printed \"{\\\"type\\\":\\\"resu\"",
        ),
        (&["exit 1"], "cannot start: claude exited with code 1 without a result"),
        (&[INIT, ANSWER], "completed"),
        (&["printf '\\377\\n'", INIT, ANSWER], "completed"),
    ] {
        assert_eq!(reason(lines).await.to_string(), expected, "{lines:?}");
    }
}

#[tokio::test]
async fn its_secrets_are_not_in_what_its_tools_are_given() {
    let call = concat!(
        r#"{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash","#,
        r#""input":{"command":"curl -u hunter-2-hunter:ticket-of-the-run"}}]}}"#,
    );
    let folder = tempfile::tempdir().expect("a folder for the test");
    let path = folder.path().join("claude");
    let script = format!("#!/bin/sh\n{INIT}\necho '{call}'\nprintf %s '{call}'\n");
    std::fs::write(&path, script).expect("a script");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("a mode");
    let variable = |name: &str, value: &str| (name.into(), value.into());
    let place = Place::new(ClaudeOptions {
        command: path.to_str().expect("UTF-8").to_owned(),
        environment: vec![
            variable("PATH", "/usr/bin:/bin"),
            variable("MY_TOOL", "hunter-2-hunter"),
        ],
        more: vec!["MY_TOOL".to_owned()],
        ..ClaudeOptions::default()
    });
    let pass = Pass { socket: Arc::new("/socket".into()), ticket: "ticket-of-the-run".into() };
    let launch = Launch { pass: Some(pass), ..place.launch("x") };
    let (_, events) = place.run(launch).await;
    let used = events.iter().filter_map(|event| match event {
        RunEvent::ToolUsed(used) => Some(used),
        _ => None,
    });
    let input = json!({"command": "curl -u [redacted]:[redacted]"});
    let expected = ToolUse::new("Bash", &input);
    assert_eq!(used.collect::<Vec<_>>(), [&expected; 2], "its hash is that of the rest");
}

#[tokio::test]
async fn a_service_that_has_too_much_to_do_holds_back_what_begins() {
    let retry = |error: &str, ms: u32| {
        format!(
            r#"echo '{{"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,"retry_delay_ms":{ms},"error":"{error}"}}'"#
        )
    };
    let held = async |error: &str, ms: u32| {
        let script = Script::new(&[INIT, &retry(error, ms), ANSWER]);
        let run = async || script.place.run(script.place.launch("x")).await;
        let (first, _) = run().await;
        assert_eq!(first.reason.status(), RunStatus::Completed);
        let (second, events) = run().await;
        assert_eq!(second.reason.status(), RunStatus::Completed);
        let is_held = |event: &RunEvent| match event {
            RunEvent::BacksOff { why, .. } => {
                &**why == "other runs of the account were told to wait"
            }
            _ => false,
        };
        let started = events.iter().position(|event| matches!(event, RunEvent::Started(_)));
        let held = events.iter().position(is_held);
        assert!(held.is_none() || held < started, "before anything runs: {events:?}");
        held.is_some()
    };
    assert!(held("overloaded", 2000).await);
    assert!(held("rate_limit", 2000).await);
    // What concerns one call alone, and a wait that is over.
    assert!(!held("server_error", 2000).await);
    assert!(!held("overloaded", 0).await);
}

#[tokio::test]
async fn its_complaints_explain_it() {
    let script = Script::new(&["echo 'error: unknown option --session-id' >&2", "exit 1"]);
    let (finished, _) = script.place.run(script.place.launch("x")).await;
    assert_eq!(finished.reason.code(), "cannot_start");
    assert_eq!(finished.diagnostics.as_deref(), Some("error: unknown option --session-id"));
    assert_eq!(finished.usage, Some(Usage::default()));
}

#[tokio::test]
async fn a_last_line_needs_no_newline() {
    let answer = ANSWER.replacen("echo", "printf %s", 1);
    assert_eq!(reason(&[INIT, &answer]).await.status(), RunStatus::Completed);
}

#[tokio::test]
async fn one_that_does_not_go_after_its_answer_is_stopped_and_has_answered() {
    let script = Script::new(&[INIT, ANSWER, "while :; do sleep 60 & wait; done"]);
    let (finished, _) = script.place.run(script.place.launch("x")).await;
    assert_eq!(finished.reason, Reason::Completed { exit_code: None });
    assert_eq!(finished.output, Output::Text("here".into()));
}

#[tokio::test]
async fn one_that_reads_nothing_can_be_stopped() {
    let script = Script::new(&["trap '' TERM", INIT, "while :; do sleep 60; done"]);
    // More than fits into the pipe.
    let launch = script.place.launch(&"x".repeat(1_000_000));
    let (handle, stop) = StopHandle::new();
    let at_start = move |event: &RunEvent| {
        if matches!(event, RunEvent::Started(_)) {
            handle.stop(Stop::Soft { grace: Duration::from_millis(50) });
        }
    };
    let (finished, events) = script.place.listen(launch, stop, at_start).await;
    assert_eq!(finished.reason.code(), "cancelled");
    let Some(RunEvent::Started(Some(process))) = events.first() else { panic!("{events:?}") };
    assert!(Watched::new(process.pid).is_gone(), "the program has ended");
}

#[tokio::test]
async fn what_is_missing_is_named_with_what_to_do() {
    let claude = ClaudeOptions {
        environment: vec![("PATH".into(), "/nonexistent".into())],
        ..ClaudeOptions::default()
    };
    let place = Place::new(claude);
    let (finished, events) = place.run(place.launch("x")).await;
    assert_eq!(
        finished.reason.to_string(),
        "cannot start: claude not found on PATH; install Claude Code with npm i -g \
         @anthropic-ai/claude-code, or set runtimes.claude.command"
    );
    assert_eq!(events, [], "nothing has started");
    let error = place.claude.check(place.folder.path()).await.expect_err("it is not there");
    assert_eq!(error.to_string(), "claude not found on PATH");
}

#[tokio::test]
async fn a_version_is_old_or_not_one() {
    let check = async |lines: &[&str]| {
        let script = Script::new(lines);
        script.place.claude.check(script.place.folder.path()).await
    };
    let found = check(&["echo '2.1.329 (Claude Code)'"]).await.expect("recent enough");
    assert_eq!(found.version, Version { major: 2, minor: 1, patch: 329 });
    let old = check(&["echo 1.0.99"]).await.expect_err("too old");
    assert!(matches!(old, CheckError::TooOld { .. }), "{old}");
    assert!(
        old.to_string()
            .ends_with("version 1.0.99, and 2.1.197 is the oldest that is known to work")
    );
    assert!(old.hint().starts_with("update it"), "{}", old.hint());
    let other = check(&["echo hello"]).await.expect_err("something else");
    assert!(matches!(other, CheckError::NoVersion { .. }), "{other}");
}

#[tokio::test]
async fn nothing_starts_with_nothing_to_spend() {
    let script = Script::new(&[INIT, ANSWER]);
    let mut launch = script.place.launch("x");
    let mut grant = (*launch.grant).clone();
    grant.budget.usd = Some(offshoot_model::MicroUsd::default());
    launch.grant = grant.into();
    let (finished, events) = script.place.run(launch).await;
    assert_eq!((finished.reason.code(), events), ("budget", Vec::new()));
}

#[tokio::test]
async fn a_runtime_does_not_show_what_it_was_given() {
    let options = ClaudeOptions {
        environment: vec![("ANTHROPIC_API_KEY".into(), "secret".into())],
        ..ClaudeOptions::default()
    };
    let processes = Processes::start(Options::default()).expect("processes");
    let shown = format!("{:?}", ClaudeRuntime::new(processes, options));
    assert!(!shown.contains("secret"), "{shown}");
}
