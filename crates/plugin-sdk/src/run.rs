//! Runtimes and their runs, as they cross.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::ready;
use offshoot_plugin_abi::abi_stable::sabi_trait::TD_Opaque;
use offshoot_plugin_abi::abi_stable::std_types::{RResult, RStr, RString};
use offshoot_plugin_abi::async_ffi::FutureExt as _;
use offshoot_plugin_abi::wire::{self, op};
use offshoot_plugin_abi::{
    AbiError, Later, Outcome, OutcomeLater, Run, Run_TO, RunHostRef, RunRef, Runtime as AbiRuntime,
};
use offshoot_runtime::{
    Finished, LetterBox, RunContext, RunHost, Runtime, Stop, StopHandle, Turns,
};
use tokio::sync::SetOnce;
use tokio::task::AbortHandle;

use crate::guard::{self, Guarded};
use crate::loaded::Loaded;
use crate::probe;
use crate::run_host::Link;
use crate::runs::Entry;

/// The grace in seconds, should a run be asked to stop before its launch has been read.
const UNTIL_READ: u64 = 5;

/// A runtime as its host has it.
pub(crate) struct RuntimeObject {
    loaded: &'static Loaded,
    /// None only while it is dropped.
    runtime: Option<Arc<dyn Runtime>>,
}

impl RuntimeObject {
    pub(crate) fn new(loaded: &'static Loaded, runtime: Arc<dyn Runtime>) -> Self {
        Self { loaded, runtime: Some(runtime) }
    }
}

impl AbiRuntime for RuntimeObject {
    fn start(&self, spec_json: RStr<'_>, host: RunHostRef) -> RunRef {
        let outcome = Arc::new(SetOnce::new());
        let (handle, signal) = StopHandle::new();
        let stop = Arc::new(handle);
        let mut object =
            RunObject { outcome: Arc::clone(&outcome), stop: Arc::clone(&stop), running: None };
        let begun = guard::answer(|| {
            let executor = self.loaded.executor.handle()?;
            let entry = self.loaded.runs.enter(Some(Arc::clone(&stop)))?;
            let id = entry.id();

            let grace = Arc::new(AtomicU64::new(UNTIL_READ));
            let (granted, please_stop) = (Arc::clone(&grace), move || {
                stop.stop(Stop::Soft { grace: Duration::from_secs(grace.load(Ordering::Relaxed)) });
            });
            let link = Link::with_stop(host, please_stop);
            let host = RunHost::new(link.clone());
            let (letters, turns) = Turns::new(host.clone());
            let cx = RunContext { host, stop: signal, turns };

            let runtime = Arc::clone(self.runtime.as_ref().expect("it is not being dropped"));
            let spec = spec_json.to_string();
            // Neither reading nor starting is done here, in the host's thread: the one takes a while, and the other is the
            // author's.
            let work = Guarded::new(async move {
                if let Some(finished) = probe::run(&spec, &cx.host) {
                    return Ok(finished);
                }
                let launch = wire::launch::decode(&spec)?;
                drop(spec);
                granted.store(launch.grant.grace_seconds, Ordering::Relaxed);
                Ok(runtime.start(launch, cx).await)
            });
            let end = End { outcome: Arc::clone(&outcome), link, _entry: entry };
            let task = executor.spawn(async move {
                // Declared first, so that it outlives the work wherever that is dropped.
                let end = end;
                let finished = work.await.map_err(AbiError::from).flatten();
                end.tell(finished);
            });
            self.loaded.runs.runs_as(id, task.abort_handle());
            Ok(Running { letters, task: task.abort_handle() })
        });
        match begun {
            Ok(running) => object.running = Some(running),
            Err(error) => {
                // Where its end is known already, by force, it stays as it is.
                let _ = outcome.set(Err(error));
            }
        }
        Run_TO::from_value(object, TD_Opaque)
    }
}

impl Drop for RuntimeObject {
    fn drop(&mut self) {
        guard::drop_quietly(self.runtime.take());
    }
}

/// How a run ended, once it has. Each waiter waits for itself: one that gives up takes nothing with it.
type Known = Arc<SetOnce<Result<Finished, AbiError>>>;

/// A run as its host has it.
struct RunObject {
    outcome: Known,
    stop: Arc<StopHandle>,
    /// None where it could not be started.
    running: Option<Running>,
}

struct Running {
    letters: LetterBox,
    task: AbortHandle,
}

impl Run for RunObject {
    fn outcome(&self) -> OutcomeLater {
        let outcome = Arc::clone(&self.outcome);
        async move {
            match outcome.wait().await {
                Ok(finished) => wire::finished::encode(finished),
                Err(error) => Err(error.clone()),
            }
        }
        .map_into_ffi()
    }

    fn cancel(&self, grace_ms: u64) {
        self.stop.stop(match grace_ms {
            0 => Stop::Firm,
            grace => Stop::Soft { grace: Duration::from_millis(grace) },
        });
    }

    fn call(&self, op: RStr<'_>, args_json: RStr<'_>) -> Later {
        let answer = guard::answer(|| {
            probe::answer(args_json.as_str());
            match (op.as_str(), &self.running) {
                (op::LETTER, Some(running)) => {
                    running.letters.put(wire::turn::decode_letter(args_json.as_str())?);
                    Ok(RString::from(wire::NOTHING))
                }
                (unknown, _) => Err(AbiError::unsupported(unknown)),
            }
        });
        ready(answer.into()).into_ffi()
    }
}

impl Drop for RunObject {
    fn drop(&mut self) {
        // As a firm stop: the work is dropped, and with it what it started.
        if let Some(running) = &self.running {
            running.task.abort();
        }
    }
}

/// The end of a run, however it comes about: first nothing more is told, then the outcome is known, then it counts no
/// longer.
struct End {
    outcome: Known,
    link: Link,
    _entry: Entry,
}

impl End {
    fn tell(self, outcome: Result<Finished, AbiError>) {
        self.link.close();
        // Nobody else tells it before this is dropped.
        let _ = self.outcome.set(outcome);
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.link.close();
        if !self.outcome.initialized() {
            let error = AbiError::new(AbiError::CANCELLED, "it was ended by force");
            let _ = self.outcome.set(Err(error));
        }
    }
}

/// Outcomes cross as results of the interface's own kind.
trait IntoOutcome {
    fn map_into_ffi(self) -> OutcomeLater;
}

impl<F> IntoOutcome for F
where
    F: Future<Output = Result<Outcome, AbiError>> + Send + 'static,
{
    fn map_into_ffi(self) -> OutcomeLater {
        async move { RResult::from(self.await) }.into_ffi()
    }
}
