//! The agent's side.

mod error;
mod task;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use offshoot_model::ValueKind;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};

pub use self::error::ClientError;
use self::task::{Call, Command, ConnectionTask};
use crate::lines::Lines;
use crate::outbox::Outbox;
use crate::peer::{Peer, lineage_of, listener_has_ended};
use crate::protocol::{
    Ask, ContextPut, Hello, Incoming, Outgoing, PROTOCOL, Progress, RequestId, Response, Value,
    Variable, Welcome, line,
};
use crate::server::ANSWER_BYTES;
use crate::socket::{CONNECT_PATIENCE, connect_within, reachable};
use crate::{Registry, Ticket};

/// A connection to a supervisor. Cheap to clone; all clones ask on one connection, which closes with the last of them.
/// Any number of calls may be open at once. A call that is dropped is cancelled.
#[derive(Clone, Debug)]
pub struct Client {
    commands: mpsc::UnboundedSender<Command>,
    next: Arc<AtomicU64>,
    welcome: Arc<Welcome>,
}

/// A supervisor answers a greeting at once; while an agent is being started it waits up to this long itself.
const GREETING_PATIENCE: Duration = Duration::from_secs(20);

/// Progress between the connection and a call. What does not fit is dropped: only the latest counts.
const UNHEARD: usize = 16;

impl Client {
    /// Connects, says hello, and is told as whom it asks. Must be called inside a tokio runtime with its I/O and time.
    ///
    /// A file of a socket may have been replaced. So the process that listens is identified before anything is said to it, least
    /// of all the ticket: it is the supervisor below which this process runs, or, where this runs below none, one that
    /// `registry` knows.
    ///
    /// # Errors
    ///
    /// Fails if there is no supervisor, or it does not want to know this process.
    pub async fn connect(
        socket: &Path,
        registry: &Registry,
        ticket: Option<&Ticket>,
    ) -> Result<Self, ClientError> {
        let stream = open(socket).await?;
        if !is_supervisor(&stream, registry) {
            let path = socket.to_owned();
            // A supervisor that was killed can be gone from the registry before its socket is closed.
            return Err(if listener_has_ended(&stream) {
                ClientError::NoSupervisor { path, source: io::ErrorKind::ConnectionRefused.into() }
            } else {
                ClientError::Stranger { path }
            });
        }
        Self::greet(stream, socket, ticket).await
    }

    /// Says hello on a stream that is open.
    pub(crate) async fn greet(
        stream: UnixStream,
        socket: &Path,
        ticket: Option<&Ticket>,
    ) -> Result<Self, ClientError> {
        let (reader, writer) = stream.into_split();
        let mut lines = Lines::new(reader, ANSWER_BYTES);
        let mut outbox = Outbox::new(writer);
        let id = RequestId::number(0);
        outbox.push(line(&Outgoing::request(&id, "hello", Hello::new(ticket))));
        let greeting = async {
            // A supervisor that has no room says so before it reads.
            let _ = outbox.flush().await;
            loop {
                let text = lines.next().await.map_err(ClientError::of_line)?;
                let text = text.ok_or(ClientError::Closed)?.text;
                let incoming = Incoming::parse(&text).map_err(ClientError::of_malformed)?;
                if let Incoming::Answer { result, .. } = incoming {
                    let result = result.map_err(|error| ClientError::of_error("hello", error))?;
                    let welcome = serde_json::from_str(result.get());
                    break welcome.map_err(ClientError::of_answer);
                }
            }
        };
        let greeted = tokio::time::timeout(GREETING_PATIENCE, greeting).await;
        let welcome: Welcome =
            greeted.map_err(|_| ClientError::Silent { path: socket.to_owned() })??;
        if welcome.protocol != PROTOCOL {
            return Err(ClientError::Protocol {
                message: format!("it speaks protocol {}, not {PROTOCOL}", welcome.protocol),
            });
        }
        // Unbounded, because a call that is dropped cannot wait to say so. What can stand in it is bounded by the calls
        // that are open: one command to begin, one to cancel.
        let (commands, received) = mpsc::unbounded_channel();
        let task = ConnectionTask::new(lines, outbox, received);
        #[expect(
            clippy::disallowed_methods,
            reason = "the connection's one task; it ends with the last clone of the client"
        )]
        tokio::spawn(task.run());
        Ok(Self { commands, next: Arc::new(AtomicU64::new(1)), welcome: Arc::new(welcome) })
    }

    /// Returns the supervisor's answer to the greeting: as whom this client asks, and the features of the supervisor.
    pub fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    ///
    /// A refusal, or whatever else stands in the way of an answer.
    pub async fn call<A: Ask>(&self, ask: A) -> Result<A::Answer, ClientError> {
        self.call_with_progress(ask, |_| {}).await
    }

    /// Asks, and hears how it goes meanwhile.
    ///
    /// # Errors
    ///
    /// As [`Client::call`].
    pub async fn call_with_progress<A: Ask>(
        &self,
        ask: A,
        on_progress: impl FnMut(Progress),
    ) -> Result<A::Answer, ClientError> {
        self.ask(ask, None, on_progress).await
    }

    /// Keeps the content of a file as a value. The file is the one that this process has at the path: it is opened here, and
    /// the supervisor gets its descriptor.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be opened, and as [`Client::call`] does.
    pub async fn put_file(
        &self,
        name: impl Into<String>,
        kind: Option<ValueKind>,
        path: &Path,
    ) -> Result<Variable, ClientError> {
        let file = open_file(path).await?;
        self.put_open_file(name, kind, path.display().to_string(), file).await
    }

    /// Puts a file that is open for reading, whatever the place in it. Messages call it `title`.
    ///
    /// # Errors
    ///
    /// As [`Client::call`].
    pub async fn put_open_file(
        &self,
        name: impl Into<String>,
        kind: Option<ValueKind>,
        title: impl Into<String>,
        file: impl Into<OwnedFd>,
    ) -> Result<Variable, ClientError> {
        let put = ContextPut { kind, ..ContextPut::new(name, Value::File(title.into())) };
        self.ask(put, Some(file.into()), |_| {}).await
    }

    async fn ask<A: Ask>(
        &self,
        ask: A,
        file: Option<OwnedFd>,
        mut on_progress: impl FnMut(Progress),
    ) -> Result<A::Answer, ClientError> {
        let request = ask.into();
        let method = request.method();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let id = RequestId::number(number);
        let line = line(&Outgoing::request(&id, method, request.params()));
        let most = self.welcome.max_message_bytes;
        // The line break is not part of the line.
        if line.len() as u64 > most + 1 {
            return Err(ClientError::TooLarge { bytes: line.len() as u64, most });
        }
        let (answer, mut answered) = oneshot::channel();
        let (progress, mut progressed) = mpsc::channel(UNHEARD);
        let call = Call { method, answer, progress };
        let command = Command::Begin { number, line, file, call };
        self.commands.send(command).map_err(|_| ClientError::Closed)?;
        let mut open = Open { client: self, number, over: false };
        let result = loop {
            tokio::select! {
                // Progress that came before the answer is reported before it.
                biased;
                Some(progress) = progressed.recv() => on_progress(progress),
                answer = &mut answered => break answer,
            }
        };
        open.over = true;
        let result = result.unwrap_or(Err(ClientError::Closed))?;
        let response = Response::parse(method, &result).map_err(ClientError::of_answer)?;
        Ok(A::answer(response).expect("a response is parsed as that of its method"))
    }
}

/// A call that is open, and is cancelled where it is dropped before it is over.
struct Open<'a> {
    client: &'a Client,
    number: u64,
    over: bool,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if !self.over {
            // An error says that the connection has ended, and its requests with it.
            let _ = self.client.commands.send(Command::Cancel { number: self.number });
        }
    }
}

async fn open(socket: &Path) -> Result<UnixStream, ClientError> {
    let path = socket.to_owned();
    // A full queue makes the connecting thread wait, which is what a busy supervisor's clients should do.
    let connecting = tokio::task::spawn_blocking(move || {
        let stream = connect_within(&reachable(&path)?, CONNECT_PATIENCE)?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    });
    let connected = connecting.await.expect("connecting does not panic");
    let stream = connected.and_then(UnixStream::from_std);
    stream.map_err(|source| ClientError::of_connecting(socket, source))
}

/// True if a supervisor of this user listens at the other end.
fn is_supervisor(stream: &UnixStream, registry: &Registry) -> bool {
    let Ok(peer) = Peer::of(stream) else { return false };
    if peer.uid != rustix::process::getuid().as_raw() {
        return false;
    }
    // In a world of processes of its own a sandboxed agent sees no supervisor, and cannot tell one from another.
    if peer.pid.is_none() {
        return true;
    }
    let Some(lineage) = lineage_of(stream, peer) else { return false };
    registry.believes(lineage.process())
}

async fn open_file(path: &Path) -> Result<File, ClientError> {
    let absolute = path.to_owned();
    let opening = tokio::task::spawn_blocking(move || {
        // Without waiting for the writer of a pipe.
        let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        OpenOptions::new().read(true).custom_flags(flags).open(absolute)
    });
    let opened = opening.await.expect("opening does not panic");
    opened.map_err(|source| ClientError::File { path: path.to_owned(), source })
}
