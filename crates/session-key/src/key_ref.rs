//! A session key that borrows the text it was parsed from.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::agent_id::AgentId;
use crate::ancestors::Ancestors;
use crate::error::ParseKeyError;
use crate::key::SessionKey;
use crate::kind::KeyKind;
use crate::name;
use crate::parse::{self, PREFIX, Shape};

/// A session key that borrows its text where the text is canonical already.
///
/// ```
/// use std::borrow::Cow;
/// use offshoot_session_key::SessionKeyRef;
///
/// let key = SessionKeyRef::parse("agent:main:subagent:a:sub:b")?;
/// assert!(matches!(key.as_cow(), Cow::Borrowed(_)));
/// assert_eq!(key.depth(), 2);
///
/// let key = SessionKeyRef::parse("  Agent:Main:Main ")?;
/// assert!(matches!(key.as_cow(), Cow::Owned(_)));
/// assert_eq!(key.as_str(), "agent:main:main");
/// # Ok::<(), offshoot_session_key::ParseKeyError>(())
/// ```
#[derive(Clone)]
pub struct SessionKeyRef<'a> {
    text: Cow<'a, str>,
    shape: Shape,
}

impl<'a> SessionKeyRef<'a> {
    /// Parses a key. Canonical input is borrowed, and nothing is allocated.
    ///
    /// # Errors
    ///
    /// When the input is not a key by the grammar on the crate's page.
    pub fn parse(input: &'a str) -> Result<Self, ParseKeyError> {
        let text = name::canonical(input);
        match parse::shape(&text) {
            Ok(shape) => Ok(Self { text, shape }),
            Err((position, kind)) => Err(ParseKeyError::new(input.trim(), position, kind)),
        }
    }

    pub(crate) fn from_parts(text: Cow<'a, str>, shape: Shape) -> Self {
        Self { text, shape }
    }

    pub(crate) fn into_parts(self) -> (Cow<'a, str>, Shape) {
        (self.text, self.shape)
    }

    /// The key as text, borrowed or owned.
    pub fn as_cow(&self) -> &Cow<'a, str> {
        &self.text
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The agent in the key, as text. For a sub-agent's child it is that of the ancestor at depth
    /// 1: the agent that runs there is in the record, not in the key.
    pub fn agent_str(&self) -> &str {
        &self.text[PREFIX.len()..usize::from(self.shape.agent_end)]
    }

    /// The agent in the key, see [`agent_str`](Self::agent_str). Allocates the id.
    pub fn agent_id(&self) -> AgentId {
        AgentId::from_checked(self.agent_str())
    }

    /// What the key addresses.
    pub fn kind(&self) -> KeyKind {
        self.shape.kind
    }

    /// Levels below the root: 0 for a root, 1 for its child, one more for each `:sub:`.
    pub fn depth(&self) -> usize {
        self.shape.depth
    }

    /// The key one level up by the text: without the last `:sub:…`, or the agent's main session;
    /// of a root none. A session of that key need not exist.
    pub fn parent(&self) -> Option<SessionKeyRef<'_>> {
        self.ancestors().next()
    }

    /// All keys above this one by the text, nearest first.
    pub fn ancestors(&self) -> Ancestors<'_> {
        Ancestors::of(&self.text, self.shape)
    }

    /// Whether this is the key of a session that another one asked for.
    pub fn is_subagent(&self) -> bool {
        self.kind() == KeyKind::Subagent
    }

    /// Whether this is a root: whatever is not a sub-agent.
    pub fn is_root(&self) -> bool {
        !self.is_subagent()
    }

    /// The key with a text of its own.
    pub fn into_owned(self) -> SessionKey {
        SessionKey::from(self)
    }
}

impl<'a> From<&'a SessionKey> for SessionKeyRef<'a> {
    fn from(key: &'a SessionKey) -> Self {
        key.borrowed()
    }
}

impl fmt::Display for SessionKeyRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for SessionKeyRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionKeyRef").field(&self.as_str()).finish()
    }
}

impl PartialEq for SessionKeyRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for SessionKeyRef<'_> {}

impl PartialEq<SessionKey> for SessionKeyRef<'_> {
    fn eq(&self, other: &SessionKey) -> bool {
        self.as_str() == other.as_str()
    }
}

impl PartialOrd for SessionKeyRef<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SessionKeyRef<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl Hash for SessionKeyRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl serde::Serialize for SessionKeyRef<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
