//! Hosts and plugins that were built otherwise than each other: profile, features, and what a panic does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output as Ran, Stdio};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use offshoot_model::{
    AgentId, BudgetGrant, Cost, Ending, Envelope, Grant, MicroUsd, Reason, Refusal, SessionKey,
    TokenCount, Usage,
};
use offshoot_plugin_host::{Checked, Plugin, PluginError, Surroundings};
use offshoot_plugin_tests::{Listener, folder, json, launch, library, run};
use offshoot_runtime::{
    Finished, Launch, Merge, MergeInput, MergeValue, Output, RunContext, RunEvent, RunHost,
    Runtime, StopHandle, WaitAnswer, WaitFor, check_contract,
};
use offshoot_test_support::{release_build, target_folder};

/// In one test, because all of it is built into one folder, and what does not differ only once.
#[tokio::test]
async fn how_each_side_was_built_does_not_matter() {
    let (_folder, place) = folder();
    let (echo, misbehave) = (library("echo", &place), library("misbehave", &place));
    let host = release_host(&place);
    let stranger = Stranger::copied();
    let release = stranger.built(&place, "release", &["build"], &[]);
    let other = stranger.built(&place, "other", &["build", "--features", "other"], &[]);

    // Debug plugins in a host in release, and of release in debug; features of the whole workspace here, its own there.
    hosts(&host, &echo, "echo", "hello", "completed\nhello\n");
    let panicked = outcome(&host, &misbehave, "misbehave", "panic in run").stdout;
    let panicked = String::from_utf8_lossy(&panicked);
    assert!(panicked.contains("as it was told") && panicked.contains("lib.rs:"), "{panicked}");
    // As it is read by default, and as it is read where every digit is kept.
    for (plugin, large) in [(&release, "1.2345678901234568e+29"), (&other, LARGE)] {
        hosts(&host, plugin, "stranger", "hello", "completed\nhello\n");
        let plugin = load(plugin).expect("the configuration was refused");
        works(&plugin, &place).await;
        counts(&plugin, &place).await;
        merges(&plugin, large).await;
    }

    // By its profile everything aborts; by an argument only the last crate, which decides for all of it.
    let profile = [("CARGO_PROFILE_RELEASE_PANIC", "abort")];
    let last = ["rustc", "--", "-C", "panic=abort"];
    for aborts in [
        stranger.built(&place, "abort", &["build"], &profile),
        stranger.built(&place, "last-aborts", &last, &[]),
    ] {
        let refused = outcome(&host, &aborts, "stranger", "hello");
        let said = String::from_utf8_lossy(&refused.stderr);
        let error = load(&aborts).expect_err("its first panic would end us");
        let hint = "take `panic = \"abort\"` out of its profile and rebuild it";
        assert!(matches!(error, PluginError::PanicAborts { .. }), "{error}");
        assert_eq!(said, format!("error: {error}\nhint: {hint}\n"));
        assert_eq!(refused.status.code(), Some(5));
    }
}

/// The crate of `stranger/`, outside any workspace.
struct Stranger(PathBuf);

impl Stranger {
    fn copied() -> Self {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("stranger");
        let to = target_folder().join("stranger");
        fs::create_dir_all(to.join("src")).expect("the folder cannot be made");
        let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/plugin-sdk");
        let sdk = sdk.canonicalize().expect("the path cannot be resolved");
        for file in ["Cargo.toml", "src/lib.rs"] {
            let text = fs::read_to_string(from.join(file)).expect("the file cannot be read");
            let text = text.replace("{{sdk}}", sdk.to_str().expect("a plain name"));
            // What is as it was is left alone, or it would be built again.
            if fs::read_to_string(to.join(file)).ok().as_ref() != Some(&text) {
                fs::write(to.join(file), text).expect("the file cannot be written");
            }
        }
        // Made anew from the workspace's, whose versions may have changed.
        let _ = fs::remove_file(to.join("Cargo.lock"));
        Self(to)
    }

    fn built(
        &self,
        place: &Path,
        name: &str,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> PathBuf {
        let built = release_build(&self.0, arguments, environment).join("libstranger.so");
        let copy = place.join(format!("lib{name}.so"));
        fs::copy(&built, &copy).expect("the file cannot be copied");
        copy
    }
}

fn release_host(place: &Path) -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let example = ["build", "--package", "offshoot-plugin-host", "--example", "host"];
    let built = release_build(&workspace, &example, &[]).join("examples/host");
    let copy = place.join("host");
    fs::copy(&built, &copy).expect("the file cannot be copied");
    copy
}

fn outcome(host: &Path, plugin: &Path, runtime: &str, task: &str) -> Ran {
    #[expect(clippy::disallowed_methods, reason = "the host of another build is no agent")]
    let mut command = Command::new(host);
    let ran = command.arg(plugin).args([runtime, task]).stdin(Stdio::null()).output();
    ran.expect("it was built")
}

#[track_caller]
fn hosts(host: &Path, plugin: &Path, runtime: &str, task: &str, expected: &str) {
    let ran = outcome(host, plugin, runtime, task);
    let (said, why) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{}: {said}{why}", plugin.display());
    assert_eq!(said, format!("Started(None)\n{expected}"), "{}", plugin.display());
}

fn load(library: &Path) -> Result<Arc<Plugin>, PluginError> {
    let checked = Checked::file(library).expect("the library was refused");
    Plugin::load(&checked, Surroundings::default(), &json("{}"))
}

async fn works(plugin: &Arc<Plugin>, place: &Path) {
    // It is built as it is handed out, so a probe means nothing to it.
    plugin.runtime("stranger", &json(r#"{"v":1,"probe":"panic"}"#)).expect("it takes any settings");
    let runtime = plugin.runtime("stranger", &json("{}")).expect("the plugin has no such runtime");
    let broken =
        check_contract(&runtime, || launch(place, "hello", &[]), || launch(place, "wait", &[]));
    assert_eq!(broken.await, [], "{}", plugin.path().display());
    let (finished, _) = run(&runtime, launch(place, "panic", &[])).await;
    assert!(matches!(finished.reason, Reason::PluginPanic { .. }), "{}", finished.reason);
    let (finished, _) = run(&runtime, launch(place, "exit", &[])).await;
    assert_eq!(finished.reason, Reason::ExitCode { code: 7 });
}

/// Numbers, in both directions: what a plugin's other dependencies turn on in its JSON reader must not change them.
async fn counts(plugin: &Arc<Plugin>, place: &Path) {
    let runtime = plugin.runtime("stranger", &json("{}")).expect("the plugin has no such runtime");
    let usd = Some(MicroUsd::from_micros(250_001));
    let budget = BudgetGrant { tokens: Some(u64::MAX), usd };
    let grant = Grant { budget, run_timeout_seconds: 86_400, ..Grant::unbounded() };
    let launch = Launch { grant: Arc::new(grant), ..launch(place, "numbers", &[]) };
    let (listener, (_handle, stop)) = (Listener::default(), StopHandle::new());
    let host = RunHost::new(listener.clone().waiting(one_child));
    let finished = runtime.start(launch, RunContext::new(host, stop)).await;
    let Finished { output: Output::Text(said), .. } = finished else {
        panic!("{}", finished.reason)
    };
    let (usage, cost) = (counted(), cost());
    let usd = "Some(MicroUsd(250001))";
    assert_eq!(
        *said,
        *format!("86400 {usd} true 18446744073709551615 {:?} {cost:?}", usage.total())
    );
    let input = TokenCount::Known(1 << 60);
    let used = RunEvent::Used {
        usage: Usage { input, ..Usage::default() },
        cost: Cost::known(MicroUsd::from_micros(100_001)),
    };
    assert_eq!(listener.heard(), [RunEvent::Started(None), used]);
}

/// A number that shows how numbers are read.
const LARGE: &str = "123456789012345678901234567890";

async fn merges(plugin: &Arc<Plugin>, large: &str) {
    let sum = plugin.merge("sum", &json("{}")).expect("the plugin has no such merge");
    let mut job =
        sum.begin(&json("0.5"), RunHost::new(Listener::default())).expect("the merge cannot begin");
    let nested = format!("{{\"n\":[{LARGE}]}}");
    for (index, number) in [(0, "1"), (1, "2.25"), (2, &*nested)] {
        let value = MergeValue::Json(json(number));
        let status = offshoot_model::RunStatus::Completed;
        let pushed = job.push(index, MergeInput { key: number.into(), status, value });
        assert_eq!(pushed, Ok(None));
    }
    let expected = json(&format!(r#"[3.75,[0.5,1,2.25,{{"n":[{large}]}}]]"#));
    assert_eq!(job.finish().await, Ok(expected), "{}", plugin.path().display());
}

fn counted() -> Usage {
    Usage { output: TokenCount::Known(9_007_199_254_740_993), ..Usage::default() }
}

fn cost() -> Cost {
    Cost { estimated_usd: MicroUsd::from_micros(1), ..Cost::unknown() }
}

/// Returns what a wait finds: one child, with the largest and smallest numbers.
fn one_child(_wait: WaitFor) -> BoxFuture<'static, Result<WaitAnswer, Refusal>> {
    let run = Launch::bare("").run;
    let key = SessionKey::parse("agent:main:subagent:x").expect("the key is malformed");
    let ending = Ending {
        usage: counted(),
        cost: cost(),
        execution_time_ms: u64::MAX,
        ..Ending::of(Reason::ExitCode { code: -1 })
    };
    let ended = vec![Envelope::of(&ending, key, run, AgentId::main(), 1)];
    Box::pin(async { Ok(WaitAnswer { ended, pending: Vec::new() }) })
}
