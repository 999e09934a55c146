//! The answer of a merge.

use std::io::{self, Write};
use std::sync::Arc;

use offshoot_model::{Payload, ValueKind};

use crate::error::times;
use crate::fold::{FoldState, Given, Seen};
use crate::kept_result::KeptResult;
use crate::text::{self, Spacing};
use crate::values::Source;
use crate::{Failure, Listed, Values};

/// The merged answer, or what there is of it so far. Large results are in it by reference: it is written piece by
/// piece, and never as a whole in memory.
#[derive(Clone, Debug)]
pub struct Answer {
    pub(crate) state: FoldState,
    pub(crate) failures: Listed<Failure>,
    /// The places of all that did not complete.
    pub(crate) failed: Seen,
    pub(crate) merged: u32,
}

/// The form in which an answer is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// Printed as it is.
    Text,
    /// One compact JSON value.
    Json,
}

impl Answer {
    pub(crate) fn of(state: FoldState) -> Self {
        Self { state, failures: Listed::default(), failed: Seen::default(), merged: 0 }
    }

    /// Puts this text between two results of a concatenation, in place of a line `---`. It changes no other answer.
    pub fn separate_by(&mut self, separator: impl Into<Arc<str>>) {
        if let FoldState::Concatenate(concatenate) = &mut self.state {
            concatenate.separate_by(separator.into());
        }
    }

    /// Puts an answer that was made elsewhere in place of this one, whose counts stay.
    pub fn replace(&mut self, answer: Payload) {
        let mut given = Given::default();
        given.give(answer, false);
        self.state = FoldState::Given(given);
    }

    /// Returns the warning that belongs to the answer: of a vote, that its winner was given no more often than another value.
    pub fn warning(&self) -> Option<String> {
        let FoldState::Vote(vote) = &self.state else { return None };
        let (tied, most) = vote.tie()?;
        let times = times(most);
        Some(format!(
            "vote: a tie: {tied} values were given {times} each, and the winner is the first of them in the request"
        ))
    }

    /// Returns the number of results that went in.
    pub fn merged(&self) -> u32 {
        self.merged
    }

    /// The first of what did not complete, in request order, whether the envelope went in or not; at most
    /// [`LISTED`](crate::LISTED).
    pub fn failures(&self) -> impl ExactSizeIterator<Item = &Failure> {
        self.failures.iter()
    }

    /// The places of all that did not complete, in request order.
    pub fn failed(&self) -> impl Iterator<Item = u32> {
        self.failed.iter()
    }

    /// True unless the merge gives one of the results, or is made elsewhere, and there has been no answer yet.
    pub fn is_made(&self) -> bool {
        let gives_one =
            matches!(self.state, FoldState::First(_) | FoldState::Quorum(_) | FoldState::Given(_));
        !gives_one || self.state.one().is_some()
    }

    /// Returns whether the answer is text or JSON. What `first` and `quorum` pick keeps its own kind; nothing picked is `null`.
    pub fn kind(&self) -> AnswerKind {
        let json = match &self.state {
            FoldState::Concatenate(_) | FoldState::Summarize(_) => false,
            FoldState::Structured(_) | FoldState::Vote(_) | FoldState::Sum(_) => true,
            FoldState::First(first) => first.value().is_none_or(shows_as_json),
            FoldState::Quorum(quorum) => quorum.value().is_none_or(shows_as_json),
            FoldState::Given(given) => given.value().is_none_or(shows_as_json),
        };
        if json { AnswerKind::Json } else { AnswerKind::Text }
    }

    /// Writes the answer, without a newline at its end.
    ///
    /// # Errors
    /// Those of `out` and of `values`, and [`io::ErrorKind::InvalidData`] where a stored value has not the size
    /// it was recorded with.
    pub fn write_to(&self, out: &mut dyn Write, values: &dyn Values) -> io::Result<()> {
        // Small pieces are gathered; blocks of large values are bigger than this and pass by.
        let mut out = io::BufWriter::with_capacity(64 * 1024, out);
        self.write(&mut Source::new(values), &mut out)?;
        out.flush()
    }

    /// Returns the length in bytes, where it is known without reading stored values: not where one would have to be escaped or
    /// laid out.
    pub fn len(&self) -> Option<u64> {
        let in_store = |value: &Payload| matches!(value, Payload::Stored(_));
        let is_known = |value: &KeptResult| match value {
            KeptResult::Here(payload) if !in_store(payload) => true,
            held => self.writes_plain() && held.has_known_length(),
        };
        let mut picked = self.picked();
        let is_plain = |value: &Payload| match value {
            Payload::Stored(reference) => self.writes_plain() && !text::is_json(reference),
            _ => true,
        };
        if !self.held().all(is_known) || !picked.all(is_plain) {
            return None;
        }
        let mut counter = Counter(0);
        let mut source = Source::sizes_only();
        self.write(&mut source, &mut counter).expect("counting does not fail");
        Some(counter.0 + source.skipped())
    }

    /// True if the answer is known to be empty: a concatenation of nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// The answer as one payload, where that needs no store: everything in it is at hand, or it is exactly one
    /// stored value.
    pub fn to_payload(&self) -> Option<Payload> {
        if let Some(only) = self.only_value() {
            return Some(only.clone());
        }
        let at_hand = |value: &Payload| !matches!(value, Payload::Stored(_));
        if !self.held().all(|held| held.here().is_some_and(at_hand)) || !self.picked().all(at_hand)
        {
            return None;
        }
        let mut bytes = Vec::new();
        self.write(&mut Source::sizes_only(), &mut bytes).expect("writing to memory does not fail");
        let text = String::from_utf8(bytes).expect("texts and JSON at hand are UTF-8");
        Some(match self.kind() {
            AnswerKind::Text => Payload::text(text),
            AnswerKind::Json => Payload::json(text).expect("a merge writes valid JSON"),
        })
    }

    /// The one value whose bytes are the answer's own.
    fn only_value(&self) -> Option<&Payload> {
        match &self.state {
            FoldState::Concatenate(concatenate) => {
                let mut values = concatenate.values();
                let only = values.next().filter(|_| values.next().is_none())?.here()?;
                matches!(only.kind(), ValueKind::Text | ValueKind::Bytes).then_some(only)
            }
            other => other.one(),
        }
    }

    fn writes_plain(&self) -> bool {
        !matches!(self.state, FoldState::Structured(_) | FoldState::Vote(_))
    }

    /// The results of a strategy that keeps each.
    fn held(&self) -> Box<dyn Iterator<Item = &KeptResult> + '_> {
        match &self.state {
            FoldState::Concatenate(concatenate) => Box::new(concatenate.values()),
            FoldState::Structured(structured) => Box::new(structured.values()),
            FoldState::Summarize(summarize) => Box::new(summarize.values()),
            FoldState::Vote(_)
            | FoldState::Sum(_)
            | FoldState::First(_)
            | FoldState::Quorum(_)
            | FoldState::Given(_) => Box::new(std::iter::empty()),
        }
    }

    /// The results of one that keeps some.
    fn picked(&self) -> Box<dyn Iterator<Item = &Payload> + '_> {
        match &self.state {
            FoldState::Vote(vote) => Box::new(vote.values()),
            other => Box::new(other.one().into_iter()),
        }
    }

    fn write(&self, source: &mut Source<'_>, out: &mut dyn Write) -> io::Result<()> {
        match &self.state {
            FoldState::Concatenate(concatenate) => concatenate.write(source, out),
            FoldState::Structured(structured) => structured.write(source, out),
            FoldState::Vote(vote) => vote.write(source, out),
            FoldState::Summarize(summarize) => summarize.write(source, out),
            FoldState::Sum(sum) => out.write_all(sum.text().as_bytes()),
            FoldState::First(_) | FoldState::Quorum(_) | FoldState::Given(_) => {
                one(self.state.one(), source, out)
            }
        }
    }
}

fn one(value: Option<&Payload>, source: &mut Source<'_>, out: &mut dyn Write) -> io::Result<()> {
    match value {
        Some(value) if shows_as_json(value) => text::json(value, source, out),
        Some(value) => text::plain(value, Spacing::Compact, source, out),
        None => out.write_all(b"null"),
    }
}

/// A string is text, however it is held. Stored JSON is not opened to find out.
fn shows_as_json(value: &Payload) -> bool {
    match value {
        Payload::Text(_) => false,
        Payload::Json(json) => !json.as_str().starts_with('"'),
        Payload::Stored(reference) => text::is_json(reference),
    }
}

struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        self.0 += block.len() as u64;
        Ok(block.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
