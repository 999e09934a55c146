//! The same pictures for programs, and the versions of their form.
//!
//! ```text
//!  record, types ──▶ version 1 ──▶ edits of its text ──▶ version 2
//! ```
//!
//! Version 1 is the form of the record, of which links and signatures are made: it stays. In version 2 what is one of several
//! things is an object whose `type` says which, and a moment is RFC 3339.
//!
//! Promise: version 2 is version 1 with single places of its text replaced. All else, and so each byte of an answer, passes as it
//! is.

mod edit;
mod schema;

use std::io::{self, Write};

use offshoot_model::Event;

pub use schema::event_schema;

use edit::{Place, edited};

/// The version of the form in which JSON is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// As the record has it: a kind is a word or an object with one word as its key, a moment is a number of microseconds.
    V1,
    /// A kind is an object with a `type`, and a moment is RFC 3339.
    #[default]
    V2,
}

/// A document that has places which differ between the versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Document {
    /// One event.
    Event,
    /// A tree.
    Tree,
    /// A list of trees.
    Trees,
    /// All that is handed on of a run, with its tree.
    Report,
    /// The plan of a dry run.
    DryRun,
    /// The findings about a plugin.
    Findings,
}

/// A reason. That of a quota has the moment of its reset.
const ENDED: Place = Place::All(&[Place::Tag, Place::In(&[("until", Place::Time)])]);

/// The places of a reason at the end of a path.
const REASON: Place = Place::In(&[("reason", ENDED)]);

/// The plan of a tree, with the files that it reads.
const PLAN: Place = Place::In(&[(
    "plan",
    Place::In(&[("inputs", Place::Each(&Place::In(&[("modified", Place::Time)])))]),
)]);

/// A run in a tree, with those below it.
static NODE: Place = Place::In(&[
    ("reason", ENDED),
    ("parked", Place::In(&[("after", ENDED)])),
    ("children", Place::Each(&NODE)),
]);

static EVENT: Place = Place::In(&[
    ("at", Place::Time),
    (
        "kind",
        Place::Kind(&[
            ("admitted", PLAN),
            ("stopping", REASON),
            ("ended", REASON),
            ("resumed", Place::In(&[("after", ENDED)])),
            ("backs_off", Place::In(&[("until", Place::Time)])),
            ("parked", Place::In(&[("until", Place::Time)])),
            ("quota_seen", Place::In(&[("until", Place::Time)])),
        ]),
    ),
]);

static TREES: Place = Place::Each(&NODE);
static REPORT: Place = Place::In(&[("tree", Place::Same(&NODE))]);
static DRY_RUN: Place = PLAN;
static FINDINGS: Place = Place::Each(&Place::In(&[("verdict", Place::Kind(&[]))]));

/// Brings a document from version 1 to this one. What is not as expected stays as it is.
pub fn printed(text: String, document: Document, format: Format) -> String {
    match format {
        Format::V1 => text,
        Format::V2 => edited(
            text,
            match document {
                Document::Event => &EVENT,
                Document::Tree => &NODE,
                Document::Trees => &TREES,
                Document::Report => &REPORT,
                Document::DryRun => &DRY_RUN,
                Document::Findings => &FINDINGS,
            },
        ),
    }
}

/// One event as a line of compact JSON.
///
/// # Errors
/// Those of `out`.
pub fn write_event(event: &Event, format: Format, out: &mut dyn Write) -> io::Result<()> {
    let line = serde_json::to_string(event)?;
    out.write_all(printed(line, Document::Event, format).as_bytes())?;
    out.write_all(b"\n")
}
