//! The connection behind the handles.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};

use super::ClientError;
use crate::lines::{LineError, Lines};
use crate::outbox::Outbox;
use crate::protocol::{
    CANCEL_REQUEST, CancelRequest, Incoming, Outgoing, PROGRESS, Progress, RawError, RequestId,
    RequestProgress, line,
};

type Result = std::result::Result<Box<RawValue>, ClientError>;

/// A command of a handle to its connection.
#[derive(Debug)]
pub(super) enum Command {
    Begin {
        number: u64,
        line: Vec<u8>,
        /// A descriptor that goes with it.
        file: Option<OwnedFd>,
        call: Call,
    },
    Cancel {
        number: u64,
    },
}

/// A call that is open. It hears that the connection is closed as this is dropped.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) method: &'static str,
    pub(super) answer: oneshot::Sender<Result>,
    pub(super) progress: mpsc::Sender<Progress>,
}

/// The reason why a connection is over.
enum Last {
    /// The supervisor gave a reason.
    Error(RawError),
    /// The supervisor is none, or a broken one.
    Nonsense(String),
}

pub(super) struct ConnectionTask {
    lines: Lines,
    outbox: Outbox,
    commands: mpsc::UnboundedReceiver<Command>,
    calls: HashMap<u64, Call>,
    /// The supervisor reads no more; what it has to say still comes.
    deaf: bool,
}

impl ConnectionTask {
    pub(super) fn new(
        lines: Lines,
        outbox: Outbox,
        commands: mpsc::UnboundedReceiver<Command>,
    ) -> Self {
        Self { lines, outbox, commands, calls: HashMap::new(), deaf: false }
    }

    /// Runs until the last handle or the supervisor goes.
    pub(super) async fn run(mut self) {
        loop {
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some(command) => self.obey(command),
                    None => return,
                },
                read = self.lines.next() => {
                    let last = match read {
                        Ok(Some(line)) => self.hear(&line.text),
                        Ok(None) | Err(LineError::Broken) => return,
                        Err(LineError::TooLong) => Some(Last::Nonsense("a line without end".into())),
                    };
                    if let Some(last) = last {
                        return self.end(&last);
                    }
                }
                written = self.outbox.write_some(), if !self.deaf => {
                    self.deaf = written.is_err();
                }
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Begin { number, line, file, call } => {
                self.calls.insert(number, call);
                self.outbox.push_with(line, file);
            }
            Command::Cancel { number } => {
                if self.calls.remove(&number).is_some() {
                    let params = CancelRequest { id: RequestId::number(number) };
                    self.outbox.push(line(&Outgoing::notification(CANCEL_REQUEST, params)));
                }
            }
        }
    }

    /// Takes in a line; what it returns ends the connection.
    fn hear(&mut self, text: &[u8]) -> Option<Last> {
        match Incoming::parse(text) {
            Ok(Incoming::Answer { id: Some(id), result }) => {
                // The answer to a cancelled request has no receiver.
                let call = id.as_number().and_then(|number| self.calls.remove(&number));
                if let Some(Call { method, answer, .. }) = call {
                    let _ = answer.send(result.map_err(|it| ClientError::of_error(method, it)));
                }
                None
            }
            Ok(Incoming::Answer { id: None, result: Err(error) }) => Some(Last::Error(error)),
            Ok(Incoming::Notification { method, params }) if method == PROGRESS => {
                let params = params.as_deref().map_or("{}", RawValue::get);
                if let Ok(RequestProgress { id, progress }) = serde_json::from_str(params)
                    && let Some(call) = id.as_number().and_then(|number| self.calls.get(&number))
                {
                    // Full: the caller has earlier ones to look at.
                    let _ = call.progress.try_send(progress);
                }
                None
            }
            // Messages of a later version.
            Ok(_) => None,
            Err(malformed) => Some(Last::Nonsense(malformed.message)),
        }
    }

    fn end(self, last: &Last) {
        for Call { method, answer, .. } in self.calls.into_values() {
            // An error says that the caller has stopped waiting.
            let _ = answer.send(Err(match last {
                Last::Error(error) => ClientError::of_error(method, error.clone()),
                Last::Nonsense(message) => ClientError::Protocol { message: message.clone() },
            }));
        }
    }
}
