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
}

impl Structured {
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
