//! A run's host on this side: the contract's own, over what crossed.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use offshoot_model::{Delegated, JsonText, Refusal, RefusalCode, RunId, SpawnRequest, Stream};
use offshoot_plugin_abi::wire::{self, op};
use offshoot_plugin_abi::{AbiError, Answer, RunHostRef, event};
use offshoot_runtime::{Host, Ruling, RunEvent, Stop, StopHandle, ToolOffer, WaitAnswer, WaitFor};

/// The way to a run's host. Once it is closed, nothing goes through: no event follows an outcome.
pub(crate) struct Link {
    host: RunHostRef,
    /// Held while an event is told, so that events are in order and the last one is before the end.
    open: Mutex<bool>,
    /// The handle, and the request that is made when the host answers an event with a request to stop.
    stop: Option<(StopHandle, Stop)>,
}

impl Link {
    pub(crate) fn new(host: RunHostRef, stop: Option<(StopHandle, Stop)>) -> Arc<Self> {
        Arc::new(Self { host, open: Mutex::new(true), stop })
    }

    pub(crate) fn close(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }

    fn is_open(&self) -> bool {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the host something, if the run can still be answered.
    fn ask(&self, ask: impl FnOnce(&RunHostRef) -> offshoot_plugin_abi::Later) -> Asked {
        if !self.is_open() {
            let error = AbiError::new(AbiError::CANCELLED, "this run is over");
            return futures_util::future::ready(Err(error)).boxed();
        }
        ask(&self.host).map(|answer: Answer| answer.into_result().map(String::from)).boxed()
    }

    /// Asks the host for an operation by its name.
    fn call(&self, op: &str, args_json: &str) -> Asked {
        self.ask(|host| host.call(op.into(), args_json.into()))
    }
}

type Asked = BoxFuture<'static, Result<String, AbiError>>;

#[deny(clippy::missing_trait_methods, reason = "it passes on all that the interface has")]
impl Host for Link {
    fn hear(&self, event: RunEvent) {
        let (kind, payload) = wire::event::encode(&event);
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if !*open {
            return;
        }
        let answer = self.host.event(kind, (&*payload).into());
        drop(open);
        if answer == event::PLEASE_STOP
            && let Some((handle, request)) = &self.stop
        {
            handle.stop(*request);
        }
    }

    // The interface has no call for it: a plugin that works shows it by what it tells.
    fn sign(&self) {}

    // Nor for this: what a run of a plugin says beside its answer are its lines of progress.
    fn said(&self, _stream: Stream, _bytes: &[u8]) {}

    // Nor for this: a plugin does not hear that memory is short.
    fn memory_short(&self) -> BoxFuture<'static, ()> {
        std::future::pending().boxed()
    }

    fn spawn(&self, request: SpawnRequest) -> BoxFuture<'static, Result<RunId, Refusal>> {
        let asked = self.ask(|host| host.spawn(wire::spawn::encode(request).as_str().into()));
        async move {
            let answer = asked.await.and_then(|json| wire::spawn::decode_answer(&json));
            answer.unwrap_or_else(|error| Err(refusal(&error)))
        }
        .boxed()
    }

    fn delegate(
        &self,
        request: SpawnRequest,
        choose_only: bool,
    ) -> BoxFuture<'static, Result<Delegated, Refusal>> {
        let asked = self.call(op::DELEGATE, &wire::delegate::encode(request, choose_only));
        async move {
            let answer = asked.await.and_then(|json| wire::delegate::decode_answer(&json));
            answer.map_err(|error| no(&error))
        }
        .boxed()
    }

    fn observed(&self, observation: u32, success: bool) -> BoxFuture<'static, Result<(), Refusal>> {
        let asked = self.call(op::OBSERVED, &wire::delegate::encode_observed(observation, success));
        async move { asked.await.map(drop).map_err(|error| no(&error)) }.boxed()
    }

    fn wait(&self, wait: WaitFor) -> BoxFuture<'static, Result<WaitAnswer, Refusal>> {
        let asked = self.call(op::WAIT, &wire::wait::encode(wait));
        async move {
            let answer = asked.await.and_then(|json| wire::wait::decode_answer(&json));
            answer.map_err(|error| no(&error))
        }
        .boxed()
    }

    // The interface has no calls for the tools of a host yet.
    fn goes_on(&self) -> BoxFuture<'static, bool> {
        async { true }.boxed()
    }

    fn tools(&self) -> BoxFuture<'static, Vec<ToolOffer>> {
        async { Vec::new() }.boxed()
    }

    fn call_tool(&self, name: &str, _arguments: &str) -> BoxFuture<'static, JsonText> {
        let refusal = Refusal::invalid("name", format!("there is no tool `{name}`"));
        async move { JsonText::of(&refusal).expect("a refusal is plain data") }.boxed()
    }

    fn turn_ended(
        &self,
        answer: Option<Arc<str>>,
        letters_taken: u32,
    ) -> BoxFuture<'static, Ruling> {
        let ended = wire::turn::Ended { answer, letters_taken };
        let asked = self.call(op::TURN_ENDED, &wire::turn::encode(ended));
        async move {
            let ruling = asked.await.and_then(|json| wire::turn::decode_answer(&json));
            // A host that knows no turns has nothing more to say.
            ruling.unwrap_or(Ruling::End)
        }
        .boxed()
    }
}

/// A host that said no.
fn no(error: &AbiError) -> Refusal {
    wire::refused::decode(error).unwrap_or_else(|| refusal(error))
}

/// A host that could not be asked, in the words of one that said no.
fn refusal(error: &AbiError) -> Refusal {
    let code = match error.known_code() {
        AbiError::CANCELLED => RefusalCode::CallerEnded,
        AbiError::INVALID => RefusalCode::InvalidRequest,
        _ => RefusalCode::CannotDelegate,
    };
    Refusal::new(code, format!("the host could not be asked: {error}"))
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Link")
    }
}
