//! Reasons why there is no answer.

use std::path::PathBuf;
use std::sync::Arc;

use crate::Failure;

/// Results that cannot become one. What completed is still readable: see [`Fold::partial`](crate::Fold::partial).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// Not all results were pushed, and the strategy has no early answer.
    #[error("{missing} of {expected} results are missing")]
    Missing {
        /// The number of results that never came.
        missing: u32,
        /// The number of results that the request asked for.
        expected: u32,
    },
    /// Some did not complete, and that was not to be passed over.
    #[error("{failed} of {total} pieces did not complete, first {}", named(failures))]
    PiecesFailed {
        /// The first in request order, at most [`LISTED`](crate::LISTED); never empty.
        failures: Vec<Failure>,
        /// The number of all failures, listed or not.
        failed: u32,
        /// The number of pieces.
        total: u32,
    },
    /// A sum met something else.
    #[error("sum: the result of `{key}` is not a number: {found}")]
    NotANumber {
        /// The name of the result; the first one in request order.
        key: Arc<str>,
        /// The beginning of the result.
        found: String,
    },
    /// A merge that makes text or JSON met bytes that are neither. Replacing what cannot be read would change the result.
    #[error("{merge}: the result of `{key}` is not UTF-8 text")]
    NotText {
        /// The name of the merge.
        merge: &'static str,
        /// The name of the result; the first one in request order.
        key: Arc<str>,
    },
    /// A JSON object cannot hold two values under one key, and dropping one would lose a result.
    #[error("structured: two results are called `{key}`")]
    DuplicateKey {
        /// The first repeated key in request order.
        key: Arc<str>,
    },
    /// No value was given often enough.
    #[error("no value was given {needed} times; the most frequent was given {}", times(*reached))]
    NoQuorum {
        /// As asked.
        needed: u32,
        /// The largest count.
        reached: u64,
    },
    /// A merge that picks a result of a piece that completed has none to pick from.
    #[error("{merge}: no piece completed")]
    NoneCompleted {
        /// The name of the merge.
        merge: &'static str,
    },
    /// The pieces have read different versions of a file.
    #[error("{} was written to while its pieces ran: bytes {start} to {end} are not what was cut", path.display())]
    InputChanged {
        /// The file.
        path: Arc<PathBuf>,
        /// The first byte of the first piece that is not what it was.
        start: u64,
        /// The byte behind that piece.
        end: u64,
    },
    /// A run that the merge asked for gave no answer that the merge can use.
    #[error("{merge}: `{label}` {why}")]
    NotAnswered {
        /// The name of the merge.
        merge: &'static str,
        /// The label of the run.
        label: String,
        /// The end of the run, or the refusal.
        why: String,
        /// The code of either; none where the run completed.
        code: Option<Arc<str>>,
        /// Advice that came with it.
        hint: Option<String>,
    },
    /// A merge that is made elsewhere says so itself.
    #[error("{message}")]
    Elsewhere {
        /// The merge, and why it failed.
        message: String,
    },
}

impl MergeError {
    /// True if the results that there are have no answer by this merge, and may have one by another.
    pub const fn is_of_results(&self) -> bool {
        match self {
            Self::NotANumber { .. }
            | Self::NotText { .. }
            | Self::DuplicateKey { .. }
            | Self::NoQuorum { .. } => true,
            Self::Missing { .. }
            | Self::PiecesFailed { .. }
            | Self::NoneCompleted { .. }
            | Self::InputChanged { .. }
            | Self::NotAnswered { .. }
            | Self::Elsewhere { .. } => false,
        }
    }

    /// Returns advice on what to do next.
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::PiecesFailed { .. } => Some(
                "with --on-failure skip, `map` and `fanout` leave them out; with --on-failure include, they keep them in the answer",
            ),
            Self::DuplicateKey { .. } => Some("give each result a key of its own"),
            Self::NotANumber { .. } => Some("--merge concatenate shows what the pieces answered"),
            Self::NotText { .. } => Some(
                "--merge structured:base64 carries it as {\"base64\": …}, --merge concatenate passes every byte on as it is",
            ),
            Self::NoQuorum { .. } => Some("--merge vote shows all counts"),
            Self::InputChanged { .. } => Some("run it again over a copy that nothing writes to"),
            Self::NoneCompleted { .. }
            | Self::Missing { .. }
            | Self::NotAnswered { .. }
            | Self::Elsewhere { .. } => None,
        }
    }
}

/// Writes how often something was given.
pub(crate) fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn named(failures: &[Failure]) -> String {
    failures.first().map(Failure::to_string).unwrap_or_default()
}
