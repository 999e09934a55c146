//! The first result that completes.

use offshoot_model::Payload;

use crate::MergeError;

/// Holds one result.
#[derive(Clone, Debug, Default)]
pub(crate) struct First {
    result: Option<Payload>,
}

impl First {
    pub(super) fn push(&mut self, value: Payload) {
        self.result.get_or_insert(value);
    }

    pub(super) fn stands(&self) -> bool {
        self.result.is_some()
    }

    /// Checks that there is one. A request of no results at all has the empty answer, as with every strategy.
    pub(super) fn check(&self, expected: u32) -> Result<(), MergeError> {
        match &self.result {
            None if expected > 0 => Err(MergeError::NoneCompleted { merge: "first" }),
            _ => Ok(()),
        }
    }

    pub(crate) fn value(&self) -> Option<&Payload> {
        self.result.as_ref()
    }
}
