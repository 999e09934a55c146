//! What was published and what is, crossed: hosts and plugins of interface 1.0 as it was, of a later 1.1, and of today.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use offshoot_model::RunStatus;
use offshoot_plugin_host::{Checked, Plugin, Surroundings};
use offshoot_plugin_tests::{Listener, folder, json, launch, library, run};
use offshoot_runtime::{
    Merge, MergeInput, MergeValue, Output, RunEvent, RunHost, Runtime, check_contract,
};
use offshoot_test_support::{release_build, target_folder};

/// What one version has: a program that loads plugins, and a plugin.
struct Version {
    name: &'static str,
    host: PathBuf,
    plugin: PathBuf,
}

impl Version {
    /// Builds it from its sources and takes what came of it into this folder.
    fn build(name: &'static str, sources: &Path, folder: &Path) -> Self {
        let built = release_build(sources, &["build"], &[]);
        let take = |file: &str| {
            let taken = folder.join(format!("{name}-{file}"));
            fs::copy(built.join(file), &taken).expect("the file cannot be copied");
            taken
        };
        Self { name, host: take("frozen-host"), plugin: take("libfrozen_plugin.so") }
    }
}

/// The interface as it may become: another function behind the last of 1.0.
fn next(frozen: &Path) -> PathBuf {
    let next = target_folder().join("interface-1.1");
    for path in files(frozen) {
        let to = next.join(path.strip_prefix(frozen).expect("it lies there"));
        fs::create_dir_all(to.parent().expect("a file has a folder"))
            .expect("the folder cannot be made");
        let text = fs::read_to_string(&path).expect("the file cannot be read");
        let text = match path.strip_prefix(frozen).expect("it lies there").to_str() {
            Some("plugin-abi/Cargo.toml" | "Cargo.lock") => changed(
                &text,
                "name = \"offshoot-plugin-abi\"\nversion = \"1.0.0\"",
                "name = \"offshoot-plugin-abi\"\nversion = \"1.1.0\"",
            ),
            Some("plugin-abi/src/plugin.rs") => changed(
                &text,
                "pub shutdown: extern \"C\" fn(u64) -> Later,\n",
                "pub shutdown: extern \"C\" fn(u64) -> Later,\n\n    /// What 1.1 has more.\n    \
                 #[sabi(missing_field(option))]\n    pub more: extern \"C\" fn(u32) -> u32,\n",
            ),
            Some("plugin/src/lib.rs") => {
                let text = changed(&text, "merge, shutdown }", "merge, shutdown, more }");
                text + "\nextern \"C\" fn more(number: u32) -> u32 {\n    number\n}\n"
            }
            _ => text,
        };
        // What is as it was is left alone, or it would be built again.
        if fs::read_to_string(&to).ok().as_ref() != Some(&text) {
            fs::write(&to, text).expect("the file cannot be written");
        }
    }
    next
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .expect("the folder cannot be read")
        .map(|entry| entry.expect("it is missing"));
    let files = entries.flat_map(|entry| match entry.path() {
        path if path.is_dir() => files(&path),
        path => vec![path],
    });
    files.collect()
}

#[track_caller]
fn changed(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from} is not there any more");
    text.replace(from, to)
}

#[tokio::test]
async fn every_version_of_1_fits_every_other() {
    let (_folder, place) = folder();
    let frozen = Path::new(env!("CARGO_MANIFEST_DIR")).join("frozen-1.0");
    let versions =
        [Version::build("1.0", &frozen, &place), Version::build("1.1", &next(&frozen), &place)];
    let today = library("echo", &place);

    for version in &versions {
        loads(version, &place).await;
        for plugin in &versions {
            hosts(version, plugin.name, &plugin.plugin, "upper", "HELLO");
        }
        hosts(version, "today", &today, "echo", "hello");
    }
}

/// Today's host takes the plugin of a version.
async fn loads(version: &Version, place: &Path) {
    let checked = Checked::file(&version.plugin).expect("the library was refused");
    let plugin = Plugin::load(&checked, Surroundings::default(), &json("{}")).expect(version.name);
    assert_eq!(plugin.abi().to_string(), version.name);
    let upper = plugin.runtime("upper", &json("{}")).expect("the plugin has no such runtime");
    let broken = check_contract(
        &upper as &dyn Runtime,
        || launch(place, "hello", &[]),
        || launch(place, "wait", &[]),
    );
    assert_eq!(broken.await, [], "{}", version.name);
    let (finished, events) = run(&upper, launch(place, "hello", &[])).await;
    assert_eq!(finished.output, Output::Text("HELLO".into()));
    assert_eq!(events, [RunEvent::Started(None), RunEvent::Progress("going".into())]);

    let join = plugin.merge("join", &json("{}")).expect("the plugin has no such merge");
    let host = RunHost::new(Listener::default());
    let mut job = join.begin(&json("null"), host).expect("the merge cannot begin");
    for (index, text) in [(1, "b"), (0, "a")] {
        let value = MergeValue::Text(text.into());
        let input = MergeInput { key: text.into(), status: RunStatus::Completed, value };
        assert_eq!(job.push(index, input), Ok(None));
    }
    assert_eq!(job.finish().await, Ok(json(r#"["a","b"]"#)));
}

/// The host of a version takes a plugin.
fn hosts(version: &Version, name: &str, plugin: &Path, runtime: &str, answer: &str) {
    #[expect(clippy::disallowed_methods, reason = "the host of another version is no agent")]
    let output = Command::new(&version.host).arg(plugin).arg(runtime).output();
    let output = output.expect("the program cannot be started");
    let said = String::from_utf8_lossy(&output.stdout);
    let which = format!("host {}, plugin {name}", version.name);
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{which}: {said}{why}");
    let lines: Vec<&str> = said.lines().collect();
    let count = |found: &dyn Fn(&str) -> bool| lines.iter().filter(|line| found(line)).count();
    assert!(lines[0].starts_with("manifest {"), "{which}: {said}");
    assert_eq!(
        count(&|line| line == r#"event 5 {"v":1,"status":"started"}"#),
        2,
        "{which}: {said}"
    );
    let hello =
        |line: &str| line.starts_with("hello: {") && line.ends_with(&format!("}} {answer}"));
    assert_eq!(count(&hello), 1, "{which}: {said}");
    let cancelled = r#""kind":"cancelled""#;
    let waited = |line: &str| line.starts_with("wait: {") && line.contains(cancelled);
    assert_eq!(count(&waited), 1, "{which}: {said}");
    assert_eq!(count(&|line| line == "unknown: 5"), 2, "{which}: {said}");
    assert!(
        said.trim_end().lines().last().is_some_and(|line| line.starts_with("shutdown {\"v\":1"))
    );
}
