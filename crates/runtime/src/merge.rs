//! The contract for a merge function that is not one of ours: what a plugin offers, or a library user brings.
//!
//! ```text
//!   Merge::begin ──▶ MergeJob ── push, push, … ──▶ finish ──▶ one answer
//!                                  └ an early answer: the rest need not come
//! ```
//!
//! Promise asked of every implementation: the answer follows the places of the results, not the order in which they came;
//! `push` takes no longer than a look at the value; dropping the job abandons the merge.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use offshoot_model::{JsonText, RunStatus, ValueKind};

use crate::RunHost;

/// A way to merge, by name.
pub trait Merge: Send + Sync + 'static {
    /// The name by which it is asked for.
    fn name(&self) -> &str;

    /// Begins one merge. Parameters that cannot be used are refused here.
    ///
    /// # Errors
    /// Fails if they cannot be used.
    fn begin(&self, params: &JsonText, host: RunHost) -> Result<Box<dyn MergeJob>, MergeFault>;
}

/// One merge.
pub trait MergeJob: Send {
    /// One result, as soon as it is there, with its place in the request. With an answer, the answer stands, and nothing
    /// more is pushed.
    ///
    /// # Errors
    /// Fails if it cannot be merged; the merge is over then.
    fn push(&mut self, index: u32, result: MergeInput) -> Result<Option<JsonText>, MergeFault>;

    /// The answer to what was pushed. Asked once, at the end.
    fn finish(&mut self) -> BoxFuture<'static, Result<JsonText, MergeFault>>;
}

/// One result, as a merge gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeInput {
    /// The name of the piece.
    pub key: Arc<str>,
    /// The status in which the run ended. Where it did not complete, the value is its envelope.
    pub status: RunStatus,
    /// The answer of the run.
    pub value: MergeValue,
}

/// The answer of a piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeValue {
    /// A text.
    Text(Arc<str>),
    /// A JSON value.
    Json(JsonText),
    /// In a file, for reading only: too large to be handed over, or no text.
    File {
        /// The absolute path.
        path: PathBuf,
        /// The kind of the content.
        kind: ValueKind,
        /// In bytes.
        size: u64,
    },
}

/// The reason why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, derive_more::Display)]
#[display("{message}")]
pub struct MergeFault {
    /// Lower case, names the thing, without a stop.
    pub message: String,
    /// True if the merge panicked, which says that it is broken and not that the results are wrong.
    pub panicked: bool,
}

impl MergeFault {
    /// An ordinary failure.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), panicked: false }
    }
}

impl std::error::Error for MergeFault {}
