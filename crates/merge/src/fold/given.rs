//! An answer that is made elsewhere: here the results are only counted.

use offshoot_model::Payload;

/// Holds the answer, once it is there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    answer: Option<Payload>,
    early: bool,
}

impl Given {
    pub(crate) fn give(&mut self, answer: Payload, early: bool) {
        (self.answer, self.early) = (Some(answer), early);
    }

    /// True if the answer was given before all results were in.
    pub(super) fn stands(&self) -> bool {
        self.early
    }

    pub(crate) fn value(&self) -> Option<&Payload> {
        self.answer.as_ref()
    }
}
