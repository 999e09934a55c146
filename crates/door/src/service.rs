//! The service that answers requests.

use std::os::fd::OwnedFd;

use futures_util::future::BoxFuture;
use offshoot_model::Refusal;
use tokio::sync::mpsc;

use crate::Caller;
use crate::protocol::{Progress, Request, RequestId, Response};

/// The engine behind the door.
///
/// Each call is a future of its own, and several of one connection may be open at once. It is dropped when the caller
/// cancels the request, closes the connection, or ends: whatever must happen then belongs into a `Drop`. A child that
/// was spawned is not ended by that.
pub trait Service: Send + Sync + 'static {
    /// Answers one request with the variant that belongs to it. What the caller may do follows from [`Call::caller`] alone.
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Response, CallError>>;
}

/// A request, with who asks.
#[derive(Debug)]
pub struct Call {
    /// The caller that asks.
    pub caller: Caller,
    /// The request itself.
    pub request: Request,
    /// The descriptor that came with the request: of a file that the caller itself has opened.
    pub file: Option<OwnedFd>,
    /// The sink that is told how the request goes.
    pub progress: ProgressSink,
}

/// The reason why a request has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The answer is no.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// The request could not be done.
    #[error("{message}")]
    Failed {
        /// The message about it.
        message: String,
        /// Advice on what to do next.
        hint: Option<String>,
    },
}

/// The receiver of progress of an open request.
#[derive(Clone, Debug)]
pub struct ProgressSink {
    pub(crate) id: RequestId,
    pub(crate) sender: mpsc::Sender<(RequestId, Progress)>,
}

impl ProgressSink {
    /// Tells. Never waits: where the client does not keep up, only the latest counts, and under a flood not even that.
    pub fn tell(&self, progress: Progress) {
        // Full: the connection has others to forward first. Closed: the client has gone.
        let _ = self.sender.try_send((self.id.clone(), progress));
    }
}

impl From<Refusal> for CallError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

impl CallError {
    /// Something that could not be done.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed { message: message.into(), hint: None }
    }
}
