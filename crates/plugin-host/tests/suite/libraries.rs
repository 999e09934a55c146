//! Real libraries, good and awkward: those of `examples/`, which cargo builds with these tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use offshoot_model::{JsonText, Reason, RunStatus, ToolUse};
use offshoot_plugin_host::{
    Checked, Extent, LogLine, Plugin, PluginError, Surroundings, Trier, shutdown_all, target,
    try_out,
};
use offshoot_process::{Options, Processes};
use offshoot_runtime::{
    Finished, Launch, Merge, MergeInput, MergeValue, Output, RunEvent, RunHost, Runtime,
    check_contract,
};
use offshoot_test_support::Listener;

use crate::SHUTDOWN;

/// Longer than anything takes.
const FAR: Duration = Duration::from_secs(20);

/// A file of `examples/`, in a folder that no other user can write.
struct Copy {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Copy {
    fn of(library: &str) -> Self {
        let folder = tempfile::tempdir().expect("no temporary folder can be made");
        let path = folder.path().join(format!("lib{library}.so"));
        fs::copy(built(&format!("lib{library}.so")), &path).expect("the file cannot be copied");
        Self { _folder: folder, path }
    }

    fn checked(&self) -> Checked {
        Checked::file(&self.path).expect("it is a library, and ours")
    }

    fn load(&self) -> Result<Arc<Plugin>, PluginError> {
        Plugin::load(&self.checked(), Surroundings::default(), &json("{}"))
    }

    async fn try_out(&self, extent: &Extent) -> Result<(), PluginError> {
        let trier = Trier {
            processes: Processes::start(Options::default()).expect("the system has processes"),
            program: built("trier"),
            args: Vec::new(),
            environment: Vec::new(),
        };
        try_out(&trier, &self.checked(), extent).await.map(drop)
    }
}

fn built(file: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test has a file");
    let profile = test.ancestors().nth(2).expect("a test lies in a folder of its profile");
    let path = profile.join("examples").join(file);
    assert!(path.exists(), "cargo builds the examples with all tests of the package, not with one");
    path
}

fn json(text: &str) -> JsonText {
    JsonText::parse(text.to_owned()).expect("it is JSON")
}

fn launch(task: &str) -> Launch {
    Launch::bare(task)
}

async fn run(runtime: &dyn Runtime, task: &str) -> (Finished, Vec<RunEvent>) {
    offshoot_test_support::run(runtime, launch(task)).await
}

#[tokio::test]
async fn every_runtime_passes_the_contract() {
    for library in ["raw", "alien_allocator"] {
        let plugin = Copy::of(library).load().expect("it is a good plugin");
        let runtime = plugin.runtime("upper", &json("{}")).expect("the plugin has no such runtime");
        let broken = check_contract(&runtime, || launch("hello"), || launch("hang")).await;
        assert_eq!(broken, [], "{library}");
        let (finished, events) = run(&runtime, "hello").await;
        assert_eq!(finished.output, Output::Text("HELLO".into()));
        assert_eq!(events, [RunEvent::Started(None), RunEvent::Progress("here we go".into())]);
        let (finished, _) = run(&runtime, "lie").await;
        assert!(matches!(finished.reason, Reason::RuntimeError { .. }), "{:?}", finished.reason);
        let (_, events) = run(&runtime, "flood").await;
        let numbers = events.iter().filter_map(|event| match event {
            RunEvent::Progress(text) => text.parse::<u32>().ok(),
            _ => None,
        });
        assert!(numbers.eq(0..10_000), "10,000 events come, and in order");
        let large = "x".repeat(100 << 20);
        let (finished, _) = run(&runtime, &large).await;
        assert_eq!(finished.output, Output::Text(large.to_uppercase().into()));
    }
    let _others_end_too = SHUTDOWN.write().await;
    assert!(shutdown_all(Duration::from_secs(1)).await.is_empty());
}

#[test]
fn a_load_that_hangs_keeps_no_process_from_its_end() {
    let _others_end_too = SHUTDOWN.blocking_write();
    let (hangs, good) = (Copy::of("raw"), Copy::of("raw"));
    let (begun, begins) = mpsc::channel();
    let log = move |line: LogLine<'_>| begun.send(line.message.to_owned()).expect("it is awaited");
    let checked = hangs.checked();
    std::thread::spawn(move || {
        let surroundings = Surroundings { log: Some(Arc::new(log)), ..Surroundings::default() };
        Plugin::load(&checked, surroundings, &json(r#"{"hang":true}"#))
    });
    assert_eq!(begins.recv_timeout(FAR).as_deref(), Ok("it hangs"));
    let (ended, ends) = mpsc::channel();
    std::thread::spawn(move || {
        drop(good.load().expect("another one can be loaded"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let failed = runtime.expect("a runtime").block_on(shutdown_all(Duration::from_secs(1)));
        ended.send(failed.len()).expect("it is awaited");
    });
    assert_eq!(ends.recv_timeout(FAR), Ok(0));
}

#[test]
fn what_was_checked_is_written_whatever_has_become_of_the_file() {
    let place = tempfile::tempdir().expect("no temporary folder can be made");
    let folder = place.path().join("raw");
    fs::create_dir(&folder).expect("the folder cannot be made");
    let (file, library) = (folder.join("plugin.toml"), folder.join("libx.so"));
    let text = format!(
        "name = \"raw\"\nversion = \"0.1.0\"\nabi = \"1.0\"\nruntimes = [\"upper\"]\n[files.{}]\n\
         path = \"libx.so\"\n",
        target()
    );
    fs::write(&file, text).expect("the file cannot be written");
    fs::copy(built("libraw.so"), &library).expect("the file cannot be copied");
    let checked = Checked::file(&file).expect("it is a plugin, and ours");
    let was = fs::read(&library).expect("the file cannot be read");
    fs::write(&library, "another one").expect("the file cannot be written");
    for copy in ["one", "two"] {
        let copy = place.path().join(copy);
        fs::create_dir(&copy).expect("the folder cannot be made");
        checked.write_into(&copy).expect("the plugin cannot be copied");
        assert_eq!(fs::read(copy.join("libx.so")).expect("the file cannot be read"), was);
    }
}

#[tokio::test]
async fn events_of_every_kind_reach_whom_they_are_for() {
    let (logged, copy) = (Arc::new(Mutex::new(Vec::new())), Copy::of("raw"));
    let log = {
        let logged = Arc::clone(&logged);
        move |line: LogLine<'_>| {
            let line = format!("{} {}: {}", line.level, line.target, line.message);
            logged.lock().expect("no holder of the lock panics").push(line);
        }
    };
    let surroundings = Surroundings { log: Some(Arc::new(log)), ..Surroundings::default() };
    let plugin = Plugin::load(&copy.checked(), surroundings, &json("{}")).expect("a good plugin");
    let upper = plugin.runtime("upper", &json("{}")).expect("the plugin has no such runtime");
    let (_, events) = run(&upper, "kinds").await;
    let line = |line: &str| RunEvent::Progress(line.into());
    let used = RunEvent::ToolUsed(ToolUse::new("grep", &BTreeMap::from([("pattern", "x")])));
    let rest = ["grep has failed", "nothing found", "acme: delta"].map(line);
    assert_eq!(events[1..], [&[line("here we go"), used], &rest[..]].concat());
    let logged = logged.lock().expect("no holder of the lock panics");
    let [unreadable, vendor] = &logged[..] else { panic!("{logged:?}") };
    assert!(
        unreadable.starts_with("2 events: an event of kind 4 cannot be read: usage: "),
        "{unreadable}"
    );
    assert_eq!(vendor, r#"5 vendor: {"v":1,"source":"acme","event":{"type":"delta","n":1}}"#);
}

#[tokio::test]
async fn a_merge_streams_and_may_answer_early() {
    let plugin = Copy::of("raw").load().expect("it is a good plugin");
    let merge = plugin.merge("longest", &json("{}")).expect("the plugin has no such merge");
    let host = || RunHost::new(Listener::default());
    let input = |key: &str, text: &str| MergeInput {
        key: key.into(),
        status: RunStatus::Completed,
        value: MergeValue::Text(text.into()),
    };
    let mut job = merge.begin(&json("null"), host()).expect("it likes null");
    assert_eq!(job.push(1, input("b", "long enough")), Ok(None));
    assert_eq!(job.push(0, input("a", "short")), Ok(None));
    assert_eq!(job.finish().await, Ok(json("\"long enough\"")));

    let mut job = merge.begin(&json("\"early\""), host()).expect("it likes that");
    assert_eq!(job.push(0, input("a", "first")), Ok(Some(json("\"first\""))));
    let refused = merge.begin(&json("\"refuse\""), host()).err().expect("it does not like that");
    assert_eq!(refused.to_string(), "merge `longest`: no such parameter");
}

#[track_caller]
fn tells(error: &PluginError, path: &Path, expected: &[&str]) {
    let text = error.to_string();
    for word in expected.iter().copied().chain([path.to_str().expect("a plain name")]) {
        assert!(text.contains(word), "`{word}` is not in:\n{text}");
    }
    assert!(error.hint().is_some(), "nothing to do about: {text}");
    assert!(text.len() < 1500, "no user reads {} characters:\n{text}", text.len());
}

#[test]
fn what_does_not_fit_is_named_with_its_versions() {
    let check = |library: &str, expected: &[&str]| {
        let copy = Copy::of(library);
        let error = copy.load().expect_err(library);
        tells(&error, &copy.path, expected);
        error
    };
    let error = check(
        "other_layout",
        &[
            "was built for 1.0 of the plugin interface, this is 1.0",
            "\n  the plugin: crate: expected offshoot-plugin-abi, found offshoot-plugin-host",
        ],
    );
    assert!(error.to_string().lines().count() <= 4, "{error}");
    assert!(error.details().expect("all of it").len() > 1000);
    assert!(error.hint().expect("it helps").contains("rebuild it with SDK 1.x"));
    let error =
        check("other_major", &["is for version 2.3 of the plugin interface, this is version 1.0"]);
    assert_eq!(error.hint().as_deref(), Some("rebuild it with SDK 1.x"));
    check("no_plugin", &["is no plugin: it does not export what a plugin exports"]);
    let maps = fs::read_to_string("/proc/self/maps").expect("the file cannot be read");
    let name = "memfd:libno_plugin.so";
    assert!(maps.contains(name), "code of it has run, so it stays: {maps}");
    check("panic_aborts", &["was built with panic = \"abort\""]);
}

#[tokio::test]
async fn what_ends_a_process_ends_only_that_of_the_trial() {
    let copy = Copy::of("aborts");
    let error = copy.try_out(&Extent::default()).await.expect_err("it aborts");
    tells(&error, &copy.path, &["SIGABRT", "it said: something is wrong in here"]);
}

#[tokio::test]
async fn a_trial_says_what_loading_would() {
    let good = Copy::of("raw");
    let whole = Extent {
        config: Some(json("{}")),
        runtimes: vec![("upper".to_owned(), json("{}"))],
        merges: vec![("longest".to_owned(), json("{}"))],
    };
    good.try_out(&whole).await.expect("nothing is wrong with it");
    let refused = Extent { config: Some(json("{\"x\":\"refuse\"}")), ..whole };
    let error = good.try_out(&refused).await.expect_err("it does not want to");
    assert!(
        error.to_string().ends_with("refused to begin: it does not like its settings"),
        "{error}"
    );
    for (library, expected) in [
        ("other_layout", "the plugin interface, this is 1.0"),
        ("other_major", "version 2.3"),
        ("no_plugin", "is no plugin"),
        ("panic_aborts", "panic = \"abort\""),
    ] {
        let copy = Copy::of(library);
        let error = copy.try_out(&Extent::default()).await.expect_err(library);
        tells(&error, &copy.path, &[expected]);
    }
}

#[tokio::test]
async fn a_library_may_be_replaced_by_rename_while_it_is_loaded() {
    let copy = Copy::of("raw");
    let plugin = copy.load().expect("it is a good plugin");
    let runtime = plugin.runtime("upper", &json("{}")).expect("the plugin has no such runtime");
    let new = copy.path.with_extension("new");
    fs::copy(built("libno_plugin.so"), &new).expect("the file cannot be copied");
    fs::rename(&new, &copy.path).expect("the file cannot be renamed");
    let (finished, _) = run(&runtime, "still here").await;
    assert_eq!(finished.output, Output::Text("STILL HERE".into()));
    let error = copy.load().expect_err("it is another one now");
    tells(&error, &copy.path, &["has changed since it was loaded"]);
}

#[tokio::test]
async fn a_write_into_a_loaded_library_changes_nothing_that_runs() {
    let copy = Copy::of("raw");
    let plugin = copy.load().expect("it is a good plugin");
    let runtime = plugin.runtime("upper", &json("{}")).expect("the plugin has no such runtime");
    // Were it mapped from this file, this would end the process.
    fs::write(&copy.path, "nothing").expect("the file cannot be written");
    let (finished, _) = run(&runtime, "still here").await;
    assert_eq!(finished.output, Output::Text("STILL HERE".into()));

    // What was checked is what is opened, whatever the file has become.
    let copy = Copy::of("raw");
    let checked_before = copy.checked();
    fs::write(&copy.path, "nothing").expect("the file cannot be written");
    let plugin = Plugin::load(&checked_before, Surroundings::default(), &json("{}"));
    let plugin = plugin.expect("it was a good plugin when it was read");
    let runtime = plugin.runtime("upper", &json("{}")).expect("the plugin has no such runtime");
    let (finished, _) = run(&runtime, "what was read").await;
    assert_eq!(finished.output, Output::Text("WHAT WAS READ".into()));
}

#[test]
fn a_library_of_another_machine_is_not_opened() {
    let copy = Copy::of("raw");
    let mut bytes = fs::read(&copy.path).expect("the file cannot be read");
    bytes[18] = if cfg!(target_arch = "aarch64") { 62 } else { 183 };
    fs::write(&copy.path, bytes).expect("the file cannot be written");
    let error = Checked::file(&copy.path).expect_err("it is for another machine");
    tells(&error, &copy.path, &["(64 bits), this machine is"]);
}
