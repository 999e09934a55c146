//! The rules of the project that no compiler knows.
//!
//! Each file below is one rule: `check(&Workspace) -> Vec<Finding>`, with its data beside it. A
//! rule reads text only, so that a test can hand it a workspace of three lines.

mod arrows;
mod doc_words;
mod docs;
mod invariants;
pub(crate) mod layer_table;
mod lints;
mod locks;
mod origins;
mod rooms;
mod size;
mod words;

use std::fmt;

use crate::Result;
use crate::workspace::Workspace;

const RULES: &[fn(&Workspace) -> Vec<Finding>] = &[
    arrows::check,
    doc_words::check,
    docs::check,
    invariants::check,
    lints::check,
    locks::check,
    origins::check,
    rooms::check,
    size::check,
    words::check,
];

/// Applies all rules and prints what they find.
pub(crate) fn run(workspace: &Workspace) -> Result {
    let findings: Vec<Finding> = RULES.iter().flat_map(|check| check(workspace)).collect();
    findings.iter().for_each(|finding| eprintln!("{finding}"));
    match findings.len() {
        0 => Ok(()),
        1 => Err("1 finding".into()),
        count => Err(format!("{count} findings").into()),
    }
}

/// Something that is not as it should be.
#[derive(Debug, PartialEq)]
pub(crate) struct Finding {
    /// A path, with a line where there is one.
    place: String,
    message: String,
}

impl Finding {
    pub(crate) fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Compares what a rule finds with the lines expected.
#[cfg(test)]
#[track_caller]
fn expect_findings(found: &[Finding], expected: &[&str]) {
    assert_eq!(found.iter().map(Finding::to_string).collect::<Vec<_>>(), expected);
}
