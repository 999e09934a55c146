//! The answer to an append.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::StoreError;

/// Resolves when what was appended is durable, or will never be. Dropping it takes nothing back.
#[must_use = "nothing may be told before its record is durable"]
#[derive(Debug)]
pub struct Commit(CommitState);

#[derive(Debug)]
enum CommitState {
    /// Answered at once: no channel, no allocation.
    Ready(Option<Result<(), StoreError>>),
    Waiting(oneshot::Receiver<Result<(), StoreError>>),
}

impl Commit {
    /// Waits on a thread that may block. Panics inside an async runtime, where `.await` is meant.
    pub fn wait(self) -> Result<(), StoreError> {
        match self.0 {
            CommitState::Ready(result) => {
                result.expect("a commit that was never polled has its answer")
            }
            CommitState::Waiting(answer) => {
                answer.blocking_recv().unwrap_or(Err(StoreError::Closed))
            }
        }
    }

    /// An answer that is there at once.
    pub fn ready(result: Result<(), StoreError>) -> Self {
        Self(CommitState::Ready(Some(result)))
    }

    /// An answer that the writer sends. A writer that is gone without one has kept nothing.
    pub fn waiting(answer: oneshot::Receiver<Result<(), StoreError>>) -> Self {
        Self(CommitState::Waiting(answer))
    }
}

impl Future for Commit {
    type Output = Result<(), StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            CommitState::Ready(result) => {
                Poll::Ready(result.take().expect("a future is not polled after its answer"))
            }
            // A writer that is gone without an answer has written nothing of this.
            CommitState::Waiting(answer) => {
                Pin::new(answer).poll(cx).map(|result| result.unwrap_or(Err(StoreError::Closed)))
            }
        }
    }
}
