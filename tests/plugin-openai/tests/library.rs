//! The library, loaded by the real host.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use offshoot_fake_model_api::{Condition, FakeModelApi, Reply, Rule, Script};
use offshoot_plugin_host::{Checked, Plugin, Surroundings, shutdown_all};
use offshoot_plugin_sdk::model::{
    AgentId, Grant, Refusal, RefusalCode, RootId, RunId, SessionKey, SpawnRequest,
};
use offshoot_plugin_sdk::{
    BoxFuture, FutureExt, Host, Input, JsonText, Launch, Output, OutputFormat, RunContext,
    RunEvent, RunHost, Runtime, StopHandle, WaitAnswer, WaitFor, check_contract,
};
use serde_json::json;
use uuid::Uuid;

/// The library that cargo has built for this test, in a folder that nobody else can write.
fn library() -> (tempfile::TempDir, PathBuf) {
    let test = std::env::current_exe().expect("a test has a file");
    let built = test.with_file_name("liboffshoot_plugin_openai.so");
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("libopenai.so");
    fs::copy(built, &path).expect("cargo builds the library before its tests");
    (folder, path)
}

fn launch(task: &str) -> Launch {
    let run = RunId::from_uuid(Uuid::nil());
    Launch {
        continues: false,
        run,
        root: RootId::new(run),
        key: SessionKey::parse("agent:main:subagent:x").expect("a key"),
        agent: AgentId::main(),
        depth: 1,
        task: task.into(),
        context: Vec::new(),
        context_manifest: None,
        input: Input::Prompt,
        command: None,
        ok_exit: Arc::from([]),
        output: OutputFormat::Text,
        working_folder: Arc::new("/".into()),
        run_folder: "/nonexistent".into(),
        spool_folder: Arc::new("/nonexistent".into()),
        model: None,
        thinking: None,
        system_prompt: None,
        grant: Arc::new(Grant { max_depth: 3, ..Grant::unbounded() }),
        pass: None,
    }
}

#[derive(Clone, Default)]
struct Listener(Arc<Mutex<Vec<String>>>);

impl Host for Listener {
    fn hear(&self, _event: RunEvent) {}

    fn spawn(&self, request: SpawnRequest) -> BoxFuture<'static, Result<RunId, Refusal>> {
        self.0.lock().expect("nobody panics").push(request.task.to_string());
        let refusal = Refusal::new(RefusalCode::DepthLimit, "no deeper");
        std::future::ready(Err(refusal)).boxed()
    }

    fn wait(&self, _wait: WaitFor) -> BoxFuture<'static, Result<WaitAnswer, Refusal>> {
        std::future::ready(Ok(WaitAnswer::default())).boxed()
    }
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
        Rule::when(Condition::Result("depth_limit".into()), Reply::text("refused")),
        Rule::always(Reply::text("Grüße")),
    ]))
    .expect("a free port");
    let (_folder, path) = library();
    let checked = Checked::file(&path).expect("it is a library, and ours");
    let json = |value: serde_json::Value| JsonText::of(&value).expect("plain data");
    let plugin = Plugin::load(&checked, Surroundings::default(), &json(json!({})))
        .expect("it is a good plugin");

    let refused = plugin.runtime("openai", &json(json!({"keyVariable": "OFFSHOOT_TEST_NO_SUCH"})));
    let message = refused.expect_err("there is no key").to_string();
    assert!(
        message.contains("the variable OFFSHOOT_TEST_NO_SUCH, which holds the key, is not set"),
        "{message}"
    );

    let settings = json(json!({"baseUrl": format!("{}/v1", api.url()), "model": "m"}));
    let runtime = plugin.runtime("openai", &settings).expect("it has one");
    let broken = check_contract(&runtime, || launch("answer"), || launch("hang")).await;
    assert_eq!(broken, []);

    let listener = Listener::default();
    let cx = RunContext::new(RunHost::new(listener.clone()), StopHandle::new().1);
    let finished = runtime.start(launch("spawn"), cx).await;
    assert_eq!(finished.output, Output::Text("refused".into()));
    assert_eq!(*listener.0.lock().expect("nobody panics"), ["child"]);
    assert_eq!(finished.usage.expect("it is told").total().known(), Some(30));
    assert!(shutdown_all(Duration::from_secs(5)).await.is_empty());
}
