//! The first value given often enough.

use std::num::NonZeroU32;

use offshoot_model::{Payload, VariableRef};

use super::vote::Vote;
use crate::MergeError;

/// A vote that ends when a value has the asked number.
#[derive(Clone, Debug)]
pub(crate) struct Quorum {
    needed: NonZeroU32,
    vote: Vote,
    reached: Option<Payload>,
}

impl Quorum {
    pub(super) fn new(needed: NonZeroU32) -> Self {
        Self { needed, vote: Vote::default(), reached: None }
    }

    pub(super) fn push(&mut self, index: u32, value: Payload) {
        let candidate = self.vote.push(index, value);
        if candidate.count >= u64::from(self.needed.get()) {
            self.reached = Some(candidate.value.clone());
        }
    }

    /// As [`Vote::unread`].
    pub(super) fn unread(&self, value: &Payload) -> Option<VariableRef> {
        self.vote.unread(value)
    }

    /// As [`Vote::learn`].
    pub(super) fn learn(&mut self, reference: &VariableRef, bytes: &[u8]) {
        self.vote.learn(reference, bytes);
    }

    pub(super) fn stands(&self) -> bool {
        self.reached.is_some()
    }

    /// Checks that a value has the asked number. A request of no results at all has the empty answer, as with every strategy.
    pub(super) fn check(&self, expected: u32) -> Result<(), MergeError> {
        match self.vote.winner() {
            _ if self.reached.is_some() || expected == 0 => Ok(()),
            Some(best) => {
                Err(MergeError::NoQuorum { needed: self.needed.get(), reached: best.count })
            }
            None => Err(MergeError::NoneCompleted { merge: "quorum" }),
        }
    }

    /// The value that was given often enough. The one that is ahead is no answer: a program that reads the output would take it for
    /// one that was agreed on.
    pub(crate) fn value(&self) -> Option<&Payload> {
        self.reached.as_ref()
    }
}
