//! A host that notes what it hears, as it comes: nothing is put in order here.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use offshoot_model::{Refusal, RefusalCode, RunId, SpawnRequest};
use offshoot_runtime::{Host, RunEvent, RunHost, WaitAnswer, WaitFor};
use tokio::sync::Notify;

/// Notes what a run tells. It admits no children.
#[derive(Clone, Default)]
pub(super) struct Listener {
    heard: Arc<Mutex<Vec<RunEvent>>>,
    more: Arc<Notify>,
}

impl Listener {
    pub(super) fn host(&self) -> RunHost {
        RunHost::new(self.clone())
    }

    pub(super) fn heard(&self) -> Vec<RunEvent> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Until the run says that it has started.
    pub(super) async fn started(&self) {
        loop {
            let more = self.more.notified();
            if self.heard().iter().any(|event| matches!(event, RunEvent::Started(_))) {
                return;
            }
            more.await;
        }
    }
}

impl Host for Listener {
    fn hear(&self, event: RunEvent) {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).push(event);
        self.more.notify_one();
    }

    fn spawn(&self, _request: SpawnRequest) -> BoxFuture<'static, Result<RunId, Refusal>> {
        let refusal = Refusal::new(RefusalCode::RecursionDisabled, "the check admits no children");
        Box::pin(async { Err(refusal) })
    }

    fn wait(&self, _wait: WaitFor) -> BoxFuture<'static, WaitAnswer> {
        Box::pin(async { WaitAnswer::default() })
    }
}
