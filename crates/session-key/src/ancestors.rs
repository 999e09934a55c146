//! The textual parents of a key.

use std::iter::FusedIterator;

use crate::key::SessionKey;
use crate::kind::KeyKind;
use crate::parse::Shape;

/// The keys above a key, nearest first, down to the agent's main session. Empty for a root.
///
/// They are read from the text alone: a session of that key need not exist.
#[derive(Debug, Clone)]
pub struct Ancestors<'k> {
    /// The key whose parent comes next.
    pub(crate) text: &'k str,
    pub(crate) shape: Shape,
}

impl Iterator for Ancestors<'_> {
    type Item = SessionKey;

    fn next(&mut self) -> Option<SessionKey> {
        let above = self.shape.depth.checked_sub(1)?;
        if above == 0 {
            let agent = &self.text[..usize::from(self.shape.agent_end)];
            self.shape = Shape { kind: KeyKind::Main, depth: 0, ..self.shape };
            return Some(SessionKey::from_parts(&format!("{agent}:main"), self.shape));
        }
        let end = self.text.rfind(":sub:").expect("below depth 1 every level begins with `:sub:`");
        self.text = &self.text[..end];
        self.shape.depth = above;
        Some(SessionKey::from_parts(self.text, self.shape))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.shape.depth, Some(self.shape.depth))
    }
}

impl ExactSizeIterator for Ancestors<'_> {}
impl FusedIterator for Ancestors<'_> {}
