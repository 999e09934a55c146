//! The errors of a client.

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::lines::LineError;
use crate::protocol::{ErrorCode, Malformed, RawError, WireRefusal};

/// The reason why there is no answer. The text names the fault; [`ClientError::hint`] says what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No process listens there, or the one that did has ended.
    #[error("no supervisor at `{}`", path.display())]
    NoSupervisor {
        /// The socket.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The socket cannot be connected to.
    #[error("cannot reach the supervisor at `{}`", path.display())]
    Unreachable {
        /// The socket.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Another process listens there. Nothing was said to it.
    #[error("the process that listens at `{}` is not a supervisor of this user", path.display())]
    Stranger {
        /// The socket.
        path: PathBuf,
    },
    /// A file that was to be handed in cannot be opened.
    #[error("cannot read {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The supervisor does not answer the greeting.
    #[error("the supervisor at `{}` does not answer", path.display())]
    Silent {
        /// The socket.
        path: PathBuf,
    },
    /// The answer is no. That is an answer.
    #[error("the supervisor refused: {}", .0.message)]
    Refused(Box<WireRefusal>),
    /// The supervisor answers with an error that is no refusal.
    #[error("the supervisor cannot answer `{method}`: {message}")]
    Failed {
        /// The method of the request.
        method: &'static str,
        /// The code of the error.
        code: ErrorCode,
        /// The message of the supervisor.
        message: String,
        /// The advice of the supervisor.
        hint: Option<String>,
    },
    /// The question is longer than a line may be; it was not sent.
    #[error("the request has {bytes} bytes, and a line has at most {most}")]
    TooLarge {
        /// The size of the line.
        bytes: u64,
        /// The largest that the supervisor reads.
        most: u64,
    },
    /// The connection is over.
    #[error("the supervisor closed the connection")]
    Closed,
    /// The answer is not one that this version understands.
    #[error("the supervisor said something that is not understood here: {message}")]
    Protocol {
        /// The fault in the answer.
        message: String,
    },
}

impl ClientError {
    /// Returns advice on what to do next.
    pub fn hint(&self) -> Option<&str> {
        Some(match self {
            Self::NoSupervisor { .. } => {
                "agents find their supervisor in OFFSHOOT_SOCKET; without one, begin with `offshoot run`"
            }
            Self::Unreachable { .. } => "only the user who started the supervisor can reach it",
            Self::Stranger { .. } => {
                "its file was replaced: find out which process listens there, as with `ss -xlp`"
            }
            Self::File { .. } => return None,
            Self::Silent { .. } => "it may be stopped or overloaded; look for its process",
            Self::Refused(refused) => return refused.hint.as_deref(),
            Self::Failed { hint: Some(hint), .. } => hint,
            Self::Failed { code, .. } => match code {
                ErrorCode::MethodNotFound | ErrorCode::UnsupportedProtocol => {
                    "the supervisor is of another version; use the same one for both"
                }
                ErrorCode::TooMany => "close connections that are not needed, and try again",
                ErrorCode::AnswerTooLarge => "ask for less at once",
                _ => return None,
            },
            Self::TooLarge { .. } => "keep large texts as values: `context put NAME FILE`",
            Self::Closed => "the supervisor has ended, or was stopped",
            Self::Protocol { .. } => {
                "the supervisor is of another version; use the same one for both"
            }
        })
    }

    pub(super) fn of_connecting(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                Self::NoSupervisor { path, source }
            }
            _ => Self::Unreachable { path, source },
        }
    }

    pub(super) fn of_line(error: LineError) -> Self {
        match error {
            LineError::TooLong => Self::Protocol { message: "a line without end".to_owned() },
            LineError::Broken => Self::Closed,
        }
    }

    pub(super) fn of_malformed(malformed: Malformed) -> Self {
        Self::Protocol { message: malformed.message }
    }

    pub(super) fn of_answer(error: serde_json::Error) -> Self {
        Self::Protocol { message: error.to_string() }
    }

    pub(super) fn of_error(method: &'static str, error: RawError) -> Self {
        #[derive(Deserialize)]
        struct Hint {
            hint: Option<String>,
        }
        let code = ErrorCode::from_number(error.code);
        let data = error.data.as_deref().map_or("{}", |data| data.get());
        if matches!(code, ErrorCode::Refused | ErrorCode::InvalidParams)
            && let Ok(refused) = serde_json::from_str(data)
        {
            return Self::Refused(Box::new(refused));
        }
        let hint = serde_json::from_str(data).ok().and_then(|Hint { hint }| hint);
        Self::Failed { method, code, message: error.message, hint }
    }
}
