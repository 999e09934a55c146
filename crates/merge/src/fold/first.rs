//! The first result that completes.

use offshoot_model::Payload;

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

    pub(crate) fn value(&self) -> Option<&Payload> {
        self.result.as_ref()
    }
}
