//! Plugins that are programs: the example in Python, and one that does whatever a program can do wrong.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join;
use offshoot_model::{Cost, JsonText, MicroUsd, Reason, RunStatus, TokenCount, ToolUse};
use offshoot_plugin_host::{Checked, LogLine, Plugin, PluginError, Surroundings};
use offshoot_process::{Options, Processes};
use offshoot_runtime::{
    CostKnowledge, Finished, Launch, Merge, MergeInput, MergeValue, Output, Pass, RunContext,
    RunEvent, RunHost, Runtime, Stop, StopHandle, check_contract,
};
use offshoot_test_support::Listener;

use crate::SHUTDOWN;

const AWKWARD: &str = include_str!("awkward.py");
const AGENT: &str = include_str!("../../../../plugins/python-agent/agent.py");

/// A plugin of one Python file, in a folder that no other user can write.
struct Program {
    place: tempfile::TempDir,
    name: &'static str,
    logged: Arc<Mutex<Vec<String>>>,
    /// The folder for temporary files.
    temporary: PathBuf,
}

impl Program {
    fn new(name: &'static str, per: &str, text: &str) -> Self {
        let place = tempfile::tempdir().expect("no temporary folder can be made");
        let folder = place.path().join(name);
        fs::create_dir(&folder).expect("the folder cannot be made");
        let package = format!(
            "name = \"{name}\"\nversion = \"0.1.0\"\nabi = \"1.0\"\nruntimes = [\"{name}\"]\n\
             [process]\ncommand = [\"python3\", \"agent.py\"]\nper = \"{per}\"\n"
        );
        fs::write(folder.join("plugin.toml"), package).expect("the file cannot be written");
        fs::write(folder.join("agent.py"), text).expect("the file cannot be written");
        let temporary = place.path().to_owned();
        Self { place, name, logged: Arc::default(), temporary }
    }

    fn awkward(per: &str) -> Self {
        Self::new("awkward", per, AWKWARD)
    }

    fn path(&self) -> PathBuf {
        self.place.path().join(self.name).join("plugin.toml")
    }

    fn checked(&self) -> Checked {
        Checked::file(&self.path()).expect("it is a plugin, and ours")
    }

    fn load_with(&self, config: &str) -> Result<Arc<Plugin>, PluginError> {
        let logged = Arc::clone(&self.logged);
        let log = move |line: LogLine<'_>| {
            let line = format!("{} {}: {}", line.level, line.target, line.message);
            logged.lock().expect("no holder of the lock panics").push(line);
        };
        let surroundings = Surroundings {
            log: Some(Arc::new(log)),
            processes: Some(Processes::start(Options::default()).expect("there are processes")),
            offshoot: Some("/opt/offshoot".into()),
            environment: self.environment(),
        };
        Plugin::load(&self.checked(), surroundings, &json(config))
    }

    /// The environment of this test, with another folder for temporary files, and as of a supervisor that runs inside an agent.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        let others = std::env::vars_os().filter(|(name, _)| name != "TMPDIR");
        let own = [
            ("TMPDIR".into(), self.temporary.clone().into()),
            ("OFFSHOOT_TICKET".into(), "outer".into()),
        ];
        others.chain(own).collect()
    }

    /// The private copies of its files.
    fn copies(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.temporary).expect("the folder cannot be read");
        let paths = entries.map(|entry| entry.expect("it can be listed").path());
        paths.filter(|path| !path.ends_with(self.name)).collect()
    }

    fn load(&self) -> Arc<Plugin> {
        self.load_with("{}").expect("it is a good plugin")
    }

    fn logged(&self) -> Vec<String> {
        self.logged.lock().expect("no holder of the lock panics").clone()
    }
}

fn json(text: &str) -> JsonText {
    JsonText::parse(text.to_owned()).expect("it is JSON")
}

async fn run(runtime: &dyn Runtime, task: &str) -> (Finished, Vec<RunEvent>) {
    offshoot_test_support::run(runtime, Launch::bare(task)).await
}

fn is_gone(pid: u32) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}

#[tokio::test]
async fn every_runtime_passes_the_contract() {
    let _no_shutdown = SHUTDOWN.read().await;
    for per in ["run", "plugin"] {
        let program = Program::new("python-agent", per, AGENT);
        let plugin = program.load();
        let runtime =
            plugin.runtime("python-agent", &json("{}")).expect("the plugin has no such runtime");
        let broken =
            check_contract(&runtime, || Launch::bare("hello"), || Launch::bare("wait")).await;
        assert_eq!(broken, [], "a process per {per}");
        let (finished, events) = run(&runtime, "hello there").await;
        assert_eq!(finished.output, Output::Text("HELLO THERE".into()));
        let [
            RunEvent::Started(process),
            RunEvent::Progress(line),
            RunEvent::ToolUsed(used),
            RunEvent::Used { usage, cost },
        ] = &events[..]
        else {
            panic!("{events:?}");
        };
        assert_eq!(process.is_some(), per == "run", "a process of several runs is of none of them");
        assert_eq!(&**line, "saying it louder");
        assert_eq!(used.to_string(), r#"upper {"text":"hello there"}"#);
        assert_eq!(usage.input, TokenCount::Known(2));
        assert_eq!(*cost, Cost::known(MicroUsd::from_micros(2000)));
        let pass = Pass { socket: Arc::new("/socket".into()), ticket: "ticket-of-the-run".into() };
        let launch = Launch { pass: Some(pass), ..Launch::bare("hello ticket-of-the-run") };
        let (_, events) = offshoot_test_support::run(&runtime, launch).await;
        let used = ToolUse::new("upper", &BTreeMap::from([("text", "hello [redacted]")]));
        assert!(events.contains(&RunEvent::ToolUsed(used)), "{events:?}");
        let (finished, _) = run(&runtime, "fail with words").await;
        let Reason::RuntimeError { message, .. } = finished.reason else { panic!("{finished:?}") };
        assert_eq!(message, "with words");
        let (finished, _) = run(&runtime, "ask a child").await;
        assert_eq!(finished.reason.status(), RunStatus::Completed, "{finished:?}");
        plugin.shutdown(Duration::from_secs(5)).await.expect("it ends");
        let (finished, _) = run(&runtime, "too late").await;
        assert!(matches!(finished.reason, Reason::Cancelled { .. }), "{finished:?}");
    }
}

#[tokio::test]
async fn what_a_program_does_wrong_fails_its_run_by_name() {
    let _no_shutdown = SHUTDOWN.read().await;
    let program = Program::awkward("run");
    let plugin = program.load();
    let runtime = plugin.runtime("awkward", &json("{}")).expect("the plugin has no such runtime");
    let check = async |task: &str, expected: &str| {
        let (finished, _) = run(&runtime, task).await;
        let Reason::RuntimeError { message, .. } = &finished.reason else {
            panic!("{task}: {finished:?}");
        };
        assert!(message.contains(expected), "{task}: {message}");
    };
    let named = "the process of the plugin `awkward` ";
    check("dies", &format!("{named}ended with code 3; it said: I am about to end")).await;
    check("killed", &format!("{named}was ended by signal 9")).await;
    check("garbage", &format!("{named}wrote a line that means nothing here (expected")).await;
    check("garbage", "): `Traceback (most recent call last)`").await;
    check("not UTF-8", &format!("{named}wrote a line that means nothing here (invalid utf-8"))
        .await;
    check("endless", &format!("{named}wrote a line ")).await;
    check("asks for ever", &format!("{named}asks for more and more, and reads no answer")).await;
    check("no outcome", "outcome: missing field `reason`").await;
    check("no body", "outcome: its body is not Base64").await;
    let (finished, events) = run(&runtime, "strange").await;
    assert_eq!(finished.output, Output::Text("unsupported operation `dance`".into()));
    assert_eq!(events.len(), 1, "{events:?}");
    // It runs on as if nothing had been.
    let (finished, _) = run(&runtime, "still here").await;
    assert_eq!(finished.output, Output::Text("still here".into()));
    let logged = program.logged();
    assert!(logged.contains(&"3 awkward: I am about to end".to_owned()), "{logged:?}");
    assert!(plugin.shutdown(Duration::from_secs(5)).await.is_ok());
}

#[tokio::test]
async fn a_process_of_several_runs_ends_with_one_of_them_and_is_started_anew() {
    let _no_shutdown = SHUTDOWN.read().await;
    let program = Program::awkward("plugin");
    let plugin = program.load();
    let runtime = plugin.runtime("awkward", &json("{}")).expect("the plugin has no such runtime");
    let pid = async || match run(&runtime, "pid").await.0.output {
        Output::Text(pid) => pid.parse::<u32>().expect("a number"),
        other => panic!("{other:?}"),
    };
    let first = pid().await;
    assert_eq!(pid().await, first, "one process for all runs");
    let waits = offshoot_test_support::run(&runtime, Launch::bare("ignores"));
    let (neighbour, dead) = join(waits, run(&runtime, "dies")).await;
    for (finished, _) in [neighbour, dead] {
        let text = finished.reason.to_string();
        assert!(text.contains("the process of the plugin `awkward` ended with code 3"), "{text}");
    }
    assert_ne!(pid().await, first, "the next run has another process");
    plugin.shutdown(Duration::from_secs(5)).await.expect("it ends");
}

#[tokio::test]
async fn a_run_that_does_not_stop_is_ended_by_force() {
    let _no_shutdown = SHUTDOWN.read().await;
    // Each ends by another way: a line, a signal, the end of its process.
    for (per, task) in [("run", "ignores"), ("run", "deaf"), ("plugin", "ignores")] {
        let program = Program::awkward(per);
        let plugin = program.load();
        let runtime =
            plugin.runtime("awkward", &json("{}")).expect("the plugin has no such runtime");
        for request in [Stop::Soft { grace: Duration::from_millis(200) }, Stop::Firm] {
            let (handle, stop) = StopHandle::new();
            let process = Arc::new(Mutex::new(None));
            let noted = Arc::clone(&process);
            let listener = Listener::at(move |event| {
                if let RunEvent::Started(process) = event {
                    *noted.lock().expect("no holder of the lock panics") = *process;
                    handle.stop(request);
                }
            });
            let cx = RunContext::new(RunHost::new(listener), stop);
            let finished = runtime.start(Launch::bare(task), cx).await;
            assert!(
                matches!(finished.reason, Reason::Cancelled { .. }),
                "{per}, {task}, {request:?}: {finished:?}"
            );
            assert_eq!(finished.diagnostics, None, "it was not given up");
            let process = *process.lock().expect("no holder of the lock panics");
            assert!(process.is_none_or(|process| is_gone(process.pid)), "{per}, {task}");
        }
        plugin.shutdown(Duration::from_secs(5)).await.expect("it ends");
    }
}

#[tokio::test]
async fn a_merge_streams_and_may_answer_early() {
    let _no_shutdown = SHUTDOWN.read().await;
    for per in ["run", "plugin"] {
        let program = Program::awkward(per);
        let plugin = program.load();
        let merge = plugin.merge("longest", &json("{}")).expect("the plugin has no such merge");
        let host = || RunHost::new(Listener::default());
        let input = |text: &str| MergeInput {
            key: "k".into(),
            status: RunStatus::Completed,
            value: MergeValue::Text(text.into()),
        };
        let mut job = merge.begin(&json("null"), host()).expect("it likes null");
        assert_eq!(job.push(1, input("long enough")), Ok(None));
        assert_eq!(job.push(0, input("sh\u{2028}ort\n")), Ok(None));
        assert_eq!(job.finish().await, Ok(json("\"long enough\"")));
        let mut job = merge.begin(&json("\"early\""), host()).expect("it likes that");
        assert_eq!(job.push(0, input("first")), Ok(Some(json("\"first\""))));
        drop(job);
        let refused = merge.begin(&json("\n\"refuse\"\n"), host()).err().expect("a refusal");
        assert_eq!(refused.to_string(), "merge `longest`: no such parameter");
        let mut job = merge.begin(&json("null"), host()).expect("it likes null");
        let died = job.push(0, input("die")).expect_err("it has died");
        let expected = "merge `longest`: the process of the plugin `awkward` ended with code 4";
        assert_eq!(died.to_string(), expected);
        plugin.shutdown(Duration::from_secs(5)).await.expect("it ends");
    }
}

#[tokio::test]
async fn what_was_checked_is_what_runs() {
    let _no_shutdown = SHUTDOWN.read().await;
    let program = Program::awkward("run");
    let plugin = program.load();
    let runtime = plugin.runtime("awkward", &json("{}")).expect("the plugin has no such runtime");
    fs::write(program.place.path().join("awkward/agent.py"), "print('x')")
        .expect("the file cannot be written");
    for _ in 0..2 {
        let (finished, _) = run(&runtime, "as it was").await;
        assert_eq!(finished.output, Output::Text("as it was".into()));
    }
    let error = program.load_with("{}").expect_err("it is another one now");
    assert!(error.to_string().ends_with("plugin.toml has changed since it was loaded"), "{error}");
    plugin.shutdown(Duration::from_secs(5)).await.expect("it ends");
}

#[tokio::test]
async fn copies_are_private_and_those_of_killed_processes_are_removed() {
    let _no_shutdown = SHUTDOWN.read().await;
    let program = Program::awkward("run");
    let left = program.place.path().join("offshoot-plugin-left");
    let held = program.place.path().join("offshoot-plugin-held");
    for folder in [&left, &held] {
        fs::create_dir(folder).expect("the folder cannot be made");
        fs::write(folder.join("agent.py"), "").expect("the file cannot be written");
    }
    let holder = File::open(&held).expect("the file cannot be opened");
    holder.lock().expect("it is free");
    // A link is not what was left, wherever it leads.
    let link = program.place.path().join("offshoot-plugin-link");
    std::os::unix::fs::symlink(program.place.path().join("awkward"), &link)
        .expect("the link cannot be made");
    let plugin = program.load();
    let copies = program.copies();
    assert!(!copies.contains(&left) && copies.contains(&held) && copies.contains(&link));
    let [copy] =
        &copies.iter().filter(|path| **path != held && **path != link).collect::<Vec<_>>()[..]
    else {
        panic!("{copies:?}");
    };
    let mode = fs::metadata(copy).expect("the file is not there").permissions().mode();
    assert_eq!(mode & 0o7777, 0o700);
    assert!(held.join("agent.py").exists() && program.path().exists());
    // Another program leaves the first one its files.
    let mut other = Program::awkward("run");
    other.temporary.clone_from(&program.temporary);
    let beside = other.load();
    assert_eq!(program.copies().len(), 4);
    let runtime = plugin.runtime("awkward", &json("{}")).expect("the plugin has no such runtime");
    assert_eq!(run(&runtime, "here").await.0.output, Output::Text("here".into()));
    for plugin in [plugin, beside] {
        plugin.shutdown(Duration::from_secs(5)).await.expect("it ends");
    }
    assert_eq!(program.copies().len(), 2, "each removes its own");
}

#[tokio::test]
async fn a_folder_for_temporary_files_that_is_not_there_keeps_no_plugin_from_starting() {
    let _no_shutdown = SHUTDOWN.read().await;
    let mut program = Program::awkward("run");
    program.temporary = program.place.path().join("missing");
    let plugin = program.load();
    let runtime = plugin.runtime("awkward", &json("{}")).expect("the plugin has no such runtime");
    assert_eq!(run(&runtime, "here").await.0.output, Output::Text("here".into()));
    plugin.shutdown(Duration::from_secs(5)).await.expect("it ends");
}

#[tokio::test]
async fn settings_are_held_against_a_schema_and_may_change_abilities() {
    let _no_shutdown = SHUTDOWN.read().await;
    let program = Program::awkward("run");
    let plugin = program.load();
    let abilities =
        |config: &str| plugin.runtime("awkward", &json(config)).map(|made| made.abilities());
    let stated = abilities("{}").expect("the plugin has no such runtime");
    assert_eq!((stated.cost, stated.turns), (CostKnowledge::None, false));
    for _ in 0..2 {
        let other = abilities(r#"{"turns":true}"#).expect("settings that it knows");
        assert_eq!((other.cost, other.turns), (CostKnowledge::Reported, true));
        assert_eq!(abilities("{}").expect("the plugin has no such runtime"), stated);
    }
    let slip = abilities(r#"{"turns":"yes"}"#).expect_err("it is no boolean").to_string();
    assert!(slip.contains("/turns: \"yes\" is not of type \"boolean\""), "{slip}");
    let slip = plugin.merge("numbers", &json("{}")).map(drop).expect_err("it asks for a base");
    assert!(slip.to_string().contains("\"base\" is a required property"), "{slip}");
    plugin.merge("numbers", &json(r#"{"base":10}"#)).expect("settings that fit");
    let runtime = plugin.runtime("awkward", &json("{}")).expect("the plugin has no such runtime");
    let (finished, _) = run(&runtime, "offshoot").await;
    assert_eq!(finished.output, Output::Text("/opt/offshoot /opt/offshoot no ticket".into()));
    plugin.shutdown(Duration::from_secs(5)).await.expect("it ends");
}

#[test]
fn a_program_that_cannot_be_used_is_named() {
    let _no_shutdown = SHUTDOWN.blocking_read();
    let check = |program: &Program, config: &str, expected: &str| {
        let error = program.load_with(config).expect_err(expected);
        assert!(error.to_string().contains(expected), "{error}");
    };
    let error = Program::awkward("run").load_with("{\"refuse\":true}").expect_err("it refuses");
    assert!(error.to_string().ends_with("refused to begin: no such settings"), "{error}");
    assert_eq!(error.hint().as_deref(), Some("set `refuse` to false"), "its own words");
    let ends = Program::new("ends", "run", "raise SystemExit('not today')");
    check(
        &ends,
        "{}",
        "refused to say what it is: the process of the plugin `ends` ended with code 1; it said: not today",
    );
    let other = Program::new("other", "run", AWKWARD);
    check(
        &other,
        "{}",
        "is not what its plugin.toml says: name: `other` there, `awkward` in its code",
    );
    let none = Program::awkward("run");
    let text = fs::read_to_string(none.path()).expect("the file cannot be read");
    fs::write(none.path(), text.replace("python3", "no-such-program"))
        .expect("the file cannot be written");
    check(&none, "{}", "cannot be started: program no-such-program not found");
}
