//! A shutdown ends everything within its time, and nothing begins after it.

mod common;

use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Plain, Recorder, json, launch, soon};
use offshoot_plugin_sdk::abi::wire::{finished, shutdown};
use offshoot_plugin_sdk::abi::{AbiError, RunRef};
use offshoot_plugin_sdk::model::{CancelledBy, Reason};
use offshoot_plugin_sdk::{
    Abilities, BoxFuture, Error, Finished, FutureExt, JsonText, Launch, MergeFn, MergeInput,
    MergeSetup, Plugin, RunContext, Runtime, export,
};

/// Hears a request to stop, or does not.
struct Waits;

/// The number of things that runs hold while they run: a process, in earnest.
static HELD: AtomicUsize = AtomicUsize::new(0);

struct Held;

impl Held {
    fn new() -> Self {
        HELD.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Runtime for Waits {
    fn name(&self) -> &str {
        "waits"
    }

    fn abilities(&self) -> Abilities {
        Abilities::of_a_command()
    }

    fn start(&self, launch: Launch, mut cx: RunContext) -> BoxFuture<'static, Finished> {
        async move {
            let _held = Held::new();
            cx.host.started(None);
            if &*launch.task == "deaf" {
                pending::<()>().await;
            }
            cx.stop.heard().await;
            Finished::of(Reason::Cancelled { by: CancelledBy::Operator })
        }
        .boxed()
    }
}

struct Endless(Held);

impl MergeFn for Endless {
    fn begin(_setup: MergeSetup) -> Result<Self, Error> {
        Ok(Self(Held::new()))
    }

    fn push(&mut self, _index: u32, _result: MergeInput) -> Result<Option<JsonText>, Error> {
        Ok(None)
    }

    async fn finish(self) -> Result<JsonText, Error> {
        let Self(_held) = self;
        pending().await
    }
}

#[tokio::test]
async fn a_shutdown_ends_everything() {
    let plugin = export::root_module(|| {
        Plugin::new("waits")
            .runtime("waits", "", Abilities::of_a_command(), |_| Ok(Waits))
            .merge::<Endless>("endless", "")
    });
    plugin.init()(Plain::default().as_ref(), "".into()).into_result().expect("the first");
    let waits = plugin.runtime()("waits".into(), "".into()).into_result().expect("it is made");
    let start = |task: &str| -> (RunRef, Recorder) {
        let recorder = Recorder::default();
        (waits.start(json(launch(task)).as_rstr(), recorder.as_ref()), recorder)
    };
    let (polite, deaf) = (start("polite").0, start("deaf").0);
    let merge = plugin.merge()("endless".into(), "".into())
        .into_result()
        .expect("the plugin has no such merge");
    let job = merge.begin("".into(), Recorder::default().as_ref()).into_result();
    let merging = job.expect("it begins").finish();

    let answer = soon(plugin.shutdown()(500)).await.into_result().expect("it ends");
    assert_eq!(shutdown::decode(&answer), Ok(1), "the deaf one");
    assert_eq!(HELD.load(Ordering::SeqCst), 0, "nothing is left");

    let polite = soon(polite.outcome()).await.into_result().expect("it heard");
    let polite = finished::decode(polite).expect("what was encoded");
    assert_eq!(polite.reason, Reason::Cancelled { by: CancelledBy::Operator });
    for error in [
        soon(deaf.outcome()).await.err().into_option(),
        soon(merging).await.err().into_option(),
        soon(start("late").0.outcome()).await.err().into_option(),
    ] {
        assert_eq!(error.expect("it was ended").code, AbiError::CANCELLED);
    }
    let late = plugin.runtime()("waits".into(), "".into()).err().into_option();
    assert_eq!(late.expect("nothing begins").code, AbiError::CANCELLED);
    let again = soon(plugin.shutdown()(500)).await.into_result().expect("it has ended");
    assert_eq!(shutdown::decode(&again), Ok(0));
}
