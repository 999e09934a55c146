//! One object from key to value.

use std::collections::HashSet;
use std::io::{self, Write};
use std::sync::Arc;

use super::slots::Slots;
use crate::MergeError;
use crate::kept_result::KeptResult;
use crate::text;
use crate::values::Source;

/// Holds keys and results, large ones as references.
#[derive(Clone, Debug, Default)]
pub(crate) struct Structured {
    results: Slots<(Arc<str>, KeptResult)>,
    takes_bytes: bool,
}

impl Structured {
    /// The object in which results that are not UTF-8 are objects with their Base64.
    pub(super) fn with_base64() -> Self {
        Self { takes_bytes: true, ..Self::default() }
    }

    /// True if results that are not UTF-8 have a place in it.
    pub(super) fn takes_bytes(&self) -> bool {
        self.takes_bytes
    }

    pub(super) fn push(&mut self, index: u32, key: Arc<str>, value: KeptResult) {
        self.results.insert(index, (key, value));
    }

    /// A key that occurs twice would hide a result from most readers of the object.
    pub(super) fn check(&self) -> Result<(), MergeError> {
        let mut keys = HashSet::with_capacity(self.results.len());
        match self.results.iter().find(|(_, (key, _))| !keys.insert(&**key)) {
            Some((_, (key, _))) => Err(MergeError::DuplicateKey { key: Arc::clone(key) }),
            None => Ok(()),
        }
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &KeptResult> {
        self.results.iter().map(|(_, (_, value))| value)
    }

    pub(crate) fn write(&self, source: &mut Source<'_>, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"{")?;
        for (position, (_, (key, value))) in self.results.iter().enumerate() {
            if position > 0 {
                out.write_all(b",")?;
            }
            text::string(key, out)?;
            out.write_all(b":")?;
            value.json(source, out)?;
        }
        out.write_all(b"}")
    }
}
