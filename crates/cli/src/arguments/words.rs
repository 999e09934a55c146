//! Values of flags that are one word of a few.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use offshoot_display::json::Format;
use offshoot_merge::OnFailure;
use offshoot_model::{Cleanup, RunStatus, ValueKind};
use offshoot_runtime::OutputFormat;

/// The words for a type: each with its value, and with what the help says of it.
pub(crate) type Words<T> = [(&'static str, T, &'static str)];

/// The treatment of a session once its answer was handed over.
pub(crate) const CLEANUP: &Words<Cleanup> = &[
    ("keep", Cleanup::Keep, "The session stays"),
    ("delete", Cleanup::Delete, "The folder is removed, and only --all shows the session"),
];

/// The version of the form of JSON.
pub(crate) const FORMAT: &Words<Format> = &[
    (
        "1",
        Format::V1,
        "A kind is a word, or an object with one word as its key; a time may be a number",
    ),
    ("2", Format::V2, "A kind is an object with a `type`, and a time is RFC 3339"),
];

/// The kind of a value.
pub(crate) const KIND: &Words<ValueKind> = &[
    ("text", ValueKind::Text, "UTF-8; the file is the value"),
    ("json", ValueKind::Json, "One JSON value"),
    ("bytes", ValueKind::Bytes, "Anything else"),
];

/// The treatment of a piece that did not complete.
pub(crate) const ON_FAILURE: &Words<OnFailure> = &[
    (
        "fail",
        OnFailure::Fail,
        "The piece is named, the other results are kept, and the exit code is 1",
    ),
    ("skip", OnFailure::Skip, "The piece is left out"),
    ("include", OnFailure::Include, "The envelope of the piece, error included, is its value"),
];

/// The form of an answer.
pub(crate) const OUTPUT: &Words<OutputFormat> = &[
    ("text", OutputFormat::Text, "As text"),
    ("json", OutputFormat::Json, "As JSON where it is an object or an array"),
];

/// The status of a run.
pub(crate) const STATUS: &Words<RunStatus> = &[
    ("queued", RunStatus::Queued, "It waits for a slot"),
    ("starting", RunStatus::Starting, "It holds a slot, and its runtime starts it"),
    ("running", RunStatus::Running, "Its runtime says that it has started"),
    ("waiting", RunStatus::Waiting, "It waits for its children, and has lent its slot"),
    ("completed", RunStatus::Completed, "The only success"),
    ("failed", RunStatus::Failed, "It ended by itself, and not well"),
    ("timed_out", RunStatus::TimedOut, "Its time was over"),
    ("cancelled", RunStatus::Cancelled, "It was ended on request"),
    ("lost", RunStatus::Lost, "Its ending is not known"),
    ("client_gone", RunStatus::ClientGone, "The client of a root from outside has gone"),
];

/// Returns the parser of a flag whose value is one of these words.
pub(crate) fn one_of<T: Copy + Send + Sync + 'static>(
    words: &'static Words<T>,
) -> impl TypedValueParser<Value = T> {
    let named = words.iter().map(|(word, _, help)| PossibleValue::new(*word).help(*help));
    PossibleValuesParser::new(named).map(|given| {
        let row = words.iter().find(|(word, ..)| *word == given);
        row.expect("the parser accepted a word that it does not list").1
    })
}
