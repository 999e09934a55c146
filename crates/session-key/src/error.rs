//! The errors of keys, with their positions.

use std::fmt::{self, Write as _};

use crate::name::NameFault;

/// Characters of the key that a message shows on either side of the fault. Enough for a sub-agent
/// key with one UUID; a key of a megabyte must not fill a terminal.
const SHOWN_AROUND: usize = 80;

/// The error of a text that is not a session key.
///
/// Its text is one line; [`caret`](Self::caret) shows the place, [`report`](Self::report) both.
///
/// ```
/// use offshoot_session_key::SessionKey;
///
/// let error = SessionKey::parse("agent:ma in:x").unwrap_err();
/// assert_eq!(error.to_string(), "malformed session key at byte 8: the agent id cannot contain ' '");
/// assert_eq!(error.caret(), "agent:ma in:x\n        ^");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("malformed session key at byte {position}: {kind}")]
#[non_exhaustive]
pub struct ParseKeyError {
    /// The byte of the trimmed input at which it goes wrong; its length when something is missing
    /// at the end.
    pub position: usize,
    /// The fault.
    pub kind: ParseKeyErrorKind,
    excerpt: Excerpt,
}

/// The faults of a session key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseKeyErrorKind {
    /// Nothing but white space.
    #[error("it is empty")]
    Empty,
    /// The text does not begin with `agent:`.
    #[error("it does not begin with `agent:`")]
    Prefix,
    /// The agent id is not one.
    #[error("the agent id {0}")]
    AgentId(NameFault),
    /// The text ends after the agent id.
    #[error("nothing follows the agent id")]
    NoRest,
    /// A segment of a sub-agent key is not one.
    #[error("the segment {0}")]
    Segment(NameFault),
    /// Something other than `sub` follows a segment of a sub-agent key.
    #[error("only `sub` can follow a segment")]
    NotSub,
    /// Two `:` in a row, or one at the end.
    #[error("a part between colons is empty")]
    EmptyToken,
    /// White space or a control character.
    #[error("it cannot contain {0:?}")]
    TokenCharacter(char),
}

impl ParseKeyError {
    /// `text` is the trimmed input as it was given, in its own case.
    pub(crate) fn new(text: &str, position: usize, kind: ParseKeyErrorKind) -> Self {
        Self { position, kind, excerpt: Excerpt::around(text, position) }
    }

    /// The key and, on a second line, a caret under the position.
    ///
    /// Control characters are shown escaped and a long key is cut on both sides, so the two lines
    /// are safe to print. The caret counts characters: under wide or combining ones it is off.
    pub fn caret(&self) -> String {
        format!("{}\n{:>width$}", self.excerpt.shown, '^', width = self.excerpt.column + 1)
    }

    /// The message and below it the key with its caret: three lines.
    pub fn report(&self) -> String {
        format!("{self}\n{}", self.caret())
    }

    /// Returns advice on what to write instead.
    pub fn hint(&self) -> &'static str {
        match self.kind {
            ParseKeyErrorKind::Empty | ParseKeyErrorKind::Prefix | ParseKeyErrorKind::NoRest => {
                "a key is `agent:{id}:main`, `agent:{id}:subagent:{uuid}` or `agent:{id}:run:{uuid}`"
            }
            ParseKeyErrorKind::AgentId(_) => {
                "an agent id is 1 to 64 letters, digits, `_` or `-`, and begins with a letter or a digit"
            }
            ParseKeyErrorKind::Segment(_) => "a segment is 1 to 64 letters, digits, `_` or `-`",
            ParseKeyErrorKind::NotSub => {
                "a sub-agent's child is `agent:{id}:subagent:{uuid}:sub:{uuid}`"
            }
            ParseKeyErrorKind::EmptyToken => "write one `:` between two parts and none at the end",
            ParseKeyErrorKind::TokenCharacter(_) => {
                "the parts of a key hold no white space and no control characters"
            }
        }
    }
}

/// The part of a key that is shown: at most [`SHOWN_AROUND`] characters on either side of the fault.
#[derive(Clone, PartialEq, Eq)]
struct Excerpt {
    shown: Box<str>,
    /// The column of the fault in `shown`, in characters.
    column: usize,
}

impl Excerpt {
    fn around(text: &str, position: usize) -> Self {
        let (before, after) = text.split_at(position);
        let mut shown = String::new();
        let start = before.char_indices().rev().nth(SHOWN_AROUND - 1).map_or(0, |(at, _)| at);
        if start > 0 {
            shown.push('…');
        }
        push_printable(&mut shown, &before[start..]);
        let column = shown.chars().count();
        let end = after.char_indices().nth(SHOWN_AROUND).map_or(after.len(), |(at, _)| at);
        push_printable(&mut shown, &after[..end]);
        if end < after.len() {
            shown.push('…');
        }
        Self { shown: shown.into(), column }
    }
}

impl fmt::Debug for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.shown, f)
    }
}

/// A key may come from an untrusted source: what would move the cursor or break the line is escaped.
fn push_printable(shown: &mut String, text: &str) {
    for character in text.chars() {
        if character == ' ' || !(character.is_control() || character.is_whitespace()) {
            shown.push(character);
        } else {
            write!(shown, "{}", character.escape_default()).expect("a string takes any text");
        }
    }
}
