//! Values of flags that are one word of a few.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use offshoot_merge::OnFailure;
use offshoot_model::{Cleanup, ValueKind};
use offshoot_runtime::OutputFormat;

/// The words for a type: each with its value, and with what the help says of it.
pub(super) type Words<T> = [(&'static str, T, &'static str)];

/// The treatment of a session once its answer was handed over.
pub(super) const CLEANUP: &Words<Cleanup> = &[
    ("keep", Cleanup::Keep, "The session stays"),
    ("delete", Cleanup::Delete, "The folder is removed, and only --all shows the session"),
];

/// The kind of a value.
pub(super) const KIND: &Words<ValueKind> = &[
    ("text", ValueKind::Text, "UTF-8; the file is the value"),
    ("json", ValueKind::Json, "One JSON value"),
    ("bytes", ValueKind::Bytes, "Anything else"),
];

/// The treatment of a piece that did not complete.
pub(super) const ON_FAILURE: &Words<OnFailure> = &[
    (
        "fail",
        OnFailure::Fail,
        "The piece is named, the other results are kept, and the exit code is 1",
    ),
    ("skip", OnFailure::Skip, "The piece is left out"),
    ("include", OnFailure::Include, "The envelope of the piece, error included, is its value"),
];

/// The form of an answer.
pub(super) const OUTPUT: &Words<OutputFormat> = &[
    ("text", OutputFormat::Text, "As text"),
    ("json", OutputFormat::Json, "As JSON where it is an object or an array"),
];

/// Returns the parser of a flag whose value is one of these words.
pub(super) fn one_of<T: Copy + Send + Sync + 'static>(
    words: &'static Words<T>,
) -> impl TypedValueParser<Value = T> {
    let named = words.iter().map(|(word, _, help)| PossibleValue::new(*word).help(*help));
    PossibleValuesParser::new(named).map(|given| {
        let row = words.iter().find(|(word, ..)| *word == given);
        row.expect("the parser accepted a word that it does not list").1
    })
}
