//! The handle: starts the service, tells its address, shows what it was asked.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use crate::protocol::Protocol;
use crate::wire::{self, Response};
use crate::{ApiError, Conversation, Model, Reply, Script, Usage, gemini, server};

/// Requests beyond this are refused: a client that repeats for ever ends instead of filling the memory.
const MOST_REQUESTS: usize = 20_000;

/// A running service. Dropped, it ends with all its connections.
#[derive(Debug)]
pub struct FakeModelApi {
    address: SocketAddr,
    state: Arc<State>,
    /// Dropped before the thread is joined: that is the request to end.
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// One request, as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// `POST`, `HEAD` and so on.
    pub method: String,
    /// With its query.
    pub path: String,
    /// The header `authorization`.
    pub authorization: Option<String>,
    /// The header `x-api-key`.
    pub api_key: Option<String>,
    /// What rules saw of it; empty where it was no request for a message.
    pub conversation: Conversation,
    /// The whole body; null where it was no JSON.
    pub body: Value,
    /// The rule that answered.
    pub rule: Option<usize>,
}

/// What the connections share.
#[derive(Debug)]
pub(crate) struct State {
    inner: Mutex<Inner>,
    /// The model in place of rules.
    model: Option<Model>,
    /// How many requests have come.
    count: watch::Sender<usize>,
}

#[derive(Debug)]
struct Inner {
    script: Script,
    requests: Vec<Recorded>,
    /// When the five hours that were told last begin anew, in seconds since 1970.
    reset: u64,
}

impl FakeModelApi {
    /// Listens on a free port of 127.0.0.1.
    pub fn start(script: Script) -> io::Result<Self> {
        Self::start_on(0, script)
    }

    /// Listens on a free port of 127.0.0.1, with a model that is a function in place of rules.
    pub fn start_with(model: Model) -> io::Result<Self> {
        Self::listen(0, Script::default(), Some(model))
    }

    /// Listens on this port of 127.0.0.1.
    pub fn start_on(port: u16, script: Script) -> io::Result<Self> {
        Self::listen(port, script, None)
    }

    fn listen(port: u16, script: Script, model: Option<Model>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        let (count, _) = watch::channel(0);
        let inner = Mutex::new(Inner { script, requests: Vec::new(), reset: 0 });
        let state = Arc::new(State { inner, model, count });
        let (end, ended) = oneshot::channel();
        let shared = Arc::clone(&state);
        // A thread of its own, so that a test may block and the service still answers.
        let thread = thread::Builder::new()
            .name("fake-model-api".to_owned())
            .spawn(move || server::run(listener, shared, ended))?;
        Ok(Self { address, state, end: Some(end), thread: Some(thread) })
    }

    /// What a client takes for the address of the service.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it was asked so far, in order.
    pub fn requests(&self) -> Vec<Recorded> {
        self.state.lock().requests.clone()
    }

    /// The conversations it was asked to go on with, in order.
    pub fn conversations(&self) -> Vec<Conversation> {
        let requests = self.requests();
        let messages = requests.into_iter().filter(|request| request.is_message());
        messages.map(|request| request.conversation).collect()
    }

    /// Waits until so many requests have come, of any kind.
    pub async fn arrived(&self, count: usize) {
        let mut counted = self.state.count.subscribe();
        let enough = counted.wait_for(|arrived| *arrived >= count).await;
        enough.expect("the counter lives as long as this handle");
    }

    /// Waits until it was asked for this answer to a prompt; 2 for the one behind the first round of tools. Other requests do not count: a
    /// client may look around before it asks.
    pub async fn asked_for_step(&self, step: usize) {
        // A change after this is not missed, also one before the first look.
        let mut counted = self.state.count.subscribe();
        while self.conversations().iter().all(|asked| asked.step < step) {
            counted.changed().await.expect("the counter lives as long as this handle");
        }
    }

    /// Replaces the rules; what has been recorded stays.
    pub fn set_script(&self, script: Script) {
        self.state.lock().script = script;
    }
}

impl Drop for FakeModelApi {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // It panicked and said so; a second panic while dropping would hide the test's own message.
            let _ = thread.join();
        }
    }
}

impl Recorded {
    /// True if the request asks for a message; false for one that only looks whether the server is there.
    pub fn is_message(&self) -> bool {
        Protocol::of(&self.method, &self.path).is_some()
    }
}

impl State {
    /// Returns when the five hours begin anew, in seconds since 1970: in this many seconds, unless an earlier answer has told a
    /// moment that is still to come. A window has one reset, whenever it is asked for.
    pub(crate) fn reset(&self, seconds: u64) -> u64 {
        #[expect(clippy::disallowed_methods, reason = "a reset is a moment of the system's clock")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is after 1970");
        let mut inner = self.lock();
        if inner.reset <= now.as_secs() {
            // A reset is told in whole seconds, and is not before its time.
            inner.reset = now.as_secs() + 1 + seconds;
        }
        inner.reset
    }

    /// Records a request and decides what it gets.
    pub(crate) fn answer(
        &self,
        method: &str,
        path: &str,
        [authorization, api_key]: [Option<String>; 2],
        body: Value,
    ) -> Response {
        let mut inner = self.lock();
        let serial = inner.requests.len() + 1;
        let mut request = Recorded {
            method: method.to_owned(),
            path: path.to_owned(),
            authorization,
            api_key,
            conversation: Conversation::default(),
            body,
            rule: None,
        };
        let response = if serial > MOST_REQUESTS {
            return wire::error(&ApiError::new(403, "permission_error", "too many requests"));
        } else if let Some(protocol) = Protocol::of(method, path) {
            request.conversation = protocol.conversation(path, &request.body);
            let conversation = &request.conversation;
            let chosen = inner.script.choose(conversation);
            request.rule = chosen.map(|(number, _)| number);
            let none;
            let answered;
            let quota_used = chosen.and_then(|(_, rule)| rule.quota_used);
            let (reply, usage) = match (chosen, &self.model) {
                (Some((_, rule)), _) => (&rule.reply, rule.usage),
                (None, Some(model)) => {
                    answered = model.answer(conversation);
                    (&answered.0, answered.1)
                }
                (None, None) => {
                    let prompt = &conversation.prompt;
                    none = Reply::invalid(format!("no rule holds for the prompt {prompt:?}"));
                    (&none, Usage::default())
                }
            };
            let answer = protocol.answer(reply, conversation, usage, serial, &request.body);
            Response { quota_used, ..answer }
        } else {
            elsewhere(method, path, &request.body)
        };
        inner.requests.push(request);
        self.count.send_replace(serial);
        response
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn elsewhere(method: &str, path: &str, body: &Value) -> Response {
    match (method, path.split('?').next()) {
        ("HEAD", _) => Response { parts: Vec::new(), ..wire::json_of(200, &Value::Null) },
        // Four characters to the token: near enough for a client that asks how full its window is.
        ("POST", Some("/v1/messages/count_tokens")) => {
            wire::json_of(200, &json!({"input_tokens": body["messages"].to_string().len() / 4}))
        }
        ("POST", Some(path))
            if gemini::target(path).is_some_and(|asks| asks.1 == "countTokens") =>
        {
            gemini::tokens(body)
        }
        _ => wire::error(&ApiError::new(404, "not_found_error", format!("{method} {path}"))),
    }
}
