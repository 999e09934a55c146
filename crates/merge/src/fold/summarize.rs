//! The texts, each under a heading.

use std::io::{self, Write};
use std::sync::Arc;

use super::slots::Slots;
use crate::kept_result::KeptResult;
use crate::text::Spacing;
use crate::values::Source;

/// Holds keys and results, large ones as references.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summarize {
    results: Slots<(Arc<str>, KeptResult)>,
}

impl Summarize {
    pub(super) fn push(&mut self, index: u32, key: Arc<str>, value: KeptResult) {
        self.results.insert(index, (key, value));
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &KeptResult> {
        self.results.iter().map(|(_, (_, value))| value)
    }

    /// The heading's number is the place in the request, from 1: it stays the same while others are missing.
    pub(crate) fn write(&self, source: &mut Source<'_>, out: &mut dyn Write) -> io::Result<()> {
        for (position, (index, (key, value))) in self.results.iter().enumerate() {
            if position > 0 {
                out.write_all(b"\n\n")?;
            }
            writeln!(out, "[Result {} from {key}]:", index + 1)?;
            value.plain(Spacing::Indented, source, out)?;
        }
        Ok(())
    }
}
