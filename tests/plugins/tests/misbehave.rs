//! What a plugin should not do, and what becomes of it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{Reason, RunStatus};
use offshoot_plugin_host::{Plugin, PluginRuntime, Surroundings, shutdown_all};
use offshoot_plugin_tests::{Listener, folder, json, launch, load, run, serve};
use offshoot_process::{Options, Processes};
use offshoot_runtime::{
    Merge, MergeInput, MergeValue, Output, RunContext, RunEvent, RunHost, Runtime, Stop, StopHandle,
};

async fn stopped(runtime: &PluginRuntime, task: &str) -> Reason {
    let (_folder, place) = folder();
    let (handle, stop) = StopHandle::new();
    let cx = RunContext::new(RunHost::new(Listener::default()), stop);
    let run = runtime.start(launch(&place, task, &[]), cx);
    handle.stop(Stop::Firm);
    run.await.reason
}

#[tokio::test]
async fn nothing_of_it_reaches_the_tree() {
    let (_folder, place) = folder();
    let surroundings = || Surroundings {
        processes: Some(Processes::start(Options::default()).expect("processes cannot be held")),
        ..Surroundings::default()
    };
    for plugin in [
        load("misbehave", &place, surroundings()),
        serve("misbehave", "run", &place, surroundings()),
        serve("misbehave", "plugin", &place, surroundings()),
    ] {
        nothing_reaches_the_tree(&plugin, &place).await;
    }
    assert!(shutdown_all(Duration::from_secs(2)).await.is_empty());
}

async fn nothing_reaches_the_tree(plugin: &Arc<Plugin>, place: &Path) {
    let error = plugin.runtime("stillborn", &json("{}")).expect_err("it panics");
    assert!(error.to_string().contains("it panicked: stillborn"), "{error}");
    let runtime = plugin.runtime("misbehave", &json("{}")).expect("the plugin has no such runtime");
    let run = async |task: &str| run(&runtime, launch(place, task, &[])).await;

    for task in ["panic in start", "panic in run"] {
        let (finished, _) = run(task).await;
        let Reason::PluginPanic { message } = &finished.reason else {
            panic!("{task}: {}", finished.reason)
        };
        assert!(message.contains("as it was told"), "{message}");
        assert!(message.contains("tests/plugin-misbehave/src/lib.rs:"), "{message}");
    }
    assert_eq!(run("panic in task").await.0.reason.status(), RunStatus::Completed);

    let (_, events) = run("flood 10000").await;
    assert_eq!(events.len(), 10_001);
    assert_eq!(events[10_000], RunEvent::Progress("9999".into()));
    for task in ["twice", "silent"] {
        let (_, events) = run(task).await;
        let starts = events.iter().filter(|event| matches!(event, RunEvent::Started(_))).count();
        assert!(starts <= 1, "{task}: {events:?}");
    }
    for task in ["interrupted", "client gone", "deadline", "timeout", "idle", "pieces"] {
        let (finished, _) = run(task).await;
        let Reason::RuntimeError { message, retryable: false } = &finished.reason else {
            panic!("{task}: {}", finished.reason)
        };
        assert!(message.contains("what only the supervisor can know"), "{message}");
    }
    let (finished, _) = run("no file").await;
    assert!(matches!(finished.output, Output::File { .. }), "the store finds out");

    assert_eq!(stopped(&runtime, "deaf").await.status(), RunStatus::Cancelled);

    let merge = plugin.merge("misbehave", &json("{}")).expect("the plugin has no such merge");
    let begin = |place: &str| {
        let host = RunHost::new(Listener::default());
        merge.begin(&json(&format!("{place:?}")), host)
    };
    let input = || MergeInput {
        key: "k".into(),
        status: RunStatus::Completed,
        value: MergeValue::Text("x".into()),
    };
    assert!(begin("begin").err().expect("it panics").panicked);
    assert!(
        begin("push")
            .expect("the merge did not fail")
            .push(0, input())
            .expect_err("it panics")
            .panicked
    );
    let mut job = begin("finish").expect("the merge did not fail");
    job.push(0, input()).expect("not here");
    assert!(job.finish().await.expect_err("it panics").panicked);

    let late = Listener::default();
    let (_handle, stop) = StopHandle::new();
    let cx = RunContext::new(RunHost::new(late.clone()), stop);
    runtime.start(launch(place, "late", &[]), cx).await;
    let heard = late.heard().len();
    plugin.shutdown(Duration::from_secs(2)).await.expect("the plugin did not end");
    assert_eq!(late.heard().len(), heard, "nothing after its end");
}
