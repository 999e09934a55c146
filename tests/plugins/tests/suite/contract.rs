//! The same runtimes built in, as libraries and as programs, through the same checks.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use offshoot_model::{Reason, RunStatus};
use offshoot_plugin_host::{Plugin, Surroundings};
use offshoot_plugin_tests::{folder, json, launch, load, run, serve};
use offshoot_process::{Options, Processes};
use offshoot_runtime::{Launch, Output, RunEvent, Runtime, check_contract};
use offshoot_runtime_claude::{ClaudeOptions, ClaudeRuntime};
use offshoot_runtime_exec::{ExecOptions, ExecRuntime};

fn processes() -> Processes {
    Processes::start(Options::default()).expect("processes cannot be held")
}

fn surroundings() -> Surroundings {
    Surroundings { processes: Some(processes()), ..Surroundings::default() }
}

fn environment() -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    std::env::vars_os().collect()
}

async fn keeps_the_contract(
    runtime: &dyn Runtime,
    answers: impl Fn() -> Launch,
    hangs: impl Fn() -> Launch,
) {
    assert_eq!(check_contract(runtime, answers, hangs).await, [], "{}", runtime.name());
}

/// A plugin in one of its forms, in a folder.
type Form = fn(&str, &Path) -> Arc<Plugin>;

const FORMS: [Form; 3] = [
    |name, place| load(name, place, surroundings()),
    |name, place| serve(name, "run", place, surroundings()),
    |name, place| serve(name, "plugin", place, surroundings()),
];

#[tokio::test]
async fn every_runtime_passes_the_contract() {
    for form in FORMS {
        in_this_form(form).await;
    }
}

async fn in_this_form(form: Form) {
    let (_folder, place) = folder();
    let echo = form("echo", &place);
    let echo = echo.runtime("echo", &json("{}")).expect("the plugin has no such runtime");
    keeps_the_contract(&echo, || launch(&place, "hi", &[]), || launch(&place, "wait", &[])).await;
    let (finished, events) = run(&echo, launch(&place, "hello", &[])).await;
    assert_eq!(finished.output, Output::Text("hello".into()));
    assert!(matches!(events[..], [RunEvent::Started(_)]), "{events:?}");

    let exec = form("exec", &place);
    let exec = exec.runtime("exec", &json("{}")).expect("the plugin has no such runtime");
    let built_in = ExecRuntime::new(processes(), ExecOptions::inheriting(environment()));
    assert_eq!(exec.abilities(), built_in.abilities());
    for runtime in [&exec as &dyn Runtime, &built_in] {
        let answers = || launch(&place, "the task", &["cat"]);
        let hangs = || launch(&place, "", &["sh", "-c", "sleep 1000"]);
        keeps_the_contract(runtime, answers, hangs).await;
        let (finished, events) = run(runtime, answers()).await;
        assert_eq!(finished.output, Output::Text("the task".into()));
        assert!(matches!(events[0], RunEvent::Started(Some(_))), "{events:?}");
        let (finished, _) = run(runtime, launch(&place, "", &["sh", "-c", "exit 7"])).await;
        assert_eq!(finished.reason, Reason::ExitCode { code: 7 });
    }

    let claude = form("claude", &place);
    let program = claude_of_cardboard(&place);
    let settings = format!(r#"{{"command":{program:?}}}"#);
    let claude =
        claude.runtime("claude", &json(&settings)).expect("the plugin has no such runtime");
    let options = ClaudeOptions { command: program, ..ClaudeOptions::inheriting(environment()) };
    let built_in = ClaudeRuntime::new(processes(), options);
    assert_eq!(claude.abilities(), built_in.abilities());
    for runtime in [&claude as &dyn Runtime, &built_in] {
        let answers = || launch(&place, "say something", &[]);
        keeps_the_contract(runtime, answers, || launch(&place, "hang", &[])).await;
        let (finished, _) = run(runtime, answers()).await;
        assert_eq!(finished.reason.status(), RunStatus::Completed);
        assert_eq!(finished.output, Output::Text("cardboard".into()));
    }
}

#[test]
fn abilities_of_a_program_may_differ_from_its_manifest() {
    for (place, form) in FORMS.into_iter().enumerate() {
        let (_folder, folder) = folder();
        let plugin = form("misbehave", &folder);
        let slip =
            plugin.runtime("differs", &json(r#"{"x":1}"#)).expect_err("it takes no settings");
        assert!(slip.to_string().contains("has more than 0 properties"), "{slip}");
        match (place, plugin.runtime("differs", &json("{}"))) {
            (0, refused) => {
                let refused = refused.expect_err("a library has those of its manifest").to_string();
                assert!(
                    refused.contains("the abilities of the runtime `differs` differ: "),
                    "{refused}"
                );
            }
            (_, made) => assert!(made.expect("a program may").abilities().turns),
        }
    }
}

/// A program that speaks as much of the protocol as one turn takes.
fn claude_of_cardboard(place: &Path) -> String {
    let path = place.join("claude");
    let script = r#"#!/bin/sh
echo '{"type":"system","subtype":"init","session_id":"s","model":"m","tools":[],"mcp_servers":[]}'
while read -r line; do case "$line" in
*'"type":"user"'*hang*) exec sleep 1000;;
*'"type":"user"'*) echo '{"type":"result","subtype":"success","is_error":false,"result":"cardboard","session_id":"s","num_turns":1,"total_cost_usd":0.01,"usage":{"input_tokens":1,"output_tokens":1}}';;
esac; done
"#;
    fs::write(&path, script).expect("the file cannot be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("the mode cannot be set");
    path.to_str().expect("a plain name").to_owned()
}
