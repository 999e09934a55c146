//! A host that notes what it hears, as it comes: nothing is put in order here.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use offshoot_model::{Refusal, RefusalCode, RunId, SpawnRequest};
use offshoot_plugin_abi::RunHostRef;
use offshoot_runtime::{Host, RunEvent, RunHost, Secrets, WaitAnswer, WaitFor};
use tokio::sync::Notify;

use crate::host::{Log, LogLine, UNREADABLE, cross, run_host};

/// Notes what a run tells. It admits no children.
#[derive(Clone, Default)]
pub(super) struct Listener {
    heard: Arc<Mutex<Vec<RunEvent>>>,
    more: Arc<Notify>,
    unreadable: Arc<Mutex<Vec<String>>>,
}

impl Listener {
    /// Itself, as it crosses.
    pub(super) fn crossing(&self) -> RunHostRef {
        let unreadable = Arc::clone(&self.unreadable);
        let log: Log = Arc::new(move |line: LogLine<'_>| {
            if line.target == UNREADABLE {
                let mut unreadable = unreadable.lock().unwrap_or_else(PoisonError::into_inner);
                unreadable.push(line.message.to_owned());
            }
        });
        cross(&run_host(self.host(), Secrets::default(), None, None, Some(log)))
    }

    pub(super) fn host(&self) -> RunHost {
        RunHost::new(self.clone())
    }

    /// Returns the events that could not be read, in words.
    pub(super) fn unreadable(&self) -> Vec<String> {
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner).clone()
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

    fn wait(&self, _wait: WaitFor) -> BoxFuture<'static, Result<WaitAnswer, Refusal>> {
        Box::pin(async { Ok(WaitAnswer::default()) })
    }
}
