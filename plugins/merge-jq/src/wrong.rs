//! The fault in the text of a program, and its place. Pure.

use std::fmt;

use jaq_core::compile::Undefined;
use jaq_core::load;

/// A fault and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    line: usize,
    /// In characters, from 1.
    column: usize,
    message: String,
}

impl Wrong {
    /// Something else was expected than what stands at `found`, a part of the text.
    pub(crate) fn expected(text: &str, expected: &str, found: &str) -> Self {
        let what = match found.lines().next() {
            None => "the end".to_owned(),
            Some(line) => format!("`{}`", line.chars().take(20).collect::<String>()),
        };
        let expected = match expected {
            "nothing" => "the end",
            other => other,
        };
        Self::at(text, found, format!("expected {expected}, found {what}"))
    }

    /// The name, a part of the text, stands for nothing.
    pub(crate) fn unknown(text: &str, name: &str, what: &Undefined) -> Self {
        let message = match what {
            Undefined::Filter(arity) => {
                format!("there is no filter `{name}` with {arity} arguments")
            }
            other => format!("there is no {} `{name}`", other.as_str()),
        };
        Self::at(text, name, message)
    }

    fn at(text: &str, part: &str, message: String) -> Self {
        let before = &text[..load::span(text, part).start];
        let line = before.lines().count().max(1) + usize::from(before.ends_with('\n'));
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Self { line, column, message }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, message } = self;
        write!(f, "line {line}, column {column}: {message}")
    }
}
