//! The library, loaded by the real host.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use offshoot_fake_model_api::{Condition, FakeModelApi, Reply, Rule, Script};
use offshoot_plugin_host::{Checked, Plugin, Surroundings, shutdown_all};
use offshoot_plugin_sdk::model::Grant;
use offshoot_plugin_sdk::{
    JsonText, Launch, Output, RunContext, RunHost, Runtime, StopHandle, check_contract,
};
use offshoot_test_support::Listener;
use serde_json::json;

/// The library that cargo has built for this test, in a folder that no other user can write.
fn library() -> (tempfile::TempDir, PathBuf) {
    let test = std::env::current_exe().expect("a test has a file");
    let built = test.with_file_name("liboffshoot_plugin_openai.so");
    let folder = tempfile::tempdir().expect("no temporary folder can be made");
    let path = folder.path().join("libopenai.so");
    fs::copy(built, &path).expect("cargo builds the library before its tests");
    (folder, path)
}

fn launch(task: &str) -> Launch {
    let grant = Grant { max_depth: 3, ..Grant::unbounded() };
    Launch { grant: Arc::new(grant), ..Launch::bare(task) }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_runtime_passes_the_contract() {
    let api = FakeModelApi::start(Script::new([
        Rule::when(Condition::Prompt("hang".into()), Reply::Hang),
        Rule::when(
            Condition::Prompt("spawn".into()),
            Reply::call("sessions_spawn", json!({"task": "child"})),
        )
        .and(Condition::Step(1)),
        Rule::when(Condition::Result("recursion_disabled".into()), Reply::text("refused")),
        Rule::always(Reply::text("Grüße")),
    ]))
    .expect("a free port");
    let (_folder, path) = library();
    let checked = Checked::file(&path).expect("the library was refused");
    let json =
        |value: serde_json::Value| JsonText::of(&value).expect("plain data does not serialise");
    let plugin = Plugin::load(&checked, Surroundings::default(), &json(json!({})))
        .expect("the plugin was refused");

    let refused = plugin.runtime("openai", &json(json!({"keyVariable": "OFFSHOOT_TEST_NO_SUCH"})));
    let message = refused.expect_err("there is no key").to_string();
    assert!(
        message.contains("the variable OFFSHOOT_TEST_NO_SUCH, which holds the key, is not set"),
        "{message}"
    );

    let settings = json(json!({"baseUrl": format!("{}/v1", api.url()), "model": "m"}));
    let runtime = plugin.runtime("openai", &settings).expect("the plugin has no such runtime");
    let broken = check_contract(&runtime, || launch("answer"), || launch("hang")).await;
    assert_eq!(broken, []);

    let listener = Listener::default();
    let cx = RunContext::new(RunHost::new(listener.clone()), StopHandle::new().1);
    let finished = runtime.start(launch("spawn"), cx).await;
    assert_eq!(finished.output, Output::Text("refused".into()));
    assert_eq!(&*listener.asked()[0].task, "child");
    assert_eq!(finished.usage.expect("no usage was reported").total().known(), Some(30));
    assert!(shutdown_all(Duration::from_secs(5)).await.is_empty());
}
