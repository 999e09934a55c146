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

    /// No results at all are an empty answer, as with every strategy; some that do not agree are none.
    pub(super) fn check(&self) -> Result<(), MergeError> {
        match (&self.reached, self.vote.winner()) {
            (Some(_), _) | (None, None) => Ok(()),
            (None, Some(best)) => {
                Err(MergeError::NoQuorum { needed: self.needed.get(), reached: best.count })
            }
        }
    }

    /// The value that won, or, while none has, the one ahead.
    pub(crate) fn value(&self) -> Option<&Payload> {
        self.reached.as_ref().or_else(|| self.vote.winner().map(|candidate| &candidate.value))
    }
}
