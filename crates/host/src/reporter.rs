//! Messages for the user of the program, beside results and errors.

use std::fmt::Display;
use std::sync::Arc;

/// The importance of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A detail that explains something else.
    Detail,
    /// A message that users want to read.
    Note,
    /// A message that users must read.
    Warning,
}

/// Takes messages and shows them. Cheap to clone.
#[derive(Clone, derive_more::Debug)]
#[debug("Reporter")]
pub struct Reporter(Arc<Show>);

/// Shows one message.
type Show = dyn Fn(Level, &str) + Send + Sync;

impl Reporter {
    /// Hands each message to this function, which must not block.
    pub fn new(show: impl Fn(Level, &str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(show))
    }

    /// Says what led to something.
    pub fn detail(&self, text: impl Display) {
        (self.0)(Level::Detail, &text.to_string());
    }

    /// Says something that a user wants to know.
    pub fn note(&self, text: impl Display) {
        (self.0)(Level::Note, &text.to_string());
    }

    /// Says something that a user must know.
    pub fn warning(&self, text: impl Display) {
        (self.0)(Level::Warning, &text.to_string());
    }
}

/// Shows nothing.
impl Default for Reporter {
    fn default() -> Self {
        Self::new(|_, _| ())
    }
}
