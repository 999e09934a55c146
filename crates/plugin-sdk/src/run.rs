//! Runtimes and their runs, as they cross.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::ready;
use offshoot_plugin_abi::abi_stable::sabi_trait::TD_Opaque;
use offshoot_plugin_abi::abi_stable::std_types::{RResult, RStr, RString};
use offshoot_plugin_abi::async_ffi::FutureExt as _;
use offshoot_plugin_abi::wire::{self, op};
use offshoot_plugin_abi::{
    AbiError, Later, OutcomeLater, Run, Run_TO, RunHostRef, RunRef, Runtime as AbiRuntime,
};
use offshoot_runtime::{
    Finished, LetterBox, RunContext, RunHost, Runtime, Stop, StopHandle, StopSignal, Turns,
};
use tokio::runtime::Handle;
use tokio::sync::SetOnce;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::guard::{self, Guarded};
use crate::loaded::Loaded;
use crate::probe;
use crate::run_host::Link;
use crate::runs::Entry;

/// A runtime as its host has it.
pub(crate) struct RuntimeObject {
    loaded: &'static Loaded,
    executor: Handle,
    /// True if its runs read letters.
    turns: bool,
    /// None only while it is dropped.
    runtime: Option<Arc<dyn Runtime>>,
}

impl RuntimeObject {
    pub(crate) fn new(
        loaded: &'static Loaded,
        executor: Handle,
        runtime: Arc<dyn Runtime>,
    ) -> Self {
        Self { loaded, executor, turns: runtime.abilities().turns, runtime: Some(runtime) }
    }
}

/// The receiver of an outcome. It is called where the run ends, before the run counts as over.
pub(crate) type AtEnd = Box<dyn FnOnce(&Result<Finished, AbiError>) + Send>;

impl RuntimeObject {
    /// Starts a run, whose outcome is also told to this receiver.
    pub(crate) fn start_with(
        &self,
        spec_json: &str,
        host: RunHostRef,
        mut at_end: Option<AtEnd>,
    ) -> RunObject {
        let outcome = Known::default();
        let (stop, signal) = StopHandle::new();
        let letters = self.turns.then(LetterBox::default);
        let spec: Arc<str> = spec_json.into();
        let begun = guard::answer(|| {
            let entry = self.loaded.runs.enter(Some(stop.clone()))?;
            let id = entry.id();
            let work = Work {
                runtime: Arc::clone(self.runtime.as_ref().expect("it is not being dropped")),
                spec: Arc::clone(&spec),
                host,
                stop: (stop.clone(), signal),
                letters: letters.clone(),
            };
            let (outcome, at_end) = (Arc::clone(&outcome), at_end.take());
            let end = End { outcome, at_end, link: None, _entry: entry };
            // In a box that the plugin's thread makes: what is handed over is small.
            let task =
                self.executor.spawn(async move { Box::pin(work.run(end)).await }).abort_handle();
            self.loaded.runs.runs_as(id, task.clone());
            Ok(task)
        });
        let executor = self.executor.clone();
        let spec = (spec.len() <= SHORT).then_some(spec);
        let mut object = RunObject { executor, outcome, stop, letters, task: None, _spec: spec };
        match begun {
            Ok(task) => object.task = Some(task),
            Err(error) => {
                tell(&object.outcome, Err(error), at_end);
            }
        }
        object
    }
}

impl AbiRuntime for RuntimeObject {
    fn start(&self, spec_json: RStr<'_>, host: RunHostRef) -> RunRef {
        Run_TO::from_value(self.start_with(spec_json.as_str(), host, None), TD_Opaque)
    }
}

/// Makes an outcome known. Where it is known already, by force, it stays as it is.
fn tell(known: &Known, outcome: Result<Finished, AbiError>, at_end: Option<AtEnd>) {
    if known.set(outcome).is_ok()
        && let (Some(at_end), Some(outcome)) = (at_end, known.get())
    {
        at_end(outcome);
    }
}

impl Drop for RuntimeObject {
    fn drop(&mut self) {
        guard::drop_quietly(self.runtime.take());
    }
}

/// The parts that a run is made of.
///
/// The host's thread leaves all to the plugin's: reading takes a while, starting is the author's, and memory that one
/// thread takes and another gives back makes both wait.
struct Work {
    runtime: Arc<dyn Runtime>,
    spec: Arc<str>,
    host: RunHostRef,
    stop: (StopHandle, StopSignal),
    letters: Option<LetterBox>,
}

impl Work {
    async fn run(self, mut end: End) {
        let finished = Guarded::new(self.finish(&mut end.link)).await;
        end.tell(finished.map_err(AbiError::from).flatten());
    }

    async fn finish(self, known_as: &mut Option<Arc<Link>>) -> Result<Finished, AbiError> {
        let Self { runtime, spec, host, stop: (handle, stop), letters } = self;
        let mut known = |link| RunHost::from(Arc::clone(known_as.insert(link)));
        if let Some(probe) = probe::asked(&spec) {
            return Ok(probe::run(probe, &known(Link::new(host, None))));
        }
        let launch = wire::launch::decode(&spec)?;
        drop(spec);
        let grace = Duration::from_secs(launch.grant.grace_seconds);
        let host = known(Link::new(host, Some((handle, Stop::Soft { grace }))));
        let turns = Turns::new(host.clone(), letters.unwrap_or_default());
        Ok(runtime.start(launch, RunContext { turns, ..RunContext::new(host, stop) }).await)
    }
}

/// The end of a run, once it is known. Each waiter waits for itself: one that gives up takes nothing with it.
type Known = Arc<SetOnce<Result<Finished, AbiError>>>;

/// The time after its grace for which a run may still take to end by itself, with what it has to say of its end. A host that ends
/// runs by dropping them waits longer.
const LINGER: Duration = Duration::from_secs(1);

/// A run as its host has it.
pub(crate) struct RunObject {
    executor: Handle,
    outcome: Known,
    stop: StopHandle,
    /// The box for letters to the run; none where its runtime reads no letters.
    letters: Option<LetterBox>,
    /// None where it could not be started.
    task: Option<AbortHandle>,
    /// The document of its launch, if it is short. The host's thread took the memory, and gives it back with the run: where one
    /// thread takes memory and another gives it back, both wait.
    _spec: Option<Arc<str>>,
}

/// The bytes of most launches. A longer one is given back once it is read, because it would be held twice for as long as its run.
const SHORT: usize = 2048;

impl RunObject {
    /// True if its outcome is known.
    pub(crate) fn is_over(&self) -> bool {
        self.outcome.initialized()
    }
}

impl Run for RunObject {
    fn outcome(&self) -> OutcomeLater {
        let outcome = Arc::clone(&self.outcome);
        async move {
            match outcome.wait().await {
                Ok(finished) => wire::finished::encode(finished).into(),
                Err(error) => RResult::RErr(error.clone()),
            }
        }
        .into_ffi()
    }

    fn cancel(&self, grace_ms: u64) {
        let grace = Duration::from_millis(grace_ms);
        self.stop.stop(if grace.is_zero() { Stop::Firm } else { Stop::Soft { grace } });
        let Some(task) = self.task.clone() else { return };
        let outcome = Arc::clone(&self.outcome);
        let by_force = async move {
            if timeout(grace.saturating_add(LINGER), outcome.wait()).await.is_err() {
                task.abort();
            }
        };
        // Where the plugin is shut down it is not run, and the run is ended by that.
        self.executor.spawn(by_force);
    }

    fn call(&self, op: RStr<'_>, args_json: RStr<'_>) -> Later {
        let answer = guard::answer(|| {
            probe::answer(args_json.as_str());
            match (op.as_str(), &self.letters) {
                (op::LETTER, Some(letters)) => {
                    letters.put(wire::turn::decode_letter(args_json.as_str())?);
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
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// The end of a run, however it comes about: first nothing more is told, then the outcome is known, then it counts no
/// longer.
struct End {
    outcome: Known,
    /// The function that is told of the end; taken when it is called.
    at_end: Option<AtEnd>,
    /// None until something could be told.
    link: Option<Arc<Link>>,
    _entry: Entry,
}

impl End {
    fn tell(&mut self, outcome: Result<Finished, AbiError>) {
        if let Some(link) = &self.link {
            link.close();
        }
        tell(&self.outcome, outcome, self.at_end.take());
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if !self.outcome.initialized() {
            self.tell(Err(AbiError::new(AbiError::CANCELLED, "it was ended by force")));
        }
    }
}
