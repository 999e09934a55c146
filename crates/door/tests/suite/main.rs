//! The door over real sockets and real processes.

mod attacks;
mod calls;
mod faults;
mod page;
mod who;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use offshoot_door::{
    Ask, Call, CallError, CallerKind, Client, ClientError, ContextPut, Done, DoorSocket, History,
    HistoryPage, Limits, List, Progress, Registry, Report, Request, Response, Runs, Server,
    Service, SharedTickets, Spawn, Spawned, Status, StatusAnswer, Ticket, Value, Variable, Wait,
    Waited, WireEnvelope,
};
use offshoot_model::{
    AgentId, ContentHash, Ending, Envelope, Payload, Refusal, RefusalCode, RunId, SessionKey,
    ValueKind,
};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, watch};
use uuid::Uuid;

/// Far longer than anything takes. It ends a test that would hang.
const FAR: Duration = Duration::from_secs(60);

/// The requests that the engine behind the door was asked, and their fates.
#[derive(Debug, PartialEq)]
enum Heard {
    Report(CallerKind, String),
    History,
    WaitBegan,
    /// The answer was made.
    WaitAnswered,
    /// The request was dropped with its caller.
    WaitDropped,
}

/// An engine that does as the question says.
struct Fake {
    heard: mpsc::UnboundedSender<Heard>,
    /// The gate that some waits wait for.
    gate: watch::Receiver<bool>,
}

/// A server of the fake, in folders of its own.
struct House {
    folder: tempfile::TempDir,
    registry: Registry,
    tickets: SharedTickets,
    server: Option<Server>,
    heard: mpsc::UnboundedReceiver<Heard>,
    gate: watch::Sender<bool>,
}

/// A client that says exactly what the test wants.
struct RawClient {
    stream: BufReader<UnixStream>,
}

impl Service for Fake {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Response, CallError>> {
        let Call { caller, request, file, progress } = call;
        let (heard, mut gate) = (self.heard.clone(), self.gate.clone());
        let kind = caller.kind;
        async move {
            Ok(match request {
                Request::Report(report) => {
                    heard.send(Heard::Report(kind, report.text)).expect("the test listens");
                    Report::respond(Done {})
                }
                Request::Spawn(spawn) if &*spawn.task == "too deep" => {
                    let refusal = Refusal::new(RefusalCode::DepthLimit, "Maximum subagent depth");
                    return Err(refusal.with_hint("do it yourself").into());
                }
                Request::Spawn(_) => Spawn::respond(Spawned {
                    run_id: run(7),
                    session_key: SessionKey::parse("agent:main:subagent:7").expect("a key"),
                    lowered: Vec::new(),
                    changed: Vec::new(),
                }),
                // At once, after some signs of life, or never.
                Request::Wait(wait) if wait.timeout_ms == Some(0) => {
                    Wait::respond(Waited::default())
                }
                Request::Wait(wait) if wait.timeout_ms == Some(1) => {
                    progress.tell(Progress { ended: 1, total: 2, ..Progress::default() });
                    tokio::task::yield_now().await;
                    // The connection has its turn before the answer comes.
                    for _ in 0..100 {
                        tokio::task::yield_now().await;
                    }
                    Wait::respond(Waited::default())
                }
                // When all others of its kind do, with 128 KiB.
                Request::Wait(wait) if wait.timeout_ms == Some(2) => {
                    heard.send(Heard::WaitBegan).expect("the test listens");
                    gate.wait_for(|open| *open).await.expect("the test has the other end");
                    heard.send(Heard::WaitAnswered).expect("the test listens");
                    let ended = vec![completed(&"x".repeat(128 * 1024))];
                    Wait::respond(Waited { ended, ..Waited::default() })
                }
                Request::Wait(wait) if !wait.runs.is_empty() => {
                    let ended = wait.runs.iter().map(|_| completed("42")).collect();
                    Wait::respond(Waited { ended, ..Waited::default() })
                }
                Request::Wait(_) => {
                    let _dropped = WaitGuard(heard.clone());
                    heard.send(Heard::WaitBegan).expect("the test listens");
                    std::future::pending().await
                }
                Request::Status(_) => Status::respond(status_answer(kind)),
                Request::History(history) => {
                    heard.send(Heard::History).expect("the test listens");
                    let count = history.limit.unwrap_or(1000) as usize;
                    let entries = vec![entry(&"x".repeat(1000)); count];
                    History::respond(HistoryPage { entries, more: false })
                }
                Request::List(_) => List::respond(Runs::default()),
                Request::ContextPut(put) => {
                    let (kind, size) = match &put.value {
                        Value::Text(text) => (ValueKind::Text, text.len()),
                        Value::Json(json) => (ValueKind::Json, json.as_str().len()),
                        Value::File(_) => {
                            let file = File::from(file.expect("a descriptor comes with it"));
                            let length =
                                file.metadata().expect("the file cannot be examined").len();
                            (ValueKind::Text, usize::try_from(length).expect("it is small"))
                        }
                        Value::Base64(_) | Value::Path(_) => (ValueKind::Bytes, 0),
                    };
                    ContextPut::respond(Variable {
                        name: put.name,
                        kind: kind.into(),
                        size: size as u64,
                        hash: ContentHash::of(b""),
                        path: None,
                        created_at: None,
                    })
                }
                other => return Err(CallError::failed(format!("no {} here", other.method()))),
            })
        }
        .boxed()
    }
}

struct WaitGuard(mpsc::UnboundedSender<Heard>);

impl Drop for WaitGuard {
    fn drop(&mut self) {
        // The test may be over.
        let _ = self.0.send(Heard::WaitDropped);
    }
}

fn run(number: u128) -> RunId {
    RunId::from_uuid(Uuid::from_u128(number))
}

fn entry(text: &str) -> offshoot_door::HistoryEntry {
    offshoot_door::HistoryEntry {
        seq: 1,
        at: "2025-08-01T12:00:00Z".into(),
        kind: offshoot_door::EntryKind::Event,
        from: None,
        text: text.into(),
    }
}

fn completed(text: &str) -> WireEnvelope {
    let key = SessionKey::parse("agent:main:subagent:7").expect("a key");
    let ending = Ending::completed(Payload::text(text));
    WireEnvelope::from(&Envelope::of(&ending, key, run(7), AgentId::main(), 1))
}

fn status_answer(kind: CallerKind) -> StatusAnswer {
    StatusAnswer {
        caller: kind.word(),
        run_id: kind.run(),
        session_key: None,
        agent: None,
        depth: 0,
        delegation: None,
        max_depth: 3,
        may_spawn: true,
        budget: None,
        tools: None,
        agents: vec![],
    }
}

impl House {
    fn new() -> Self {
        Self::with(Limits::default())
    }

    fn with(limits: Limits) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let registry = Registry::in_folders([folder.path().join("user")]);
        let socket = DoorSocket::bind(&folder.path().join("doors"), "a.sock", &registry)
            .expect("no other client is there");
        let (sender, heard) = mpsc::unbounded_channel();
        let tickets = SharedTickets::new();
        let (gate, opens) = watch::channel(false);
        let service = Fake { heard: sender, gate: opens };
        let server = Server::start(socket, registry.clone(), tickets.clone(), service, limits);
        let server = Some(server.expect("it can be listened on"));
        Self { folder, registry, tickets, server, heard, gate }
    }

    fn path(&self) -> PathBuf {
        self.server.as_ref().expect("it is closed").path().to_owned()
    }

    async fn connect(&self, ticket: Option<&Ticket>) -> Result<Client, ClientError> {
        Client::connect(&self.path(), &self.registry, ticket).await
    }

    async fn client(&self) -> Client {
        self.connect(None).await.expect("the operator may come")
    }

    async fn raw(&self) -> RawClient {
        RawClient::connect(&self.path()).await
    }

    async fn heard(&mut self) -> Heard {
        tokio::time::timeout(FAR, self.heard.recv())
            .await
            .expect("something happens")
            .expect("the service is there")
    }
}

impl RawClient {
    async fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).await.expect("the server listens");
        Self { stream: BufReader::new(stream) }
    }

    /// Connects as the operator.
    async fn greeted(path: &Path) -> Self {
        let mut client = Self::connect(path).await;
        client.say(r#"{"jsonrpc":"2.0","id":0,"method":"hello","params":{"protocol":1}}"#).await;
        let answer = client.line().await.expect("an answer");
        assert!(answer.contains(r#""caller":"operator""#), "{answer}");
        client
    }

    async fn say(&mut self, text: &str) {
        self.stream.write_all(format!("{text}\n").as_bytes()).await.expect("the listener is gone");
    }

    /// The next line; none at the end.
    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = tokio::time::timeout(FAR, self.stream.read_line(&mut line)).await;
        // A connection that is closed with something unread is reset.
        match read.expect("it says something or ends") {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(line.trim_end().to_owned()),
        }
    }

    async fn ends(&mut self) {
        assert_eq!(self.line().await, None);
    }

    /// The number of the error in the next line.
    async fn error(&mut self) -> i64 {
        let line = self.line().await.expect("an answer");
        let value: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        value["error"]["code"].as_i64().unwrap_or_else(|| panic!("an error: {line}"))
    }
}
