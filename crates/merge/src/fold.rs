//! The fold: results in, one after the other; an answer out.

mod concatenate;
mod first;
mod given;
mod identity;
mod quorum;
mod seen;
mod slots;
mod structured;
mod sum;
mod summarize;
mod total;
mod vote;

use std::sync::Arc;

use offshoot_model::{Envelope, JsonText, Payload, ValueKind, VariableRef};

use crate::kept_result::KeptResult;
use crate::{Answer, Failure, MergeError, OnFailure, Strategy};

pub(crate) use concatenate::Concatenate;
pub(crate) use first::First;
pub(crate) use given::Given;
pub(crate) use quorum::Quorum;
pub(crate) use seen::Seen;
pub(crate) use structured::Structured;
pub(crate) use sum::Sum;
pub(crate) use summarize::Summarize;
pub(crate) use vote::Vote;

/// Takes results as runs end and keeps what their answer is made of.
#[derive(Clone, Debug)]
pub struct Fold {
    on_failure: OnFailure,
    seen: Seen,
    /// The number of bytes of results that may still be held; none where all may.
    room: Option<u64>,
    /// The first result in request order that a merge of texts cannot take.
    not_text: Option<(u32, Arc<str>)>,
    answer: Answer,
}

/// The effect of a push on the results that are still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The results that are still to come count.
    More,
    /// The answer stands; the rest can be cancelled. Said to every push from then on, none of which changes it.
    Early,
}

/// One strategy's state, which is also what its answer is written from.
#[derive(Clone, Debug)]
pub(crate) enum FoldState {
    Concatenate(Concatenate),
    Structured(Structured),
    Vote(Vote),
    Summarize(Summarize),
    Sum(Sum),
    First(First),
    Quorum(Quorum),
    Given(Given),
}

impl Fold {
    /// Nothing pushed yet.
    pub fn new(strategy: Strategy, on_failure: OnFailure) -> Self {
        let state = match strategy {
            Strategy::Concatenate => FoldState::Concatenate(Concatenate::default()),
            Strategy::Structured => FoldState::Structured(Structured::default()),
            Strategy::StructuredBase64 => FoldState::Structured(Structured::with_base64()),
            Strategy::Vote => FoldState::Vote(Vote::default()),
            Strategy::Summarize => FoldState::Summarize(Summarize::default()),
            Strategy::Sum => FoldState::Sum(Sum::default()),
            Strategy::First => FoldState::First(First::default()),
            Strategy::Quorum(needed) => FoldState::Quorum(Quorum::new(needed)),
        };
        Self::of(state, on_failure)
    }

    /// Holds so many bytes of results and no more: of further ones only the place in the request, by which the writer of the
    /// answer gets them again ([`Values::result`](crate::Values::result)).
    #[must_use]
    pub fn hold_at_most(mut self, bytes: u64) -> Self {
        self.room = Some(bytes);
        self
    }

    /// Puts this text between two results of a concatenation, in place of a line `---`. It changes no other answer.
    #[must_use]
    pub fn separate_by(mut self, separator: &str) -> Self {
        self.answer.separate_by(separator);
        self
    }

    /// For a merge that is made elsewhere, as that of a plugin is: results are counted here, and the answer is
    /// [given](Self::give).
    pub fn elsewhere(on_failure: OnFailure) -> Self {
        Self::of(FoldState::Given(Given::default()), on_failure)
    }

    fn of(state: FoldState, on_failure: OnFailure) -> Self {
        Self {
            on_failure,
            seen: Seen::default(),
            room: None,
            not_text: None,
            answer: Answer::of(state),
        }
    }

    /// The answer of a merge that is made elsewhere; early where it stands whatever the remaining results say. Others
    /// make theirs themselves, and nothing is changed.
    pub fn give(&mut self, answer: Payload, early: bool) {
        if let FoldState::Given(given) = &mut self.answer.state {
            given.give(answer, early);
        }
    }

    /// Takes one result: what a completed run answered, or the envelope of one that did not complete. `index` is its
    /// place in the request, from 0; memory grows with the largest. A second push for the same place changes
    /// nothing, so that a replay may repeat itself.
    pub fn push(
        &mut self,
        index: u32,
        key: Arc<str>,
        result: Result<Payload, Box<Envelope>>,
    ) -> Step {
        if self.stands() {
            return Step::Early;
        }
        if !self.seen.insert(index) {
            return Step::More;
        }
        let value = match result {
            Ok(value) => value,
            Err(envelope) => {
                let included = (self.on_failure == OnFailure::Include
                    && !self.answer.state.wants_completed())
                .then(|| JsonText::of(&envelope).expect("an envelope is plain data"));
                let failure = Failure::of(index, Arc::clone(&key), &envelope);
                self.answer.failures.insert(index, failure);
                self.answer.failed.insert(index);
                match included {
                    Some(json) => Payload::Json(json),
                    None => return Step::More,
                }
            }
        };
        if self.answer.state.needs_text().is_some() && value.kind() == ValueKind::Bytes {
            let first = self.not_text.get_or_insert_with(|| (index, Arc::clone(&key)));
            if index < first.0 {
                *first = (index, key);
            }
            return Step::More;
        }
        self.answer.merged += 1;
        self.answer.state.push(index, key, value, &mut self.room);
        if self.stands() { Step::Early } else { Step::More }
    }

    /// The stored value that has to be [learned](Self::learn) before this result is pushed, if there is one: a vote compares
    /// JSON by value, and nothing in here reads the store.
    pub fn unread(&self, result: &Payload) -> Option<VariableRef> {
        match &self.answer.state {
            FoldState::Vote(vote) => vote.unread(result),
            FoldState::Quorum(quorum) => quorum.unread(result),
            _ => None,
        }
    }

    /// Takes in what a stored value says that [`unread`](Self::unread) has named. One that is not learned, as it cannot be read
    /// at the moment, counts as it is written.
    pub fn learn(&mut self, reference: &VariableRef, bytes: &[u8]) {
        match &mut self.answer.state {
            FoldState::Vote(vote) => vote.learn(reference, bytes),
            FoldState::Quorum(quorum) => quorum.learn(reference, bytes),
            _ => {}
        }
    }

    /// True if the envelope of a run that did not complete is a result like any other.
    pub fn includes_failures(&self) -> bool {
        self.on_failure == OnFailure::Include
    }

    /// The answer to what was pushed so far.
    pub fn partial(&self) -> &Answer {
        &self.answer
    }

    /// The same, without the fold.
    pub fn into_partial(self) -> Answer {
        self.answer
    }

    /// True if the answer stands whatever the remaining results say.
    pub fn stands(&self) -> bool {
        match &self.answer.state {
            FoldState::First(first) => first.stands(),
            FoldState::Quorum(quorum) => quorum.stands(),
            FoldState::Given(given) => given.stands(),
            FoldState::Concatenate(_)
            | FoldState::Structured(_)
            | FoldState::Vote(_)
            | FoldState::Summarize(_)
            | FoldState::Sum(_) => false,
        }
    }

    /// Checks that what was pushed is the answer to a request of `expected` results.
    pub fn check(&self, expected: u32) -> Result<(), MergeError> {
        if self.stands() {
            return Ok(());
        }
        match expected.saturating_sub(self.seen.count()) {
            0 => {}
            missing => return Err(MergeError::Missing { missing, expected }),
        }
        if self.on_failure == OnFailure::Fail && self.answer.failures.count() > 0 {
            let failures = self.answer.failures().cloned().collect();
            let failed = self.answer.failures.count();
            return Err(MergeError::PiecesFailed { failures, failed, total: expected });
        }
        if let (Some(merge), Some((_, key))) = (self.answer.state.needs_text(), &self.not_text) {
            return Err(MergeError::NotText { merge, key: Arc::clone(key) });
        }
        match &self.answer.state {
            FoldState::Structured(structured) => structured.check(),
            FoldState::Sum(sum) => sum.check(),
            FoldState::First(first) => first.check(expected),
            FoldState::Quorum(quorum) => quorum.check(expected),
            FoldState::Concatenate(_)
            | FoldState::Vote(_)
            | FoldState::Summarize(_)
            | FoldState::Given(_) => Ok(()),
        }
    }

    /// The answer to a request of `expected` results.
    ///
    /// # Errors
    /// As [`Fold::check`] has it. To show what there is anyway, check first and then take
    /// [`Fold::into_partial`].
    pub fn finish(self, expected: u32) -> Result<Answer, MergeError> {
        self.check(expected)?;
        Ok(self.answer)
    }
}

impl FoldState {
    fn push(&mut self, index: u32, key: Arc<str>, value: Payload, room: &mut Option<u64>) {
        match self {
            Self::Concatenate(concatenate) => concatenate.push(index, hold(index, value, room)),
            Self::Structured(structured) => {
                structured.push(index, key, hold(index, value, room));
            }
            Self::Vote(vote) => {
                vote.push(index, value);
            }
            Self::Summarize(summarize) => summarize.push(index, key, hold(index, value, room)),
            Self::Sum(sum) => sum.push(index, key, &value),
            Self::First(first) => first.push(value),
            Self::Quorum(quorum) => quorum.push(index, value),
            Self::Given(_) => {}
        }
    }

    /// Returns the one result that is the answer, where there is one; none of merges that make theirs of all results.
    pub(crate) fn one(&self) -> Option<&Payload> {
        match self {
            Self::First(first) => first.value(),
            Self::Quorum(quorum) => quorum.value(),
            Self::Given(given) => given.value(),
            Self::Concatenate(_)
            | Self::Structured(_)
            | Self::Vote(_)
            | Self::Summarize(_)
            | Self::Sum(_) => None,
        }
    }

    /// Returns the name of a merge that cannot take results that are not UTF-8. A sum says itself what is no number.
    fn needs_text(&self) -> Option<&'static str> {
        match self {
            Self::Structured(structured) => (!structured.takes_bytes()).then_some("structured"),
            Self::Vote(_) => Some("vote"),
            Self::Summarize(_) => Some("summarize"),
            Self::Concatenate(_)
            | Self::Sum(_)
            | Self::First(_)
            | Self::Quorum(_)
            | Self::Given(_) => None,
        }
    }

    /// The first result *that completes*, and the first value that several runs *gave*: an envelope is neither.
    fn wants_completed(&self) -> bool {
        matches!(self, Self::First(_) | Self::Quorum(_))
    }
}

/// A result as it is held: itself while there is room for it.
fn hold(place: u32, value: Payload, room: &mut Option<u64>) -> KeptResult {
    let (Some(room), Payload::Text(_) | Payload::Json(_)) = (room, &value) else {
        return KeptResult::Here(value);
    };
    match room.checked_sub(value.size()) {
        Some(left) => {
            *room = left;
            KeptResult::Here(value)
        }
        None => {
            // Nothing that comes later is held either, so that an answer is not read twice over for a few small ones.
            *room = 0;
            KeptResult::Elsewhere { place, kind: value.kind(), size: value.size() }
        }
    }
}

#[cfg(test)]
mod tests;
