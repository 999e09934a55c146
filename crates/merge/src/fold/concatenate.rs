//! The texts, joined.

use std::io::{self, Write};
use std::sync::Arc;

use super::slots::Slots;
use crate::kept_result::KeptResult;
use crate::text::Spacing;
use crate::values::Source;

/// Holds the results themselves, large ones as references, and no keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct Concatenate {
    results: Slots<KeptResult>,
    /// The text between two texts, in place of [`SEPARATOR`].
    separator: Option<Arc<str>>,
}

/// A line of its own between two texts, whether or not they end with one.
const SEPARATOR: &str = "\n---\n";

impl Concatenate {
    pub(super) fn push(&mut self, index: u32, value: KeptResult) {
        self.results.insert(index, value);
    }

    pub(crate) fn separate_by(&mut self, separator: Arc<str>) {
        self.separator = Some(separator);
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &KeptResult> {
        self.results.iter().map(|(_, value)| value)
    }

    pub(crate) fn write(&self, source: &mut Source<'_>, out: &mut dyn Write) -> io::Result<()> {
        let separator = self.separator.as_deref().unwrap_or(SEPARATOR).as_bytes();
        for (position, value) in self.values().enumerate() {
            if position > 0 {
                out.write_all(separator)?;
            }
            value.plain(Spacing::Compact, source, out)?;
        }
        Ok(())
    }
}
