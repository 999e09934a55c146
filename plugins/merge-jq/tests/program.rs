//! The program, started by the real host.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use offshoot_plugin_host::{Checked, Plugin, PluginMerge, Surroundings};
use offshoot_plugin_sdk::model::RunStatus;
use offshoot_plugin_sdk::{JsonText, Merge, MergeInput, MergeValue, RunHost};
use offshoot_process::{Options, Processes};
use offshoot_test_support::Listener;

fn json(text: &str) -> JsonText {
    JsonText::parse(text.to_owned()).expect("the text is not JSON")
}

fn host() -> RunHost {
    RunHost::new(Listener::default())
}

fn load(place: &Path) -> Arc<Plugin> {
    let folder = place.join("merge-jq");
    fs::create_dir(&folder).expect("the folder cannot be made");
    let files = [
        (concat!(env!("CARGO_MANIFEST_DIR"), "/plugin.toml"), "plugin.toml"),
        (env!("CARGO_BIN_EXE_merge-jq"), "merge-jq"),
    ];
    for (from, to) in files {
        fs::copy(from, folder.join(to)).expect("the file cannot be copied");
    }
    let checked = Checked::file(&folder.join("plugin.toml")).expect("it is a plugin, and ours");
    let surroundings = Surroundings {
        processes: Some(Processes::start(Options::default()).expect("there are processes")),
        ..Surroundings::default()
    };
    Plugin::load(&checked, surroundings, &json("{}")).expect("a good plugin")
}

/// Merges one result.
async fn merged(merge: &PluginMerge, program: &str) -> Result<JsonText, String> {
    let program = JsonText::of(&program).expect("plain data does not serialise");
    let mut job = merge.begin(&program, host()).map_err(|fault| fault.to_string())?;
    let value = MergeValue::Text("38".into());
    let input = MergeInput { key: "k".into(), status: RunStatus::Completed, value };
    job.push(0, input).map_err(|fault| fault.to_string())?;
    job.finish().await.map_err(|fault| fault.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_crosses_and_its_answer_comes_back() {
    let folder = tempfile::tempdir().expect("no temporary folder can be made");
    let plugin = load(folder.path());
    let merge = plugin.merge("merge-jq", &json("{}")).expect("the plugin has no such merge");
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
    plugin.shutdown(Duration::from_secs(10)).await.expect("the plugin did not end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_takes_all_memory_ends_its_own_process() {
    let folder = tempfile::tempdir().expect("no temporary folder can be made");
    let plugin = load(folder.path());
    let slip = plugin.merge("merge-jq", &json(r#"{"memory":1}"#)).map(drop);
    let slip = slip.expect_err("there is no such setting").to_string();
    assert!(slip.contains("unknown field `memory`"), "{slip}");
    let small = plugin.merge("merge-jq", &json(r#"{"memoryBytes":1000000000}"#));
    let small = small.expect("the value has no data");
    for _ in 0..2 {
        let failed = merged(&small, "\"x\" * 1000000000 | length").await.expect_err("too large");
        assert!(
            failed.contains("the process of the plugin `merge-jq` was ended by signal 6"),
            "{failed}"
        );
        assert!(failed.contains("memory allocation of 1000000000 bytes failed"), "{failed}");
        // It is no other merge's end.
        assert_eq!(merged(&small, "map(.value)").await, Ok(json("[\"38\"]")));
    }
    plugin.shutdown(Duration::from_secs(10)).await.expect("the plugin did not end");
}
