//! A panic at each entry is an answer, and the plugin goes on.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};

use common::{Plain, Recorder, json, launch, soon};
use offshoot_plugin_sdk::abi::abi_stable::std_types::RResult;
use offshoot_plugin_sdk::abi::wire::merge;
use offshoot_plugin_sdk::abi::{AbiError, MergeJobRef};
use offshoot_plugin_sdk::model::RunStatus;
use offshoot_plugin_sdk::{
    Abilities, BoxFuture, Error, Finished, FutureExt, JsonText, Launch, MergeFn, MergeInput,
    MergeSetup, Plugin, RunContext, Runtime, export, json_of,
};

/// Panics where its task says.
struct Nervous;

impl Drop for Nervous {
    fn drop(&mut self) {
        panic!("in drop");
    }
}

impl Runtime for Nervous {
    fn name(&self) -> &str {
        "nervous"
    }

    fn abilities(&self) -> Abilities {
        Abilities::of_a_command()
    }

    fn start(&self, launch: Launch, _cx: RunContext) -> BoxFuture<'static, Finished> {
        assert_ne!(&*launch.task, "start", "in start");
        async move {
            tokio::task::yield_now().await;
            match &*launch.task {
                "run" => panic!("in the run"),
                "task" => {
                    #[expect(clippy::disallowed_methods, reason = "what a careless plugin does")]
                    let inner = tokio::spawn(async { panic!("in a task of its own") });
                    Finished::text(inner.await.expect_err("it panicked").to_string())
                }
                _ => Finished::text("calm"),
            }
        }
        .boxed()
    }
}

/// Panics where its parameter says.
struct NervousMerge(String);

impl Drop for NervousMerge {
    fn drop(&mut self) {
        assert_ne!(self.0, "drop", "in drop");
    }
}

impl MergeFn for NervousMerge {
    fn begin(setup: MergeSetup) -> Result<Self, Error> {
        let place: String = setup.params.parse()?;
        assert_ne!(place, "begin", "in begin");
        Ok(Self(place))
    }

    fn push(&mut self, _index: u32, _result: MergeInput) -> Result<Option<JsonText>, Error> {
        assert_ne!(self.0, "push", "in push");
        Ok(None)
    }

    async fn finish(self) -> Result<JsonText, Error> {
        assert_ne!(self.0, "finish", "in finish");
        json_of(&"calm")
    }
}

static CALM: AtomicBool = AtomicBool::new(false);

fn declaration() -> Plugin {
    assert!(CALM.load(Ordering::SeqCst), "in the declaration");
    Plugin::new("panics")
        .runtime("nervous", "", Abilities::of_a_command(), |_| Ok(Nervous))
        .runtime("stillborn", "", Abilities::of_a_command(), |setup| -> Result<Nervous, Error> {
            panic!("in the maker: {}", setup.config.as_json())
        })
        .merge::<NervousMerge>("nervous", "")
}

#[track_caller]
fn panicked(error: Option<AbiError>, place: &str) {
    let error = error.expect(place);
    assert_eq!(error.code, AbiError::PANICKED, "{error}");
    assert!(error.message.contains(place), "{error}");
    assert!(error.message.contains(" at crates/plugin-sdk/tests/panics.rs:"), "{error}");
    assert!(error.detail_json.contains(r#""place":"crates/plugin-sdk/tests/panics.rs:"#));
}

#[tokio::test]
async fn a_panic_at_each_entry_is_an_answer() {
    let plugin = export::root_module(declaration);
    let host = Plain::default();
    assert_eq!(plugin.describe()(), "", "there is no other way to say that it has no manifest");
    panicked(plugin.init()(host.as_ref(), "".into()).err().into_option(), "in the declaration");
    panicked(
        plugin.runtime()("nervous".into(), "".into()).err().into_option(),
        "in the declaration",
    );
    panicked(plugin.merge()("nervous".into(), "".into()).err().into_option(), "in the declaration");
    panicked(soon(plugin.shutdown()(0)).await.err().into_option(), "in the declaration");

    CALM.store(true, Ordering::SeqCst);
    assert!(plugin.describe()().contains("nervous"));
    plugin.init()(host.as_ref(), "".into()).into_result().expect("it has calmed down");
    let stillborn = plugin.runtime()("stillborn".into(), r#"{"a":1}"#.into());
    panicked(stillborn.err().into_option(), r#"in the maker: {"a":1}"#);

    let nervous = plugin.runtime()("nervous".into(), "".into()).into_result().expect("it is made");
    for (task, place) in [("start", "in start"), ("run", "in the run")] {
        let run = nervous.start(json(launch(task)).as_rstr(), Recorder::default().as_ref());
        for _ in 0..2 {
            panicked(soon(run.outcome()).await.err().into_option(), place);
        }
    }
    for task in ["task", "calm"] {
        let run = nervous.start(json(launch(task)).as_rstr(), Recorder::default().as_ref());
        assert!(matches!(soon(run.outcome()).await, RResult::ROk(_)), "{task}");
    }
    // Its drop panics, and no caller notices.
    drop(nervous);

    let merge = plugin.merge()("nervous".into(), "".into()).into_result().expect("it is made");
    let begin = |place: &str| {
        merge
            .begin(format!("{place:?}").as_str().into(), Recorder::default().as_ref())
            .into_result()
    };
    let meta = merge::Meta { key: "k".into(), status: RunStatus::Completed, file: None };
    let meta = merge::encode(meta).expect("UTF-8");
    let push = |job: &mut MergeJobRef| {
        job.push(0, meta.as_str().into(), "1".into()).into_result().map(drop)
    };
    panicked(begin("begin").err(), "in begin");
    let mut job = begin("push").expect("it begins");
    panicked(push(&mut job).err(), "in push");
    assert_eq!(
        push(&mut job).expect_err("its state cannot be trusted").message,
        "this merge is over"
    );
    let mut job = begin("finish").expect("it begins");
    push(&mut job).expect("it takes");
    panicked(soon(job.finish()).await.err().into_option(), "in finish");
    drop(begin("drop").expect("it begins"));
    let mut job = begin("nowhere").expect("it begins");
    assert_eq!(soon(job.finish()).await.into_result().expect("calm"), r#""calm""#);
    let log = host.0.lock().expect("one at a time").join("\n");
    for place in ["in the run", "in a task of its own", "in push"] {
        let told = log.lines().any(|line| line.contains(place));
        assert!(told, "{place} in {log}");
    }
    assert!(log.contains("1 panic: in the run at crates/plugin-sdk/tests/panics.rs:"), "{log}");
    soon(plugin.shutdown()(1000)).await.into_result().expect("it ends");
}
