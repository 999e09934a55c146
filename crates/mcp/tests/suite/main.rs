//! The server between a real client and a real door, with a scripted engine behind it.

mod calls;
mod later;
mod waits;

use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use offshoot_door::{
    AgentSummary, Ask, Call, CallError, CallerKind, Cancel, ChildAnswer, Client, ContextGet,
    ContextInfo, ContextPut, ContextRead, Delegate, Delegated, Done, DoorSocket, History,
    HistoryPage, Limits, List, Merge, Merged, Observed, Progress, ProgressSink, Registry, Report,
    Request, Response, Runs, Send, Server, Service, SharedTickets, Spawn, SpawnMany, Spawned,
    SpawnedMany, Status, StatusAnswer, Value, Variable, Variables, Wait, Waited, WireEnvelope,
    WireRefusal,
};
use offshoot_mcp::{Options, ServeError, serve};
use offshoot_model::{
    AgentId, ContentHash, Directly, Ending, Envelope, GovernedBy, JsonText, Payload, Refusal,
    RefusalCode, RunId, SessionKey, ValueKind,
};
use rmcp::model::{CallToolRequestParams, CallToolResult, JsonObject, ProgressNotificationParam};
use rmcp::service::{NotificationContext, RunningService};
use rmcp::{ClientHandler, RoleClient, ServiceExt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use uuid::Uuid;

/// Far longer than anything takes. It ends a test that would hang.
const FAR: Duration = Duration::from_secs(60);

/// The requests that the engine behind the door was asked, and their fates.
#[derive(Debug, PartialEq)]
enum Heard {
    Asked(Request),
    /// The request was dropped with its caller.
    WaitDropped,
}

/// An engine that does as the question says.
struct Fake {
    may_spawn: bool,
    /// True if the session prefers some agent.
    prefers: bool,
    heard: mpsc::UnboundedSender<Heard>,
}

/// A client that passes on what it is told meanwhile.
struct Model {
    progress: mpsc::UnboundedSender<ProgressNotificationParam>,
}

/// Client, server, door and engine in one process.
struct House {
    client: RunningService<RoleClient, Model>,
    progress: mpsc::UnboundedReceiver<ProgressNotificationParam>,
    heard: mpsc::UnboundedReceiver<Heard>,
    served: JoinSet<Result<(), ServeError>>,
    door: Server,
    registry: Registry,
    _folder: tempfile::TempDir,
}

impl ClientHandler for Model {
    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _cx: NotificationContext<RoleClient>,
    ) {
        // The test may be over.
        let _ = self.progress.send(progress);
    }
}

impl Service for Fake {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Response, CallError>> {
        let Call { caller, request, progress, .. } = call;
        if !matches!(request, Request::Status(_)) {
            self.heard.send(Heard::Asked(request.clone())).expect("the test listens");
        }
        let (heard, kind, may_spawn) = (self.heard.clone(), caller.kind, self.may_spawn);
        let prefers = self.prefers;
        async move {
            Ok(match request {
                Request::Status(_) => Status::respond(status_answer(kind, may_spawn, prefers)),
                Request::Spawn(_) if !may_spawn => return Err(too_deep().into()),
                Request::Spawn(spawn) if spawn.task == "impossible" => {
                    return Err(CallError::failed("out of paper"));
                }
                Request::Spawn(_) => {
                    let lowered = Vec::new();
                    Spawn::respond(Spawned {
                        run_id: run(7),
                        session_key: key(),
                        lowered,
                        changed: Vec::new(),
                    })
                }
                Request::Delegate(delegate) => {
                    let message = "no preferred agent fits".to_owned();
                    let (reason, scores) = (Directly::NoMatch, Vec::new());
                    Delegate::respond(Delegated::ExecuteDirectly {
                        reason,
                        message,
                        observation: delegate.spawn.task_type.map(|_| 1),
                        scores,
                        learned: None,
                    })
                }
                Request::SpawnMany(many) => return Ok(SpawnMany::respond(spawned_many(*many))),
                Request::Observed(_) => Observed::respond(Done {}),
                Request::Send(_) => Send::respond(Done {}),
                Request::History(_) => History::respond(HistoryPage::default()),
                Request::Merge(_) => Merge::respond(sum("42")),
                Request::Wait(wait) => return waited(*wait, heard, progress).await,
                Request::Report(_) => Report::respond(Done {}),
                Request::Cancel(_) => Cancel::respond(Done {}),
                Request::List(_) => List::respond(Runs::default()),
                Request::ContextPut(put) => ContextPut::respond(variable(put.name)),
                Request::ContextInfo(_) => {
                    ContextInfo::respond(Variables { variables: vec![variable("plan".into())] })
                }
                Request::ContextGet(get) => ContextGet::respond(ContextRead {
                    variable: variable(get.name),
                    value: Value::Text("tea".into()),
                    more: false,
                    next: None,
                }),
                other => return Err(CallError::failed(format!("no {} here", other.method()))),
            })
        }
        .boxed()
    }
}

/// One child for each that is asked for, but none for an impossible task; the wait for them is over at once.
fn spawned_many(many: SpawnMany) -> SpawnedMany {
    let child = |spawn: &Spawn| match spawn.task.as_str() {
        "impossible" => ChildAnswer {
            refusal: Some(Box::new(WireRefusal::from(&too_deep()))),
            ..ChildAnswer::default()
        },
        _ => {
            ChildAnswer { run_id: Some(run(7)), session_key: Some(key()), ..ChildAnswer::default() }
        }
    };
    let waited = many.wait.map(|wait| Waited {
        ended: vec![completed("42")],
        pending: vec![run(8)],
        merged: wait.merge.map(|_| Merged { name: None, ..sum("42") }),
    });
    SpawnedMany { children: many.children.iter().map(child).collect(), waited }
}

fn sum(number: &str) -> Merged {
    Merged {
        strategy: "sum".into(),
        data: Some(JsonText::parse(number.into()).expect("JSON")),
        name: Some("merged-1".into()),
        failed: vec![],
        error: None,
        chosen: None,
    }
}

/// One run has ended and one goes on for ever, which only a time-out can end.
async fn waited(
    wait: Wait,
    heard: mpsc::UnboundedSender<Heard>,
    progress: ProgressSink,
) -> Result<Response, CallError> {
    if wait.runs.iter().all(|name| name.0 == run(7).to_string()) {
        let ended = vec![completed("42")];
        return Ok(Wait::respond(Waited { ended, ..Waited::default() }));
    }
    let _dropped = WaitGuard(heard);
    progress.tell(Progress { ended: 1, total: 2, ..Progress::default() });
    let timeout = Duration::from_millis(wait.timeout_ms.expect("no wait is without an end"));
    let for_ever = tokio::time::timeout(timeout, std::future::pending::<()>()).await;
    for_ever.expect_err("it never comes");
    let (ended, pending) = (vec![completed("42")], vec![run(8)]);
    Ok(Wait::respond(Waited { ended, pending, merged: None }))
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

fn key() -> SessionKey {
    SessionKey::parse("agent:main:subagent:7").expect("a key")
}

fn completed(text: &str) -> WireEnvelope {
    let ending = Ending::completed(Payload::text(text));
    WireEnvelope::from(&Envelope::of(&ending, key(), run(7), AgentId::main(), 1))
}

fn too_deep() -> Refusal {
    let setting = GovernedBy {
        key: "maxDepth".into(),
        agent: Some("main".into()),
        value: JsonText::parse("3".into()).expect("JSON"),
        origin: "built-in".into(),
    };
    Refusal::new(RefusalCode::DepthLimit, "Maximum subagent depth reached (3).")
        .with_hint("do it yourself")
        .governed_by(Some(Box::new(setting)))
}

fn variable(name: String) -> Variable {
    let (kind, hash) = (ValueKind::Text.into(), ContentHash::of(b"tea"));
    Variable { name, kind, size: 3, hash, path: None, created_at: None }
}

fn status_answer(kind: CallerKind, may_spawn: bool, prefers: bool) -> StatusAnswer {
    let id = AgentId::parse("scout").expect("the text is no id");
    let scout = AgentSummary { id, description: None, why: Some("For a look".into()) };
    StatusAnswer {
        caller: kind.word(),
        run_id: kind.run(),
        session_key: None,
        agent: None,
        depth: 3,
        delegation: None,
        max_depth: 3,
        may_spawn,
        budget: None,
        tools: None,
        agents: prefers.then_some(scout).into_iter().collect(),
    }
}

impl House {
    async fn new() -> Self {
        Self::with(true, Options::default()).await
    }

    async fn with(may_spawn: bool, options: Options) -> Self {
        Self::of(may_spawn, false, options).await
    }

    async fn of(may_spawn: bool, prefers: bool, options: Options) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let registry = Registry::in_folders([folder.path().join("user")]);
        let socket = DoorSocket::bind(&folder.path().join("doors"), "a.sock", &registry)
            .expect("no other connection is open");
        let (sender, heard) = mpsc::unbounded_channel();
        let service = Fake { may_spawn, prefers, heard: sender };
        let door = Server::start(
            socket,
            registry.clone(),
            SharedTickets::new(),
            service,
            Limits::default(),
        )
        .expect("it can be listened on");
        let visitor =
            Client::connect(door.path(), &registry, None).await.expect("the operator may come");

        // Far more than a test says.
        let (here, there) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(there);
        let mut served = JoinSet::new();
        served.spawn(serve(visitor, options, input, output));
        let (sender, progress) = mpsc::unbounded_channel();
        let client = Model { progress: sender }.serve(here).await.expect("they shake hands");
        Self { client, progress, heard, served, door, registry, _folder: folder }
    }

    /// Calls a tool. That it is no protocol error is part of every test.
    async fn call(&self, tool: &'static str, arguments: serde_json::Value) -> CallToolResult {
        let call = self.client.call_tool(params(tool, arguments));
        tokio::time::timeout(FAR, call).await.expect("it is answered").expect("with a result")
    }

    async fn heard(&mut self) -> Heard {
        let heard = tokio::time::timeout(FAR, self.heard.recv()).await;
        heard.expect("something happens").expect("the service is there")
    }

    async fn progress(&mut self) -> ProgressNotificationParam {
        let progress = tokio::time::timeout(FAR, self.progress.recv()).await;
        progress.expect("a sign of life").expect("the client is there")
    }

    /// The client goes, and the server with it.
    async fn close(mut self) {
        self.client.close().await.expect("the client ends");
        let ended = tokio::time::timeout(FAR, self.served.join_next()).await;
        let ended = ended.expect("the server ends").expect("it was started");
        ended.expect("it does not panic").expect("it served");
        self.door.stop().await;
    }
}

fn params(tool: &'static str, arguments: serde_json::Value) -> CallToolRequestParams {
    let arguments: JsonObject = serde_json::from_value(arguments).expect("an object");
    CallToolRequestParams::new(tool).with_arguments(arguments)
}
