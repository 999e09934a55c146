//! A host that notes what it hears, as it comes: nothing is put in order here.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use offshoot_model::{
    AgentId, Ending, Envelope, Payload, Refusal, RefusalCode, RunId, SessionKey, SpawnRequest,
};
use offshoot_plugin_abi::RunHostRef;
use offshoot_runtime::{Host, RunEvent, RunHost, Secrets, WaitAnswer, WaitFor};
use tokio::sync::Notify;

use crate::host::{Log, LogLine, UNREADABLE, cross, run_host};

/// The answer to a run that asks for children.
#[derive(Clone, Copy, Default)]
pub(super) enum Children {
    /// A refusal.
    #[default]
    Refused,
    /// A child that completes at once with [`ANSWER`].
    Answer,
    /// A child that does not end.
    Hang,
}

/// The answer of each child.
pub(super) const ANSWER: &str = "the answer of a child";

/// The requests of a run.
#[derive(Clone, Default)]
pub(super) struct Asked {
    /// The number of children that it asked for.
    pub(super) spawns: usize,
    /// The children that it was granted.
    pub(super) granted: Vec<RunId>,
    /// The runs that it waited for, of each wait.
    pub(super) waits: Vec<Vec<RunId>>,
}

/// Notes what a run tells and asks.
#[derive(Clone, Default)]
pub(super) struct Listener {
    children: Children,
    asked: Arc<Mutex<Asked>>,
    heard: Arc<Mutex<Vec<RunEvent>>>,
    more: Arc<Notify>,
    unreadable: Arc<Mutex<Vec<String>>>,
}

impl Listener {
    /// A listener that answers so to a run that asks for children.
    pub(super) fn with(children: Children) -> Self {
        Self { children, ..Self::default() }
    }

    /// Returns what was asked for so far.
    pub(super) fn asked(&self) -> Asked {
        self.asking().clone()
    }

    fn asking(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Until the run waits for children.
    pub(super) async fn waits(&self) {
        loop {
            let more = self.more.notified();
            if !self.asking().waits.is_empty() {
                return;
            }
            more.await;
        }
    }

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
        let mut asked = self.asking();
        asked.spawns += 1;
        let answer = match self.children {
            Children::Refused => {
                let why = "this check admits no children";
                Err(Refusal::new(RefusalCode::RecursionDisabled, why))
            }
            Children::Answer | Children::Hang => {
                let child = u8::try_from(asked.spawns).unwrap_or(u8::MAX);
                let child = RunId::from_bytes([child; 16]);
                asked.granted.push(child);
                Ok(child)
            }
        };
        Box::pin(async { answer })
    }

    fn wait(&self, wait: WaitFor) -> BoxFuture<'static, Result<WaitAnswer, Refusal>> {
        let mut asked = self.asking();
        asked.waits.push(wait.runs.clone());
        self.more.notify_one();
        let runs = if wait.runs.is_empty() { asked.granted.clone() } else { wait.runs };
        match self.children {
            Children::Refused => Box::pin(async { Ok(WaitAnswer::default()) }),
            Children::Answer => {
                let ended = runs.into_iter().map(envelope).collect();
                Box::pin(async { Ok(WaitAnswer { ended, pending: Vec::new() }) })
            }
            Children::Hang => Box::pin(std::future::pending()),
        }
    }
}

/// The envelope of a child.
fn envelope(run: RunId) -> Envelope {
    let agent = AgentId::main();
    let ending = Ending::completed(Payload::text(ANSWER));
    Envelope::of(&ending, SessionKey::main(&agent), run, agent, 1)
}
