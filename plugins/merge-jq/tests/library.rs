//! The library, loaded by the real host.

use std::fs;

use offshoot_plugin_host::{Checked, Plugin, Surroundings};
use offshoot_plugin_sdk::model::{Refusal, RefusalCode, RunId, RunStatus, SpawnRequest};
use offshoot_plugin_sdk::{
    BoxFuture, FutureExt, Host, JsonText, Merge, MergeInput, MergeValue, RunEvent, RunHost,
    WaitAnswer, WaitFor,
};

struct Nobody;

impl Host for Nobody {
    fn hear(&self, _event: RunEvent) {}

    fn spawn(&self, _request: SpawnRequest) -> BoxFuture<'static, Result<RunId, Refusal>> {
        let refusal = Refusal::new(RefusalCode::RecursionDisabled, "no children in this test");
        std::future::ready(Err(refusal)).boxed()
    }

    fn wait(&self, _wait: WaitFor) -> BoxFuture<'static, Result<WaitAnswer, Refusal>> {
        std::future::ready(Ok(WaitAnswer::default())).boxed()
    }
}

fn json(text: &str) -> JsonText {
    JsonText::parse(text.to_owned()).expect("it is JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_crosses_and_its_answer_comes_back() {
    let test = std::env::current_exe().expect("a test has a file");
    let built = test.with_file_name("liboffshoot_plugin_merge_jq.so");
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("libmerge_jq.so");
    fs::copy(built, &path).expect("cargo builds the library before its tests");
    let checked = Checked::file(&path).expect("it is a library, and ours");
    let plugin =
        Plugin::load(&checked, Surroundings::default(), &json("{}")).expect("a good plugin");
    let merge = plugin.merge("merge-jq", &json("{}")).expect("it has one");
    let host = || RunHost::new(Nobody);
    let input = |value| MergeInput { key: "k".into(), status: RunStatus::Completed, value };

    let mut job =
        merge.begin(&json("\"map(.value | tonumber? // .n) | add\""), host()).expect("a program");
    assert_eq!(job.push(1, input(MergeValue::Json(json("{\"n\": 4}")))), Ok(None));
    assert_eq!(job.push(0, input(MergeValue::Text("38".into()))), Ok(None));
    assert_eq!(job.finish().await, Ok(json("42")));

    let refused = merge.begin(&json("\"map(\""), host()).err().expect("no program").to_string();
    assert!(refused.contains("line 1, column 5"), "{refused}");

    let mut endless = merge.begin(&json("\"def f: f; f\""), host()).expect("a program");
    let answer = endless.finish();
    drop((answer, endless));
}
