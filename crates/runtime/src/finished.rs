//! The end of a run as its runtime returns it, before its output is stored.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{Cost, JsonText, OutputFormat, Reason, Usage, ValueKind};

/// The one result of a run. By now everything it started is gone.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The reason of the end.
    pub reason: Reason,
    /// The answer or output of the run.
    pub output: Output,
    /// The last lines of what it said beside its answer.
    pub diagnostics: Option<String>,
    /// The usage of the whole run. Where this is none, what the run told last holds: exactly where it completed, and as a lower
    /// bound where it was cut off. What was never told is unknown, unless the runtime costs nothing.
    pub usage: Option<Usage>,
    /// The cost of the whole run; none as above.
    pub cost: Option<Cost>,
    /// The time after which a service that refused wants to be asked again, from now. An attempt after a fault waits as long.
    pub retry_after: Option<Duration>,
}

/// The answer of an agent, as its runtime has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Nothing at all.
    None,
    /// UTF-8 text in memory.
    Text(Arc<str>),
    /// A JSON value in memory.
    Json(JsonText),
    /// Bytes that are no UTF-8.
    Bytes(Arc<[u8]>),
    /// A file that the runtime wrote and gives away; the store takes it over by renaming.
    File {
        /// In the data folder's spool.
        path: PathBuf,
        /// The kind of the content: text, JSON that answers, or bytes.
        kind: ValueKind,
    },
}

impl Output {
    /// A text in this format: a JSON value where that is asked for, the text begins like an object or an array, and is one. A bare
    /// number or word stays text.
    pub fn of_text(text: String, format: OutputFormat) -> Self {
        if format == OutputFormat::Json
            && text.trim_start().starts_with(['{', '['])
            && let Ok(json) = JsonText::parse(text.clone())
        {
            return Self::Json(json);
        }
        Self::Text(text.into())
    }
}

impl Finished {
    /// An end with a reason and nothing else. What the run used is what it has told.
    pub fn of(reason: Reason) -> Self {
        Self {
            reason,
            output: Output::None,
            diagnostics: None,
            usage: None,
            cost: None,
            retry_after: None,
        }
    }

    /// A completed run with this text as its answer.
    pub fn text(answer: impl Into<Arc<str>>) -> Self {
        let reason = Reason::Completed { exit_code: None };
        Self { output: Output::Text(answer.into()), ..Self::of(reason) }
    }
}
