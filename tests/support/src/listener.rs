//! A host for runs of a test: it notes what it is told and asked, and admits no children.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use offshoot_model::{Refusal, RefusalCode, RunId, SpawnRequest};
use offshoot_runtime::{
    Finished, Host, Launch, RunContext, RunEvent, RunHost, Runtime, StopHandle, WaitAnswer, WaitFor,
};

/// What was told and asked. Clones share it.
#[derive(Clone, Default)]
pub struct Listener {
    noted: Arc<Mutex<Noted>>,
    look: Option<Look>,
}

type Look = Arc<dyn Fn(&RunEvent) + Send + Sync>;

#[derive(Default)]
struct Noted {
    events: Vec<RunEvent>,
    requests: Vec<SpawnRequest>,
}

impl Listener {
    /// Calls this with each event as it comes.
    pub fn at(look: impl Fn(&RunEvent) + Send + Sync + 'static) -> Self {
        Self { look: Some(Arc::new(look)), ..Self::default() }
    }

    /// What was told so far.
    pub fn heard(&self) -> Vec<RunEvent> {
        self.noted().events.clone()
    }

    /// The children that were asked for so far.
    pub fn asked(&self) -> Vec<SpawnRequest> {
        self.noted().requests.clone()
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Host for Listener {
    fn hear(&self, event: RunEvent) {
        if let Some(look) = &self.look {
            look(&event);
        }
        self.noted().events.push(event);
    }

    fn spawn(&self, request: SpawnRequest) -> BoxFuture<'static, Result<RunId, Refusal>> {
        self.noted().requests.push(request);
        let refusal = Refusal::new(RefusalCode::RecursionDisabled, "no children in this test");
        Box::pin(async { Err(refusal) })
    }

    fn wait(&self, _wait: WaitFor) -> BoxFuture<'static, Result<WaitAnswer, Refusal>> {
        Box::pin(async { Ok(WaitAnswer::default()) })
    }
}

/// Runs to the end, with nothing that stops it: how it ended, and what it told.
pub async fn run(runtime: &dyn Runtime, launch: Launch) -> (Finished, Vec<RunEvent>) {
    let listener = Listener::default();
    let (_handle, stop) = StopHandle::new();
    let cx = RunContext::new(RunHost::new(listener.clone()), stop);
    let finished = runtime.start(launch, cx).await;
    (finished, listener.heard())
}
