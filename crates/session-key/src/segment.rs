//! The last part of a minted key, which tells one session from its siblings.

use std::sync::Arc;

use crate::name::{self, NameFault};

/// One minted part of a key, `[a-z0-9_-]{1,64}`, as a rule a lower-case UUID. Cloning shares the
/// text.
///
/// ```
/// use offshoot_session_key::Segment;
///
/// let segment = Segment::parse("01987d2e-7b5a-7c1e-9a51-3f6f0c4d2b10")?;
/// assert_eq!(segment.as_str().len(), 36);
/// assert!(Segment::parse("a:sub:b").is_err());
/// # Ok::<(), offshoot_session_key::ParseSegmentError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Segment(Arc<str>);

impl Segment {
    /// Parses a segment, trimmed and lower-cased as keys are.
    ///
    /// # Errors
    ///
    /// When what is left is empty, too long, or holds a character that no segment may hold.
    pub fn parse(input: &str) -> Result<Self, ParseSegmentError> {
        let text = name::canonical(input);
        name::check_segment(&text)
            .map_err(|(position, fault)| ParseSegmentError { position, fault })?;
        Ok(Self(Arc::from(text)))
    }
}

name::impl_text!(Segment, 0, ParseSegmentError);

/// The error of a text that is not a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("segment {fault} (byte {position})")]
#[non_exhaustive]
pub struct ParseSegmentError {
    /// The byte of the trimmed input at which it goes wrong.
    pub position: usize,
    /// The fault.
    pub fault: NameFault,
}
