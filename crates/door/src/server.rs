//! The supervisor's side: one task that lets people in, and one for each connection.
//!
//! ```text
//!  DoorSocket ── accept ──▶ who is it? ──▶ connection ── hello ──▶ caller ── requests ──▶ Service
//!                             │ /proc            │ closed: its open requests are dropped
//!                             ▼                  ▼
//!                       too many: told so    SharedTickets: is its run still alive?
//! ```
//!
//! Promise: a client holds at most one line of its own in memory, some open requests and one answer beside those that fit into
//! 64 KiB, whatever it sends and however slowly it reads. No client delays another. A connection is what it was when it was let
//! in: its process is identified then, by the kernel, and never again.

mod connection;
mod greeting;
mod slots;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use offshoot_model::RunId;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tracing::{Instrument, Span, error_span};

use self::slots::{ConnectionSlot, ConnectionSlots, Holder};
use crate::caller::Supervised;
use crate::lineage::Lineage;
use crate::peer::{lineage_of, own_lineage};
use crate::protocol::{Answer, ErrorCode, RawError, line};
use crate::registry::{RegisterError, Registration};
use crate::service::Service;
use crate::socket::SocketFiles;
use crate::{CallerKind, Client, ClientError, DoorSocket, Peer, Registry, SharedTickets};

/// Answers at a socket for as long as it lives. Dropped, it closes every connection and removes the socket.
#[derive(Debug)]
pub struct Server {
    task: Option<JoinHandle<()>>,
    stop: Option<oneshot::Sender<()>>,
    files: Option<SocketFiles>,
    registration: Option<Registration>,
    entrance: Entrance,
}

/// The way into a server for runs that live in its own process. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Entrance {
    internal: mpsc::UnboundedSender<InternalConnection>,
    path: PathBuf,
}

/// Bounds of what clients can take.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at once. More are told so and closed.
    pub connections: usize,
    /// Connections at once of the processes of one run, so that one agent cannot shut out the others; and of all processes
    /// together of which it is not known yet to which run they belong.
    pub connections_per_run: usize,
    /// The part of all connections that is kept for processes that no supervisor has started: the operator's.
    pub reserved: usize,
    /// Open requests at once of one connection. More are refused.
    pub requests: usize,
    /// The longest line that is read. A longer one ends the connection.
    pub message_bytes: usize,
    /// The longest line that is written. A longer answer becomes an error.
    pub answer_bytes: usize,
    /// For how long a connection may be silent before it says who it is, and for how long the engine may be silent about a
    /// run that has called already.
    pub hello: Duration,
}

/// The door could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The socket cannot be listened on.
    #[error("cannot listen on the socket")]
    Listen(#[source] io::Error),
    /// The supervisor could not be written down, so that processes below it would not find it.
    #[error(transparent)]
    Register(#[from] RegisterError),
}

/// Each is a descriptor, and 1024 descriptors are all that many systems grant: half of them are left for the pipes of
/// running agents.
const CONNECTIONS: usize = 512;

/// An agent has its command line calls, a server of its own and what these start; 64 at once are a loop.
const CONNECTIONS_PER_RUN: usize = 64;

/// The operator looks and acts with a command each, which takes milliseconds.
const RESERVED: usize = 16;

/// A client that has more questions than this waits for answers first.
const REQUESTS: usize = 256;

/// A task text of a million characters; what is larger is a value, and travels as a file.
const MESSAGE_BYTES: usize = 1 << 20;

/// A tree of a hundred thousand runs; clients trust their supervisor with that much.
pub(crate) const ANSWER_BYTES: usize = 64 << 20;

/// A process that has connected has its greeting ready.
const HELLO: Duration = Duration::from_secs(10);

/// The time for which no connection is accepted after the system had no descriptor left.
const BREATH: Duration = Duration::from_millis(100);

/// The state that all connections share.
pub(crate) struct Shared {
    service: Box<dyn Service>,
    tickets: SharedTickets,
    registry: Registry,
    limits: Limits,
    /// The supervisor itself and its parents. None where this system does not tell them: then no caller can be identified.
    own: Option<Lineage>,
}

/// An accepted connection, with its peer as it was at that moment.
struct Accepted {
    stream: UnixStream,
    peer: Peer,
    lineage: Option<Lineage>,
    /// As whom it asks, where that is certain without a look at its process.
    known: Option<CallerKind>,
    /// The slot of the connection. A connection from inside takes none: connections of others must not shut out the server's own.
    slot: Option<ConnectionSlot>,
}

/// A connection that the supervisor made itself.
#[derive(Debug)]
struct InternalConnection {
    stream: UnixStream,
    run: RunId,
}

impl Server {
    /// Opens the door. Must be called inside a tokio runtime with its I/O and time.
    ///
    /// # Errors
    ///
    /// See [`StartError`].
    pub fn start(
        socket: DoorSocket,
        registry: Registry,
        tickets: SharedTickets,
        service: impl Service,
        limits: Limits,
    ) -> Result<Self, StartError> {
        let path = socket.path().to_owned();
        let folder = socket.folder().to_owned();
        let DoorSocket { listener, files } = socket;
        let listener = UnixListener::from_std(listener).map_err(StartError::Listen)?;
        let registration = registry.register(&path, Some(&folder))?;
        let shared = Arc::new(Shared {
            service: Box::new(service),
            tickets,
            registry,
            limits,
            own: own_lineage(),
        });
        let (stop, stopped) = oneshot::channel();
        // Unbounded, because each is a connection of this process: of a root that is no program, and of a tool that a model calls.
        let (internal, inside) = mpsc::unbounded_channel();
        #[expect(
            clippy::disallowed_methods,
            reason = "the server's one task; it ends with the server and takes its connections along"
        )]
        let task = tokio::spawn(accept(listener, shared, stopped, inside));
        Ok(Self {
            task: Some(task),
            stop: Some(stop),
            files: Some(files),
            registration: Some(registration),
            entrance: Entrance { internal, path },
        })
    }

    /// A client in this very process that asks as a run which lives here too, such as a root that is no program. The holder
    /// of this server names that run; no other process can come this way.
    ///
    /// # Errors
    ///
    /// Fails if the system has no descriptor left, or the server has ended.
    pub async fn inside(&self, run: RunId) -> Result<Client, ClientError> {
        self.entrance.client(run).await
    }

    /// The way in for runs of this very process, which does not keep the server open.
    pub fn entrance(&self) -> Entrance {
        self.entrance.clone()
    }

    /// Returns the path to connect to, for `OFFSHOOT_SOCKET`.
    pub fn path(&self) -> &Path {
        &self.entrance.path
    }

    /// Closes the door, and returns when every connection is closed and every open request dropped.
    pub async fn stop(mut self) {
        self.files = None;
        self.registration = None;
        self.stop = None;
        if let Some(task) = self.task.take() {
            // A panic in it has been told already, and there is nothing left to stop.
            let _ = task.await;
        }
    }
}

impl Entrance {
    /// A client that asks as this run.
    ///
    /// # Errors
    ///
    /// Fails if the system has no descriptor left, or the server has ended.
    pub async fn client(&self, run: RunId) -> Result<Client, ClientError> {
        let Self { internal, path } = self;
        let unreachable = |source| ClientError::Unreachable { path: path.clone(), source };
        let (here, stream) = UnixStream::pair().map_err(unreachable)?;
        internal.send(InternalConnection { stream, run }).map_err(|_| ClientError::Closed)?;
        Client::greet(here, path, None).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: CONNECTIONS,
            connections_per_run: CONNECTIONS_PER_RUN,
            reserved: RESERVED,
            requests: REQUESTS,
            message_bytes: MESSAGE_BYTES,
            answer_bytes: ANSWER_BYTES,
            hello: HELLO,
        }
    }
}

/// Lets people in until the server is stopped or dropped.
async fn accept(
    listener: UnixListener,
    shared: Arc<Shared>,
    mut stopped: oneshot::Receiver<()>,
    mut inside: mpsc::UnboundedReceiver<InternalConnection>,
) {
    let mut connections = JoinSet::new();
    let slots = ConnectionSlots::default();
    loop {
        tokio::select! {
            // The sender says nothing: it goes away.
            _ = &mut stopped => break,
            // A panic in it has been told by its hook, and affects that client only.
            Some(_) = connections.join_next() => {}
            Some(connection) = inside.recv() => {
                if let Some(accepted) = Accepted::inside(connection) {
                    let span = accepted.span();
                    connections.spawn(connection::serve(accepted, Arc::clone(&shared)).instrument(span));
                }
            }
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let Some(mut accepted) = Accepted::of(stream) else { continue };
                    let holder = accepted.holder(&shared, slots.are_scarce(&shared.limits));
                    match slots.take(holder, &shared.limits) {
                        Ok(slot) => {
                            accepted.slot = Some(slot);
                            let span = accepted.span();
                            connections.spawn(connection::serve(accepted, Arc::clone(&shared)).instrument(span));
                        }
                        Err(message) => {
                            tracing::warn!(pid = accepted.peer.pid, "connection refused, too many are open");
                            accepted.send_away(&message);
                        }
                    }
                }
                // No descriptor is left, as a rule; new connections stay in the queue.
                Err(error) => {
                    tracing::warn!(%error, "connection not accepted, tried again");
                    breathe().await;
                }
            },
        }
    }
    connections.shutdown().await;
}

impl Accepted {
    /// None where the kernel does not say who it is.
    fn of(stream: UnixStream) -> Option<Self> {
        let peer = Peer::of(&stream).ok()?;
        let lineage = lineage_of(&stream, peer);
        Some(Self { stream, peer, lineage, known: None, slot: None })
    }

    fn inside(InternalConnection { stream, run }: InternalConnection) -> Option<Self> {
        let peer = Peer::of(&stream).ok()?;
        Some(Self { stream, peer, lineage: None, known: Some(CallerKind::Run(run)), slot: None })
    }

    /// The span of its connection. The run is recorded once it is known.
    fn span(&self) -> Span {
        error_span!("connection", pid = self.peer.pid, run = tracing::field::Empty)
    }

    /// For whom it is counted, as far as its parents tell before it says anything. Only where places are scarce is it worth
    /// the time to look for other supervisors of this user, below which it may run.
    fn holder(&self, shared: &Shared, scarce: bool) -> Holder {
        let (Some(lineage), Some(own)) = (self.lineage.as_ref(), shared.own.as_ref()) else {
            return Holder::Stray;
        };
        let tickets = shared.tickets.watch();
        let others = if scarce { shared.registry.supervisors() } else { Vec::new() };
        let others: Vec<_> = others.into_iter().map(|other| other.process).collect();
        let facts = lineage.place(true, &tickets.borrow(), own, &others);
        match (facts.descends_from, facts.supervised) {
            (Some(run), _) => Holder::Run(run),
            (None, Supervised::No) => Holder::Outside,
            (None, Supervised::Here | Supervised::Elsewhere) => Holder::Stray,
        }
    }

    /// One line, and that is all. It fits into the empty buffer of a socket that was just opened.
    fn send_away(self, message: &str) {
        let error = RawError::new(ErrorCode::TooMany, message);
        if let Ok(mut stream) = self.stream.into_std() {
            // The client may be gone, and then wants no answer.
            let _ = stream.write(&line(&Answer::error(None, error)));
        }
    }
}

async fn breathe() {
    #[expect(
        clippy::disallowed_methods,
        reason = "descriptors are held by the whole process and by others: nothing tells when one is free again"
    )]
    tokio::time::sleep(BREATH).await;
}
