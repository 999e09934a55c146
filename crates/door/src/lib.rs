//! The door: how a running agent, whatever program it is, asks its supervisor.
//!
//! ```text
//!  agent ──▶ Client ── lines of JSON-RPC over a Unix socket ──▶ Server ──▶ Service (the engine)
//!              │ ticket                                           │
//!              └── OFFSHOOT_TICKET                                ├─ SharedTickets  whose ticket, whose process
//!                                                                 ├─ decide         who is calling
//!                                                                 └─ Registry       the supervisors of this user
//! ```
//!
//! Promise:
//! - Who is calling follows from the ticket *and* from what the kernel says about the calling process; no argument and no
//!   variable of a child has a say in it. [`decide`] is the whole rule.
//! - A ticket is printed nowhere: not by `Debug`, not in an error, not in a refusal.
//! - Whatever a client sends, however much and however slowly it reads, costs bounded memory and delays no other client.
//! - A request whose client cancels it or goes away is dropped, and so is whatever it waits for.
//! - A client says nothing to a process that took a supervisor's place, and a supervisor opens no path for a caller.
//! - Deep folders, sockets left by the dead and sockets of the living are told apart and dealt with ([`DoorSocket`]).
//!
//! `docs/protocol.md` describes what travels, for clients in other languages.
//!
//! ```
//! use futures_util::future::{BoxFuture, FutureExt};
//! use offshoot_door::{
//!     Ask, Call, CallError, Client, DoorSocket, Done, Limits, Registry, Report, Request, Response,
//!     Server, Service, SharedTickets, Status,
//! };
//!
//! struct Notes;
//!
//! impl Service for Notes {
//!     fn call(&self, call: Call) -> BoxFuture<'static, Result<Response, CallError>> {
//!         let answer = match call.request {
//!             Request::Report(_) => Ok(Report::respond(Done {})),
//!             other => Err(CallError::failed(format!("`{}` is not for notes", other.method()))),
//!         };
//!         async { answer }.boxed()
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let folder = tempfile::tempdir()?;
//! let registry = Registry::in_folders([folder.path().join("user")]);
//! let socket = DoorSocket::bind(&folder.path().join("doors"), "notes.sock", &registry)?;
//! let server = Server::start(socket, registry.clone(), SharedTickets::new(), Notes, Limits::default())?;
//!
//! let client = Client::connect(server.path(), &registry, None).await?;
//! client.call(Report { text: "half way".into() }).await?;
//! let error = client.call(Status {}).await.unwrap_err();
//! assert_eq!(error.to_string(), "the supervisor cannot answer `status`: `status` is not for notes");
//! server.stop().await;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod caller;
mod client;
mod environment;
mod lineage;
mod lines;
mod outbox;
mod peer;
mod private_folder;
mod protocol;
mod registry;
mod server;
mod service;
mod socket;
mod ticket;
mod ticket_file;
mod tickets;

pub use caller::{Caller, CallerKind, PeerFacts, Supervised, TicketFact, decide};
pub use client::{Client, ClientError};
pub use environment::{SOCKET_VARIABLE, TICKET_FILE_VARIABLE, TICKET_VARIABLE};
pub use peer::{Peer, process_identity, supervisor_above_by_name};
pub use protocol::{
    Activities, Activity, AgentSummary, Ask, BudgetLeft, CallerWord, Cancel, ChildAnswer, Cleanup,
    ContextGet, ContextGrant, ContextInfo, ContextPut, ContextRead, Delegate, Delegated, Done,
    EndReason, EntryKind, ErrorCode, FEATURES, Hello, History, HistoryEntry, HistoryPage,
    KeyedResult, List, Merge, MergeOrder, Merged, Observed, Output, OutputWritten, PROTOCOL, Pause,
    Progress, RaiseBudget, Report, Request, Response, RunActivity, RunName, Runs, Send, Spawn,
    SpawnInput, SpawnMany, Spawned, SpawnedMany, Split, Status, StatusAnswer, Tree, Trees, Value,
    Variable, Variables, Wait, WaitMode, Waited, Welcome, WireEnvelope, WireParked, WireRefusal,
    WireTreeNode, Word,
};
pub use registry::{RegisterError, Registration, Registry, RegistryWatch, Supervisor};
pub use server::{Entrance, Limits, Server, StartError};
pub use service::{Call, CallError, ProgressSink, Service};
pub use socket::{BindError, DoorSocket};
pub use ticket::{ParseTicketError, Ticket};
pub use ticket_file::{TicketFileError, read_ticket};
pub use tickets::{OperatorCommand, SharedTickets, Tickets};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
