//! One result as a fold holds it.

use std::borrow::Cow;
use std::io::{self, Write};

use offshoot_model::{Payload, ValueKind};

use crate::text::{self, Spacing};
use crate::values::Source;

/// The result itself; or, beyond what a fold may hold, its place in the request, by which it is read again.
#[derive(Clone, Debug)]
pub(crate) enum KeptResult {
    Here(Payload),
    Elsewhere { place: u32, kind: ValueKind, size: u64 },
}

impl KeptResult {
    /// The result, where it is here.
    pub(crate) fn here(&self) -> Option<&Payload> {
        match self {
            Self::Here(payload) => Some(payload),
            Self::Elsewhere { .. } => None,
        }
    }

    /// True if its length as plain text is known without reading it.
    pub(crate) fn has_known_length(&self) -> bool {
        match self {
            Self::Here(Payload::Stored(reference)) => !text::is_json(reference),
            Self::Here(_) => true,
            Self::Elsewhere { kind, .. } => matches!(kind, ValueKind::Text | ValueKind::Bytes),
        }
    }

    /// As [`text::plain`].
    pub(crate) fn plain(
        &self,
        spacing: Spacing,
        source: &mut Source<'_>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        match self.read(source)? {
            Some(payload) => text::plain(&payload, spacing, source, out),
            None => Ok(()),
        }
    }

    /// As [`text::json`].
    pub(crate) fn json(&self, source: &mut Source<'_>, out: &mut dyn Write) -> io::Result<()> {
        match self.read(source)? {
            Some(payload) => text::json(&payload, source, out),
            None => Ok(()),
        }
    }

    /// The result, read again where it is not here; none where only sizes are added up.
    fn read(&self, source: &mut Source<'_>) -> io::Result<Option<Cow<'_, Payload>>> {
        match self {
            Self::Here(payload) => Ok(Some(Cow::Borrowed(payload))),
            Self::Elsewhere { place, size, .. } => {
                Ok(source.result(*place, *size)?.map(Cow::Owned))
            }
        }
    }
}
