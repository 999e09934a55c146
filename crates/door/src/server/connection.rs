//! One connection: requests in, answers out, in whatever order they are ready.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{AbortHandle, Abortable, Aborted, BoxFuture};
use futures_util::stream::{FuturesUnordered, StreamExt};
use offshoot_model::{Refusal, RefusalCode};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::greeting::{Greeting, greet};
use super::{Accepted, Shared};
use crate::lines::{Line, LineError, Lines};
use crate::outbox::Outbox;
use crate::protocol::{
    Answer, CANCEL_REQUEST, CancelRequest, ErrorCode, Incoming, Malformed, Outgoing, PROGRESS,
    ParamsError, Progress, RawError, Request, RequestId, RequestProgress, Response, line,
};
use crate::service::{Call, CallError, ProgressSink};
use crate::{Caller, CallerKind};

/// Answers that a client has not taken; while there are more, nothing is read from it.
const UNTAKEN: usize = 16;

/// Bytes that a client has not taken; while there are more, no further answer is made for it: a future that is not polled holds
/// what it waits for, and not what it makes of that.
const UNTAKEN_BYTES: usize = 64 * 1024;

/// Progress between a request and its connection, which takes it in at once.
const UNHEARD: usize = 64;

struct Ended {
    id: RequestId,
    method: &'static str,
    began: Instant,
    result: Result<Result<Response, CallError>, Aborted>,
}

struct Connection {
    caller: Caller,
    shared: Arc<Shared>,
    lines: Lines,
    outbox: Outbox,
    calls: FuturesUnordered<BoxFuture<'static, Ended>>,
    open: HashMap<RequestId, AbortHandle>,
    sink: mpsc::Sender<(RequestId, Progress)>,
    heard: mpsc::Receiver<(RequestId, Progress)>,
    /// The latest of each request that has not been sent.
    latest: HashMap<RequestId, Progress>,
}

/// Serves a connection until its client goes or breaks the rules. Dropped, it drops every open request.
pub(super) async fn serve(accepted: Accepted, shared: Arc<Shared>) {
    let Accepted { stream, peer, lineage, known, slot } = accepted;
    let (reader, writer) = stream.into_split();
    let mut lines = Lines::new(reader, shared.limits.message_bytes);
    let mut outbox = Outbox::new(writer);
    // Held until this function ends, which gives the place back.
    let mut slot = slot;
    match greet(&mut lines, peer, lineage.as_ref(), known, slot.as_mut(), &shared).await {
        Greeting::Welcome(caller, welcome) => {
            if let Some(run) = caller.kind.run() {
                tracing::Span::current().record("run", tracing::field::display(run));
            }
            tracing::debug!(caller = ?caller.kind.word(), "caller identified");
            outbox.push(welcome);
            let (sink, heard) = mpsc::channel(UNHEARD);
            let (calls, open, latest) = Default::default();
            let mut connection =
                Connection { caller, shared, lines, outbox, calls, open, sink, heard, latest };
            connection.run().await;
            tracing::debug!(open = connection.open.len(), "connection closed");
        }
        Greeting::Refused(reason) => outbox.push_last(reason, &shared).await,
        Greeting::Gone => {}
    }
}

/// A refusal as an error.
pub(super) fn refusal_error(refusal: &Refusal) -> RawError {
    RawError::new(ErrorCode::Refused, refusal.message.clone()).with_data(refusal)
}

impl Connection {
    async fn run(&mut self) {
        loop {
            if self.outbox.is_empty() {
                self.tell_progress();
            }
            tokio::select! {
                read = self.lines.next(), if self.outbox.len() < UNTAKEN => match read {
                    Ok(Some(line)) => self.hear(line),
                    Err(LineError::TooLong) => {
                        let last = line(&Answer::error(None, self.shared.too_long()));
                        return self.outbox.push_last(last, &self.shared).await;
                    }
                    Ok(None) | Err(LineError::Broken) => return,
                },
                Some(ended) = self.calls.next(), if self.outbox.bytes() < UNTAKEN_BYTES => {
                    self.answer(ended);
                }
                Some((id, progress)) = self.heard.recv() => {
                    if self.open.contains_key(&id) {
                        self.latest.insert(id, progress);
                    }
                }
                written = self.outbox.write_some() => if written.is_err() {
                    return;
                },
            }
        }
    }

    fn hear(&mut self, Line { text, file }: Line) {
        if text.trim_ascii().is_empty() {
            return;
        }
        match Incoming::parse(&text) {
            Ok(Incoming::Request { id, method, params }) => {
                if let Err(error) = self.begin(&id, &method, params.as_deref(), file) {
                    tracing::debug!(code = error.code, "request not taken");
                    self.outbox.push(line(&Answer::error(Some(&id), error)));
                }
            }
            Ok(Incoming::Notification { method, params }) if method == CANCEL_REQUEST => {
                let params = params.as_deref().map_or("{}", RawValue::get);
                // A request that is not open was answered, or was never made.
                if let Ok(CancelRequest { id }) = serde_json::from_str(params)
                    && let Some(open) = self.open.get(&id)
                {
                    open.abort();
                }
            }
            // Notifications of a later version, and answers, although this side asks nothing.
            Ok(Incoming::Notification { .. } | Incoming::Answer { .. }) => {}
            Err(malformed) => {
                self.outbox.push(line(&Answer::error(None, malformed.into())));
            }
        }
    }

    /// Begins a request; the error is its answer.
    fn begin(
        &mut self,
        id: &RequestId,
        method: &str,
        params: Option<&RawValue>,
        file: Option<OwnedFd>,
    ) -> Result<(), RawError> {
        if self.open.contains_key(id) {
            return Err(Malformed::request("a request with this id is open").into());
        }
        let most = self.shared.limits.requests;
        if self.open.len() >= most {
            let message = format!("this connection has {most} open requests already");
            return Err(RawError::new(ErrorCode::TooMany, message));
        }
        let request = Request::parse(method, params).map_err(|error| match error {
            ParamsError::UnknownMethod if method == "hello" => {
                Malformed::request("`hello` was said already").into()
            }
            ParamsError::UnknownMethod => {
                RawError::new(ErrorCode::MethodNotFound, format!("there is no method `{method}`"))
            }
            ParamsError::Invalid { field, message } => {
                let refusal = ParamsError::refusal(field, &message);
                RawError::new(ErrorCode::InvalidParams, refusal.message.clone()).with_data(&refusal)
            }
        })?;
        if let CallerKind::Run(run) = self.caller.kind
            && !self.shared.tickets.has(run)
        {
            let refusal = Refusal::new(RefusalCode::CallerEnded, "the calling run is over");
            return Err(refusal_error(&refusal));
        }
        let (abort, registration) = AbortHandle::new_pair();
        let sink = ProgressSink { id: id.clone(), sender: self.sink.clone() };
        let (own, method, began) = (id.clone(), request.method(), Instant::now());
        tracing::trace!(method, id = ?own, "request");
        let caller = self.caller.clone();
        let call = self.shared.service.call(Call { caller, request, file, progress: sink });
        let call = Abortable::new(call, registration);
        let ended = move |result| Ended { id: own, method, began, result };
        self.calls.push(call.map(ended).boxed());
        self.open.insert(id.clone(), abort);
        Ok(())
    }

    fn answer(&mut self, Ended { id, method, began, result }: Ended) {
        self.open.remove(&id);
        self.latest.remove(&id);
        let ms = began.elapsed().as_millis() as u64;
        let error = match result {
            Ok(Ok(response)) => {
                assert_eq!(response.method(), method, "a service answers what it was asked");
                let answer = line(&Answer::result(&id, &response.result()));
                let most = self.shared.limits.answer_bytes;
                tracing::debug!(method, ms, bytes = answer.len(), "answered");
                if answer.len() <= most {
                    return self.outbox.push(answer);
                }
                let message = format!("the answer has {} bytes, more than {most}", answer.len());
                RawError::new(ErrorCode::AnswerTooLarge, message)
            }
            Ok(Err(CallError::Refused(refusal))) => {
                tracing::info!(method, ms, code = refusal.code.as_ref(), "refused");
                refusal_error(&refusal)
            }
            Ok(Err(CallError::Failed { message, hint })) => {
                tracing::warn!(method, ms, "failed");
                let error = RawError::new(ErrorCode::Failed, message);
                match hint {
                    Some(hint) => error.with_data(&json!({ "hint": hint })),
                    None => error,
                }
            }
            Err(Aborted) => {
                tracing::debug!(method, ms, "withdrawn by its caller");
                RawError::new(ErrorCode::Cancelled, "the request was cancelled")
            }
        };
        self.outbox.push(line(&Answer::error(Some(&id), error)));
    }

    /// Sends the latest progress of one request.
    fn tell_progress(&mut self) {
        let Some(id) = self.latest.keys().next().cloned() else { return };
        if let Some(progress) = self.latest.remove(&id) {
            let params = RequestProgress { id, progress };
            self.outbox.push(line(&Outgoing::notification(PROGRESS, params)));
        }
    }
}

impl Outbox {
    /// The last line of a connection. A client that does not take it within the patience for a greeting misses it.
    async fn push_last(&mut self, last: Vec<u8>, shared: &Shared) {
        self.push(last);
        let _ = tokio::time::timeout(shared.limits.hello, self.flush()).await;
    }
}

impl Shared {
    pub(super) fn too_long(&self) -> RawError {
        let message = format!("a line has at most {} bytes", self.limits.message_bytes);
        RawError::new(ErrorCode::MessageTooLarge, message)
    }
}
