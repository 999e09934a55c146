//! The conformance tests: what every runtime must pass, whoever wrote it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use offshoot_model::{Refusal, RefusalCode, RunId, RunStatus, SpawnRequest};

use crate::{
    Finished, Host, Launch, RunContext, RunEvent, RunHost, Runtime, Stop, StopHandle, WaitAnswer,
    WaitFor,
};

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which promise.
    pub rule: &'static str,
    /// What happened instead.
    pub found: String,
}

/// Runs a runtime through the contract.
///
/// `answers` must be a launch that completes by itself, `hangs` one that does not end until it is stopped.
/// Returns every promise that was broken.
pub async fn check(
    runtime: &dyn Runtime,
    answers: impl Fn() -> Launch,
    hangs: impl Fn() -> Launch,
) -> Vec<Violation> {
    let mut broken = Vec::new();
    let mut require = |rule, holds: bool, found: &dyn Fn() -> String| {
        if !holds {
            broken.push(Violation { rule, found: found() });
        }
    };

    let (finished, events) = run(runtime, answers(), None).await;
    require(
        "a launch that answers completes",
        finished.reason.status() == RunStatus::Completed,
        &|| finished.reason.to_string(),
    );
    let starts = events.iter().filter(|event| matches!(event, RunEvent::Started(_))).count();
    require("started is told exactly once", starts == 1, &|| format!("{starts} times"));
    require("started comes first", matches!(events.first(), Some(RunEvent::Started(_))), &|| {
        format!("{:?}", events.first())
    });

    for (rule, stop) in [
        ("a soft stop ends a run that hangs", Stop::Soft { grace: Duration::from_millis(200) }),
        ("a firm stop ends a run that hangs", Stop::Firm),
    ] {
        let (finished, _) = run(runtime, hangs(), Some(stop)).await;
        let ended = finished.reason.status();
        require(rule, ended != RunStatus::Completed, &|| format!("it says {ended}"));
    }
    broken
}

/// Runs one launch; the request to stop is made when the run says that it has started.
async fn run(
    runtime: &dyn Runtime,
    launch: Launch,
    stop: Option<Stop>,
) -> (Finished, Vec<RunEvent>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let (handle, signal) = StopHandle::new();
    let listener = Recorder { heard: Arc::clone(&heard), handle, stop };
    let cx = RunContext::new(RunHost::new(listener), signal);
    let future: BoxFuture<'static, Finished> = runtime.start(launch, cx);
    let finished = future.await;
    let events = heard.lock().expect("no listener panics while it records").clone();
    (finished, events)
}

struct Recorder {
    heard: Arc<Mutex<Vec<RunEvent>>>,
    handle: StopHandle,
    stop: Option<Stop>,
}

impl Host for Recorder {
    fn hear(&self, event: RunEvent) {
        if let (RunEvent::Started(_), Some(stop)) = (&event, self.stop) {
            self.handle.stop(stop);
        }
        self.heard.lock().expect("no listener panics while it records").push(event);
    }

    fn spawn(&self, _request: SpawnRequest) -> BoxFuture<'static, Result<RunId, Refusal>> {
        let refusal =
            Refusal::new(RefusalCode::RecursionDisabled, "the contract admits no children");
        Box::pin(async { Err(refusal) })
    }

    fn wait(&self, _wait: WaitFor) -> BoxFuture<'static, Result<WaitAnswer, Refusal>> {
        Box::pin(async { Ok(WaitAnswer::default()) })
    }
}
